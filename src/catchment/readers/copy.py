"""A task that copies a group of chunks: SELECTs, then one read of the log, then rewinds the rows to the
epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from catchment.epoch.work import ChunkReceipt, ChunkTask, CopiedChunk
from catchment.epoch.xa import Commits, commits
from catchment.model.chunk import Chunk, ChunkKey, chunk_key
from catchment.model.definition import Definition
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import CutMissed, Purged, SourceError
from catchment.model.image import GROUP
from catchment.model.position import GroupKind, LogOffset, reaches
from catchment.model.table import TableId
from catchment.readers.chunk_family import ChunkFamily
from catchment.readers.chunk_images import ChunkImages, Ranges, spoiled_by
from catchment.readers.key_images import with_referenced
from catchment.readers.selected import Read, Selected, select_all
from catchment.readers.stage import MarksMet, taken_up
from catchment.readers.xa_rows import PreparedRows
from catchment.rewind.key_chunks import keys_of
from catchment.rewind.ranges import Mask
from catchment.rewind.states import in_commit_order, rewound, states_at, without_voids
from catchment.rewind.unlogged import explained
from catchment.schema.ddl import Columns, Harmless
from catchment.schema.events import SchemaEvents, stops
from catchment.source.identity import must_be_same_log
from catchment.source.log import read_facts, read_log
from catchment.source.prove import WORTH_BYTES, floor_behind_purge, proven_floor
from catchment.source.session import connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Ddl, Images

Inside = Callable[[pa.Table, Ranges], Mask]


@dataclass(frozen=True)
class GroupRows:
    """The rows of a group's chunks as of the epoch, by table, with the chunks that they come from.

    `spoiled`: the tables of those `refused` that can never be read as of this epoch, for what the log says of them.
    `unproven`: of a comparison, how many keys were taken from the log although their SELECTs returned earlier rows.
    `crowded`: the tables of those refused that had more changes than may be held in memory.
    """

    rows: dict[TableId, pa.Table]
    copied: dict[TableId, tuple[CopiedChunk, ...]]
    refused: tuple[tuple[Chunk, str], ...]
    log_bytes: int
    spoiled: frozenset[TableId]
    unproven: dict[TableId, int] = field(default_factory=dict)
    crowded: frozenset[TableId] = frozenset()


@dataclass(frozen=True)
class Consumers:
    """Who takes the images of the log behind a group of chunks."""

    chunks: ChunkImages
    family: ChunkFamily
    marks: MarksMet

    def add(self, part: Images) -> None:
        """Hand on."""
        self.family.add(part)
        self.marks.add(part)
        if part.table.id in self.chunks.wanted:
            self.chunks.add(part)


def copy_chunks(task: ChunkTask) -> ChunkReceipt:
    """Read the group and write its rows; raises CatchmentError when nothing of it can count."""
    if task.state.keys is None:
        # The segment of this epoch asks for them. Until then nobody knows which rows change in no log.
        raise CutMissed(
            f"shard {task.endpoint.shard}: its foreign keys are not known yet; copied in the next epoch"
        )
    group = read_behind_purge(task)
    shapes = {shape.table: shape for shape in task.shapes}
    outputs = []
    for number, (table, rows) in enumerate(group.rows.items()):
        part = Part.BASE if _chunk_key(shapes[table]).ordered else Part.CHANGES
        output = task.target.emit([rows], shapes[table], task.endpoint.shard, part, number)
        if output is not None:
            outputs.append(output)
    copied = tuple(chunk for chunks in group.copied.values() for chunk in chunks)
    return ChunkReceipt(
        task.endpoint.shard, copied, tuple(outputs), group.refused, group.log_bytes, group.crowded
    )


def read_behind_purge(task: ChunkTask) -> GroupRows:
    """As `read_group`, also where the file of the floor was purged. Raises CutMissed where no later floor will do."""
    try:
        return read_group(task)
    except Purged as purged:
        if task.staged is not None:
            # What is visible now need not have been when the rows were read.
            raise CutMissed(f"{purged}; copied in a later epoch") from purged
        # The floor may lie in an older file than the last cut. The segment's task tells whether unread log is gone.
        floor = floor_behind_purge(task.endpoint, task.server, task.floor, task.epoch_at)
        if floor is None:
            raise CutMissed(
                f"{purged}; copied in a later epoch, from a floor that the server has"
            ) from purged
        return read_behind_purge(replace(task, floor=floor))


def read_group(
    task: ChunkTask,
    log_bytes: int | None = None,
    inside: Inside | None = None,
    *,
    against_log: bool = False,
) -> GroupRows:
    """SELECT the chunks, read the log behind them, and bring the rows to the epoch. Staged ones are there already; of
    these the log is read to the epoch.

    `inside` says which keys lie in a chunk where we cannot. Without it, the result has rows of keys that the log
    changed wherever they lie. `against_log`: where a SELECT returned what no image of the log explains, its row counts
    (rewind/unlogged.py). Raises SourceError when that takes more than `log_bytes` of log, TooManyImages when each of
    the tables takes more memory than the task allows.
    """
    shapes = {shape.table: shape for shape in task.shapes}
    family = ChunkFamily.of(task)
    floor, selected = _rows_of(task, shapes, family)
    reads, refused = selected.reads, selected.refused
    ranges = {table: [(c.chunk.lo, c.chunk.hi) for c, _ in chunks] for table, chunks in reads.items()}
    asked = {table: keys_of([read.chunk for read, _ in chunks]) for table, chunks in reads.items()}
    chosen_keys = {table: keys for table, keys in asked.items() if keys is not None}
    images = ChunkImages(task, {table: (shapes[table], ranges[table]) for table in reads}, chosen_keys)
    chosen = {table: shapes[table] for table in reads} | family.shapes
    wanted = Wanted.of(chosen.values(), task.state.definitions, before="full", mask_key=task.mask_key)
    wanted = with_referenced(wanted, family.keys)
    events = SchemaEvents(reads)
    marks = MarksMet(task.staged)
    wanted = marks.with_theirs(wanted)
    stretch = _log_behind(
        task, floor, _stopped(wanted, events, task.epoch_at), Consumers(images, family, marks), log_bytes
    )
    behind_cut = stretch.boundary
    stretch = marks.divided(task, stretch)
    ends = _commits(task, floor, stretch)
    prepared = PreparedRows(task.endpoint, task.server, ends.earlier, wanted)
    for part in prepared:
        family.add(part)
        if part.table.id in reads:
            images.add_prepared(part)
    if task.asks:
        # Behind the last reading: a floor has no event of its own, and may be a place in a log begun by RESET, too.
        must_be_same_log(task.endpoint, task.state.position)
    stored = StoredAt(task.endpoint, task.server, floor, stretch.at, events.of(stretch.facts))
    spoiled = spoiled_by(stretch, stored, images)
    for table in spoiled.keys() & reads.keys():
        refused += [(read.chunk, spoiled[table]) for read, _ in reads.pop(table)]
    for table in images.crowded.keys() & reads.keys():
        refused += [(read.chunk, images.crowded[table]) for read, _ in reads.pop(table)]
    split = stretch.boundary if task.staged is None else stretch.groups
    unproven: dict[TableId, int] = {}
    rows = {}
    for table, chunks in reads.items():
        touched = _touched(stretch, ends, images.kept.get(table, []))
        rows[table], unproven[table] = _at_epoch(touched, split, shapes[table], chunks, inside, against_log)
    family.unread |= spoiled.keys()
    selected_rows = {table: pa.concat_tables([one for _, one in chunks]) for table, chunks in reads.items()}
    settled = family.settled(selected_rows, rows, images.covers, stretch, ends, behind_cut)
    for table, why in settled.refused.items():
        refused += [(read.chunk, why) for read, _ in reads.pop(table)]
    return GroupRows(
        settled.rows,
        {table: tuple(read for read, _ in chunks) for table, chunks in reads.items()},
        tuple(refused),
        stretch.read_bytes + prepared.read_bytes,
        frozenset(spoiled),
        unproven,
        frozenset(images.crowded),
    )


def _rows_of(
    task: ChunkTask, shapes: dict[TableId, TableShape], family: ChunkFamily
) -> tuple[LogOffset, Selected]:
    """The floor, and what the SELECTs behind it gave."""
    if task.staged is not None:
        return task.floor, taken_up(task.staged)
    # A parent, or DDL, that goes behind the floor may have a chunk refused: so little log as can be.
    worth = 1 if family.keys or task.nearest else WORTH_BYTES
    floor = proven_floor(task.endpoint, task.server, task.floor, task.epoch_at, worth)
    return floor, _select_all(task, shapes)


def _select_all(task: ChunkTask, shapes: dict[TableId, TableShape]) -> Selected:
    return select_all(task.chunks, shapes, task.mask_key, lambda: connect(task.endpoint, task.server))


def _log_behind(
    task: ChunkTask, floor: LogOffset, wanted: Wanted, consumers: Consumers, log_bytes: int | None
) -> Stretch:
    """The log from the floor to H: the end-of-log packet of a dump opened after the last SELECT (DESIGN 4). Of staged
    rows H is the epoch."""
    with read_log(
        task.endpoint,
        task.server,
        floor,
        None if task.staged is None else task.epoch_at,
        wanted,
        # What staged rows were read behind for certain; where a snapshot was taken is told on credit.
        epoch=task.epoch_at if task.staged is None else task.state.position.at,
        budget=log_bytes,
    ) as log:
        for part in log.images():
            consumers.add(part)
    stretch = log.stretch
    if not stretch.whole:
        raise SourceError(
            f"shard {task.endpoint.shard}: more than {log_bytes} bytes of log were written since "
            f"{task.floor}, while "
            "the rows were read; read in smaller parts, with more tasks at once, or allow more log"
        )
    return stretch


def _commits(task: ChunkTask, floor: LogOffset, stretch: Stretch) -> Commits:
    """How the XA transactions behind the floor end. Where the floor was proven anew, their PREPAREs may stand between
    the plan's floor and this one. That log is read, if there is an XA COMMIT at all.
    """
    known = task.state.position.prepared
    if floor != task.floor and any(group.committed for group in stretch.xa):
        between = read_facts(task.endpoint, task.server, task.floor, floor)
        known += tuple(g.prepared for g in between.xa if g.kind is GroupKind.XA_PREPARE)
    return commits(task.endpoint.shard, known, stretch.xa)


def _stopped(wanted: Wanted, events: SchemaEvents, epoch_at: LogOffset) -> Wanted:
    """The same rows, but of a table none behind a DDL that spoils its chunks.

    A DDL up to the epoch does not spoil them, if each row says what it is.
    """
    lasting = not wanted.definitions

    def on_ddl(ddl: Ddl) -> dict[TableId, Definition | None]:
        event = events.next(ddl)
        keeps = lasting or (isinstance(event.effect, Columns) and event.effect.emptied)
        before = keeps and reaches(epoch_at, ddl.at)
        if before or isinstance(event.effect, Harmless):
            return {}
        return dict.fromkeys([event.effect.table, *(stop.table for stop in stops(event, events.chosen))])

    return replace(wanted, on_ddl=on_ddl)


def _touched(stretch: Stretch, ends: Commits, images: list[pa.Table]) -> pa.Table | None:
    """The images that count, in commit order, of groups whose end was read; None where there are none."""
    if not images:
        return None
    touched = without_voids(pa.concat_tables(images, promote_options="default"), stretch.voids)
    touched = in_commit_order(touched, ends.moves)
    return touched.filter(pc.less(touched.column(GROUP), stretch.groups))


def _at_epoch(
    touched: pa.Table | None,
    split: int,
    shape: TableShape,
    reads: list[Read],
    inside: Inside | None,
    against_log: bool,
) -> tuple[pa.Table, int]:
    """The rows of a table's chunks as of the epoch, and how many of them are `unproven`."""
    rows, unproven = pa.concat_tables([rows for _, rows in reads]), 0
    if touched is None:
        return rows, unproven
    states = states_at(touched, shape.key, split)
    if inside is not None and not _chunk_key(shape).ordered:
        states = states.filter(
            pa.array(inside(states, [(read.chunk.lo, read.chunk.hi) for read, _ in reads]))
        )
    if against_log:
        found = explained(rows, touched, states, shape.key, split)
        states, unproven = found.states, found.unproven
    return rewound(rows, states, shape.key), unproven


def _chunk_key(shape: TableShape) -> ChunkKey:
    return chunk_key(shape.definition)
