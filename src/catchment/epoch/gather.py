"""From the receipts of an epoch's tasks to its manifest: what counts, and nothing that does not (DESIGN 2,
3).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from catchment.epoch.shadows import shadows_after
from catchment.epoch.work import ChunkReceipt, Failed, Output, SegmentReceipt
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut
from catchment.model.epoch import DataFile, Manifest, Plan, Shadow, Shapes, TableDelta, TableShape
from catchment.model.errors import Retry, SourceError, Unsupported
from catchment.model.position import LogOffset
from catchment.model.renewal import Renewal
from catchment.model.shard import Copy, ShardState
from catchment.model.stale import Stale
from catchment.model.table import ShardTable, Table, TableId
from catchment.schema.columns import must_fill_none, shape_after
from catchment.schema.ddl import AGAIN
from catchment.schema.passage import Passage


@dataclass(frozen=True)
class Gathered:
    """What the receipts of an epoch amount to before files are written: its cut, outputs in order, and the rest."""

    segments: dict[str, SegmentReceipt]
    cut: Cut
    shapes: Shapes
    outputs: tuple[Output, ...]
    copied_rows: dict[TableId, int]
    chunk_bytes: int
    log_bytes: int
    refused: tuple[tuple[Chunk, str], ...]
    stale: tuple[Stale, ...] = ()
    shadows: tuple[Shadow, ...] = ()

    @property
    def followed(self) -> Shapes:
        """The shapes of all tables whose log was read."""
        return Shapes((*self.shapes, *(one.shape for one in self.shadows))) if self.shadows else self.shapes


def gather(
    previous: Manifest,
    plan: Plan,
    segments: Mapping[str, SegmentReceipt],
    copies: Mapping[tuple[Chunk, ...], ChunkReceipt | Failed],
    late_tables: Mapping[ShardTable, Table],
) -> Gathered:
    """What an epoch brings: `segments` of the shards that arrived, `copies` by group of chunks.

    `late_tables`: definitions of tables with added columns that no row event has shown yet. Chunks are as of their
    shard's cut in the plan, so those of a shard that did not arrive bring nothing. Raises the error of a failed group
    when repeating it cannot help.

    A table that stopped on one shard brings nothing from any, and is without shape and copies from this epoch on. A
    shadow table that did is not followed any more.
    """
    for receipt in copies.values():
        if isinstance(receipt, Failed) and receipt.error.retry is Retry.NEVER:
            raise receipt.error
    copies = _of_arrived(copies, segments)
    reasons = _stopped(segments)
    log = _Log.of(segments, late_tables)
    followed = _shapes(previous, log, plan.epoch, reasons)
    unfollowed = {one.table for one in previous.shadows if one.table in reasons}
    reasons = {table: reason for table, reason in reasons.items() if table not in unfollowed}
    shadows = shadows_after(previous, segments, reasons, followed)
    silent = {*reasons, *(one.table for one in previous.shadows)} - {one.table for one in shadows}
    shapes = _carried(previous, followed) if previous.shadows else followed
    altered = {of for of, passage in log.passages.items() if passage.redefines}
    accepted = _accept(copies, altered)
    outputs = [output for segment in segments.values() for output in segment.outputs]
    outputs += [output for _, output in accepted.outputs]
    cut = _cut(previous.cut, plan, segments, accepted.chunks).without(reasons)
    stale = tuple(
        _made_since(one, segments) for one in _stale(previous, plan, cut, reasons, _places(segments))
    )
    return Gathered(
        segments=dict(segments),
        cut=cut,
        shapes=renewed(shapes, stale, plan.epoch) if previous.stale else shapes,
        outputs=tuple(output for output in outputs if output.table not in silent),
        copied_rows=accepted.rows,
        chunk_bytes=accepted.bytes,
        log_bytes=sum(s.log_bytes for s in segments.values())
        + sum(c.log_bytes for c in copies.values() if isinstance(c, ChunkReceipt)),
        refused=tuple((chunk, why) for chunk, why in accepted.refused if chunk.table not in reasons),
        stale=stale,
        shadows=shadows,
    )


def _stopped(segments: Mapping[str, SegmentReceipt]) -> dict[TableId, str]:
    """The tables that cannot be followed from this epoch on, and why."""
    found: dict[TableId, str] = {}
    for segment in segments.values():
        for one in segment.stopped:
            found.setdefault(one.table, one.reason)
    return found


def _places(segments: Mapping[str, SegmentReceipt]) -> dict[TableId, dict[str, LogOffset]]:
    """Where in the log of each shard that is which stopped a table."""
    found: dict[TableId, dict[str, LogOffset]] = {}
    for shard, segment in segments.items():
        for one in segment.stopped:
            if one.place is not None:
                found.setdefault(one.table, {})[shard] = one.place
    return found


def _stale(
    previous: Manifest,
    plan: Plan,
    cut: Cut,
    reasons: Mapping[TableId, str],
    places: Mapping[TableId, Mapping[str, LogOffset]],
) -> tuple[Stale, ...]:
    """The tables that readers see as of an earlier epoch: those that stopped, as of the one before. One leaves them
    when its new copy is complete, and one that is to be settled first in an epoch of its own."""
    if not reasons and not previous.stale:
        return ()
    copying = {copy.table for copy in cut.copies if not copy.done}
    copied = {copy.table for copy in cut.copies} - copying
    stays = (one for one in previous.stale if one.settles or one.table not in copied)
    found = [one for one in stays if one.table not in reasons]
    found += [
        previous.stopped(table, plan.tick.time_us, reason, places.get(table, {}))
        for table, reason in reasons.items()
    ]
    return tuple(sorted(found, key=lambda one: one.table))


def renewed(shapes: Shapes, stale: Iterable[Stale], epoch: int) -> Shapes:
    """The shapes, where new copies that are complete note the epoch that made them so. `stale`: whose are not."""
    waiting = {one.table for one in stale}

    def noted(shape: TableShape) -> TableShape:
        renews = shape.renews
        if renews is None or renews.at or shape.table in waiting:
            return shape
        return structs.replace(shape, renews=Renewal(renews.of, epoch))

    return shapes.replaced({shape.table: noted(shape) for shape in shapes})


def _made_since(stale: Stale, segments: Mapping[str, SegmentReceipt]) -> Stale:
    """A stale table, with where tables of its name were made."""
    births = dict(stale.births)
    for shard, segment in segments.items():
        birth = segment.existence.birth_after(stale.table, births.pop(shard, None))
        if birth is not None:
            births[shard] = birth
    return stale if births == stale.births else structs.replace(stale, births=births)


def _of_arrived(
    copies: Mapping[tuple[Chunk, ...], ChunkReceipt | Failed], arrived: Collection[str]
) -> dict[tuple[Chunk, ...], ChunkReceipt | Failed]:
    """The copies of shards that arrived."""
    return {group: receipt for group, receipt in copies.items() if group[0].shard in arrived}


@dataclass(frozen=True)
class _Log:
    """What the segments say of each shard's tables, and the catalog's word.

    `met`: each table as the last row event described it, by shard. `passages`: of the tables that were altered.
    `written`: those of them of which the segments wrote changes.
    """

    met: dict[TableId, dict[str, Table]]
    passages: dict[ShardTable, Passage]
    written: frozenset[ShardTable]

    @classmethod
    def of(cls, segments: Mapping[str, SegmentReceipt], catalog: Mapping[ShardTable, Table]) -> "_Log":
        met: dict[TableId, dict[str, Table]] = {}
        passages: dict[ShardTable, Passage] = {}
        for shard, segment in segments.items():
            for one in segment.met:
                met.setdefault(one.table.id, {})[shard] = one.table
            for table, passage in segment.passages().items() if segment.altered else ():
                of = ShardTable(shard, table)
                passages[of] = replace(passage, catalog=catalog.get(of))
        # `written` is needed only of shards that altered a table.
        written = frozenset(
            ShardTable(shard, output.table)
            for shard in {shard for shard, _ in passages}
            for output in segments[shard].outputs
        )
        return cls(met, passages, written)


def _shapes(previous: Manifest, log: _Log, epoch: int, reasons: dict[TableId, str]) -> Shapes:
    """The shapes after an epoch, of followed tables that did not stop. Those whose shards do not agree stop, too. It
    looks at the tables alone of which the log says something."""
    known = previous.followed
    after: dict[TableId, TableShape | None] = dict.fromkeys(reasons)
    altered = {table for _, table in log.passages}
    for table in sorted((altered | log.met.keys()) - reasons.keys()):
        shape = known.by_table.get(table)
        if shape is None or (table not in altered and _is_met(shape, log.met[table])):
            continue
        try:
            after[table] = _shape(shape, previous.shards_of(table), log, epoch)
        except SourceError as why:
            reasons[table], after[table] = str(why), None
    return known.replaced(after)


def _carried(previous: Manifest, followed: Shapes) -> Shapes:
    """Those of the shapes that are of no shadow table."""
    shapes = Shapes(one for one in followed if one.place_of is None)
    return previous.known if shapes == previous.known else shapes


def _is_met(shape: TableShape, met: Mapping[str, Table]) -> bool:
    """Whether every shard with rows showed all columns of the shape, as nearly always: then nothing has changed."""
    columns = shape.definition.columns
    everywhere = not any(column.missing for column in shape.columns if column.live)
    return everywhere and all(table.columns == columns for table in met.values())


def _shape(shape: TableShape, shards: Sequence[str], log: _Log, epoch: int) -> TableShape:
    """The shape after an epoch. Raises Unsupported when a shard's task has written a column's values elsewhere.

    Each task knows the other shards as of the epoch before. So shards that only add columns come first here. Each joins
    a column that another shard drops in the same epoch, as its task has done.
    """
    met = log.met.get(shape.table, {})
    altered = {shard: of for shard in shards if (of := ShardTable(shard, shape.table)) in log.passages}
    passages = {shard: Passage(met=table) for shard, table in met.items()}
    passages |= {shard: log.passages[of] for shard, of in altered.items()}
    for shard, passage in passages.items():
        if passage.catalog is None:
            must_fill_none(shape, shard, passage.behind)
    after = shape
    for shard in sorted((s for s in shards if s in passages), key=lambda shard: passages[shard].drops):
        after = shape_after(after, shard, shards, passages[shard], epoch)
    if len(altered) > 1:
        for shard, of in altered.items():
            if of in log.written:
                alone = shape_after(shape, shard, shards, replace(passages[shard], catalog=None), epoch)
                _must_agree(shard, alone, after, list(altered))
    return after


def _must_agree(shard: str, alone: TableShape, after: TableShape, altered: Sequence[str]) -> None:
    columns = _physical(after, shard)
    for name, physical in _physical(alone, shard).items():
        if columns.get(name) != physical:
            raise Unsupported(
                f"{after.table}: column {name} was added on shard {shard}, and dropped on another of the shards "
                f"{', '.join(altered)}, between two epochs, so that its values cannot be told from the old "
                f"column's; {AGAIN.format(table=after.table)}; next time let an epoch pass between the two"
            )


def _physical(shape: TableShape, shard: str) -> dict[str, str]:
    """Where the values of a shard's columns lie."""
    return {c.column.name.lower(): c.physical for c in shape.columns if c.live and shard not in c.missing}


@dataclass
class _Accepted:
    chunks: dict[ShardTable, list[tuple[Chunk, int]]]
    outputs: list[tuple[str, Output]]
    rows: dict[TableId, int]
    refused: list[tuple[Chunk, str]]
    bytes: int = 0


def _accept(copies: Mapping[tuple[Chunk, ...], ChunkReceipt | Failed], altered: set[ShardTable]) -> _Accepted:
    """Per table and shard the unbroken prefix of delivered chunks; a group counts for a table as far as it
    came.
    """
    accepted = _Accepted({}, [], {}, [])
    broken: dict[ShardTable, str] = {key: "the table was altered in this epoch" for key in altered}
    for group, receipt in copies.items():
        shard = group[0].shard
        copied = {c.chunk: c for c in receipt.copied} if isinstance(receipt, ChunkReceipt) else {}
        reasons = dict(receipt.refused) if isinstance(receipt, ChunkReceipt) else {}
        whole = str(receipt.error) if isinstance(receipt, Failed) else "not delivered"
        outputs: dict[TableId, list[Output]] = {}
        for output in receipt.outputs if isinstance(receipt, ChunkReceipt) else ():
            outputs.setdefault(output.table, []).append(output)
        of_table: dict[TableId, list[Chunk]] = {}
        for chunk in group:
            of_table.setdefault(chunk.table, []).append(chunk)
        for table, planned in of_table.items():
            delivered = [copied[chunk] for chunk in planned if chunk in copied]
            of = ShardTable(shard, table)
            if of in broken:
                accepted.refused += [(chunk, broken[of]) for chunk in planned]
                continue
            accepted.chunks.setdefault(of, []).extend((c.chunk, c.rows) for c in delivered)
            accepted.bytes += sum(c.bytes for c in delivered)
            accepted.rows[table] = accepted.rows.get(table, 0) + sum(c.rows for c in delivered)
            accepted.outputs += [(shard, output) for output in outputs.get(table, ())]
            missing = planned[len(delivered) :]
            if missing:
                broken[of] = "a chunk before it was not delivered"
                accepted.refused += [(chunk, reasons.get(chunk, whole)) for chunk in missing]
    return accepted


def _cut(
    before: Cut,
    plan: Plan,
    segments: Mapping[str, SegmentReceipt],
    chunks: Mapping[ShardTable, Sequence[tuple[Chunk, int]]],
) -> Cut:
    """The cut of an epoch. Shards without a segment inherit their state (the chain rule, DESIGN 3)."""
    copied: dict[str, dict[TableId, Sequence[tuple[Chunk, int]]]] = {}
    for (shard, table), found in chunks.items():
        copied.setdefault(shard, {})[table] = found
    shards = {
        shard: _arrived(state, segments[shard], copied.get(shard, {})) if shard in segments else state
        for shard, state in before.shards.items()
    }
    return Cut(plan.epoch, plan.tick.time_us, shards)


def _arrived(
    state: ShardState, segment: SegmentReceipt, chunks: Mapping[TableId, Sequence[tuple[Chunk, int]]]
) -> ShardState:
    """The copies are the same tuple where nothing was copied, so that others see it at a glance."""
    copies = state.copies
    if chunks:
        copies = tuple(_advanced(copy, chunks.get(copy.table, ())) for copy in copies)
    definitions = state.definitions if segment.definitions is None else segment.definitions
    return ShardState(segment.reached, segment.sealed, copies, definitions, segment.keys)


def _advanced(copy: Copy, chunks: Sequence[tuple[Chunk, int]]) -> Copy:
    return copy if copy.done else copy.advanced([c for c, _ in chunks], sum(rows for _, rows in chunks))


def manifest(
    previous: Manifest,
    plan: Plan,
    gathered: Gathered,
    files: Mapping[TableId, Sequence[DataFile]],
    absent: Mapping[str, int],
) -> Manifest:
    """The manifest. `files` are those of the outputs and those that the driver wrote for inline ones.

    `absent` says as of when the shards stand that inherited their state.
    """
    after, before = gathered.followed, previous.followed
    # Of the log alone: chunks of collated keys lie among the changes, but their rows are copied ones.
    followed: dict[TableId, list[Output]] = {}
    for segment in gathered.segments.values():
        for output in segment.outputs:
            followed.setdefault(output.table, []).append(output)
    touched = {table for table, written in files.items() if written}
    if after is not before:
        touched |= {shape.table for shape in after if shape != before.by_table.get(shape.table)}
    deltas = []
    for table in sorted(touched & after.tables):
        shape, written = after.by_table[table], tuple(files.get(table, ()))
        changes = followed.get(table, [])
        deltas.append(
            TableDelta(
                shape=shape,
                files=written,
                upserts=sum(o.upserts for o in changes),
                deletes=sum(o.deletes for o in changes),
                copied=gathered.copied_rows.get(table, 0),
            )
        )
    return Manifest(
        feed=previous.feed,
        previous=previous.epoch,
        window_us=plan.tick.window_us,
        cut=gathered.cut,
        shapes=gathered.shapes,
        deltas=tuple(deltas),
        changes=sum(d.upserts + d.deletes for d in deltas),
        log_bytes=gathered.log_bytes,
        chunk_bytes=gathered.chunk_bytes,
        outside=previous.outside,
        absent=dict(absent),
        stale=gathered.stale,
        shadows=gathered.shadows,
    )
