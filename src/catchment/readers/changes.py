"""A task that reads one shard's log for an epoch and writes the net changes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_

import msgspec
import pyarrow as pa

from catchment.epoch.work import Output, SegmentReceipt, SegmentTask
from catchment.epoch.xa import Commits, commits
from catchment.model.definition import Definition
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import SourceError, Unsupported
from catchment.model.position import LogOffset, Resets, reaches
from catchment.model.table import TableId
from catchment.readers.begin import Begin, begin_of
from catchment.readers.checks import arrived, must_be_whole, must_keep_keys, went_through
from catchment.readers.key_images import KeyImages, keys_of, with_referenced
from catchment.readers.segment_images import SegmentImages
from catchment.readers.set_aside import set_aside
from catchment.readers.swaps import swaps, without_columns
from catchment.readers.unread import unread
from catchment.readers.xa_rows import PreparedRows
from catchment.rewind.retyped import together
from catchment.rewind.spool import Spool
from catchment.rewind.states import (
    behind,
    in_commit_order,
    last_images,
    states_of,
    with_name,
    with_value,
    without_values,
    without_voids,
)
from catchment.schema.columns import shape_after, table_on
from catchment.schema.ddl import Columns, Here
from catchment.schema.events import SchemaEvent, tables_here
from catchment.schema.existence import existence
from catchment.schema.follow import Followed
from catchment.schema.indexes import touched_by
from catchment.schema.last_names import name_behind
from catchment.schema.passage import Alteration, MetTable, Passage, Stopped
from catchment.source.identity import same_log
from catchment.source.log import read_log
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.cells.masks import kept_type
from catchment.wire.cells.types import scalar_of
from catchment.wire.log.facts import Ddl


def read_segment(task: SegmentTask) -> SegmentReceipt:  # noqa: PLR0915 (steps whose order counts)
    """Read (start, stop], keep the last state of every followed key, write them; raises CatchmentError."""
    shapes, own, shard = task.known.by_table, task.here, task.endpoint.shard
    here = tables_here(own, shard)
    start = task.start.position
    defined = task.born.defined if task.born is not None else None
    followed = Followed(shapes, task.start.definitions, here, defined)
    family = KeyImages(task, own, keys_of(task))
    with SegmentImages(shard, shapes, task.start.copying) as images:
        stretch, resets = _read(task, images, followed, family)
        aside = _not_told(task, stretch, here) | followed.lost
        must_be_whole(shard, start, task.stop, stretch, aside)
        events = tuple(followed.events.of(stretch.facts))
        begin = None if task.born is None else begin_of(shard, task.born, events)
        if defined is not None:
            events = tuple(one for one in events if not _defined(one, defined))
        stored = StoredAt(task.endpoint, start.server, start.at, stretch.at, events)
        went = went_through(shard, shapes, stored, task.changes, task.aside, task.known.unseen)
        altered = went.altered
        stopped = aside | {one.table: one for one in went.stopped}
        stopped |= _without_keys(task, own, stopped, stored)
        stopped |= family.renamed(altered)
        exists = existence(events, start)
        ends = commits(shard, start.prepared, stretch.xa)
        swapped = swaps([own[t] for t in task.known.unseen if t in own], events, exists, stopped)
        prepared = _prepared(task, ends, family)
        for part in prepared:
            images.add(part)
            family.add(part)
        # Whatever else became of such a table, its rows of this stretch are not all there.
        lacking = unread(shard, stretch.facts) | prepared.unread | images.keyless | followed.lost
        stopped = lacking | stopped | images.keyless
        swapped = {table: one for table, one in swapped.items() if table not in lacking}
        became = family.follow(stretch, ends, events, stopped)
        stopped |= became.stopped
        met = images.met() if begin is None else begin.of_table(images.met())
        outputs = []
        for number, table in enumerate(sorted(images.spools.keys() | became.fates.keys())):
            if table in stopped and table not in swapped:
                continue
            mine = [a for a in altered if a.effect.table == table]
            try:
                passage = Passage.of(met.get(table), mine)
                holders = task.holders.get(table, task.target.shards)
                shape = shape_after(shapes[table], shard, holders, passage, task.target.epoch)
            except SourceError as why:
                if not task.changes.follows(table):
                    raise
                stopped[table] = Stopped(table, str(why))
                swapped.pop(table, None)
                continue
            spool = images.spools.get(table) or Spool(shape.key)
            states = became.of(table, _states(task, stretch, ends, spool, shape, mine, begin))
            output = task.target.emit(states, shape, shard, Part.CHANGES, number)
            if output is not None:
                outputs.append(output)
    altered = [one for one in altered if one.effect.table not in stopped]
    known = tuple(one for one in met.values() if one.table.id not in stopped)
    receipt = _receipt(task, stretch, resets, tuple(outputs), tuple(altered), known)
    return replace(
        receipt,
        log_bytes=stretch.read_bytes + prepared.read_bytes,
        definitions=_definitions(task, followed.now, stopped),
        existence=exists,
        stopped=tuple(one for one in stopped.values() if one.table not in swapped),
        keys=became.keys,
        swapped=tuple(swapped.values()),
    )


def _not_told(task: SegmentTask, stretch: Stretch, here: Here) -> dict[TableId, Stopped]:
    """The tables that a stretch does not tell: by an order, since nobody sees them, or since they cannot be read. Of
    others that would end a run."""
    shard = task.endpoint.shard
    unseen = without_columns(shard, stretch.facts, task.known.unseen)
    return unread(shard, stretch.facts) | unseen | set_aside(shard, stretch.facts, here, task.aside)


def _defined(event: SchemaEvent, until: LogOffset) -> bool:
    """Whether a DDL did nothing but define the tables as they are known."""
    return isinstance(event.fact, Ddl) and reaches(until, event.at)


def _prepared(task: SegmentTask, ends: Commits, family: KeyImages) -> PreparedRows:
    """The rows of transactions that were prepared in front of the stretch and end in it."""
    wanted = Wanted.of(task.known, task.start.definitions, mask_key=task.mask_key)
    wanted = with_referenced(wanted, family.keys)
    return PreparedRows(task.endpoint, task.start.position.server, ends.earlier, wanted)


def _without_keys(
    task: SegmentTask,
    here: Mapping[TableId, TableShape],
    stopped: Collection[TableId],
    stored: StoredAt,
) -> dict[TableId, Stopped]:
    """The tables of which an index was dropped by which the lake tells their rows apart."""
    found = {}
    for table in sorted(touched_by(stored.events, here)):
        if table in stopped:
            continue
        try:
            must_keep_keys(task.endpoint, task.start.position.server, [here[table]], stored.events, stored.at)
        except Unsupported as why:
            if not task.changes.follows(table):
                raise
            found[table] = Stopped(table, str(why))
    return found


def _definitions(
    task: SegmentTask, now: Mapping[TableId, Definition], stopped: Collection[TableId]
) -> tuple[Definition, ...] | None:
    """Those behind the stretch; None where DDL changed none."""
    known = task.start.definitions
    after = tuple(one for one in now.values() if one.table not in stopped)
    return None if len(after) == len(known) and all(map(is_, after, known)) else after


def _read(
    task: SegmentTask, images: SegmentImages, followed: Followed, family: KeyImages
) -> tuple[Stretch, Resets]:
    # Before the log is read: a reset that comes later is noticed in the next epoch.
    start = task.start.position
    wanted = Wanted.of(task.known, task.start.definitions, mask_key=task.mask_key).along(followed)
    wanted = with_referenced(wanted, family.keys)
    session, resets = same_log(task.endpoint, start)
    with read_log(task.endpoint, start.server, start, task.stop, wanted).on(session) as log:
        for part in log.images():
            images.add(part)
            family.add(part)
    return log.stretch, resets


def _states(
    task: SegmentTask,
    stretch: Stretch,
    ends: Commits,
    spool: Spool,
    shape: TableShape,
    altered: list[Alteration],
    begin: Begin | None,
) -> Iterator[pa.Table]:
    """The last states of a table's rows, as its log tells them."""
    columns = table_on(shape, task.endpoint.shard).columns
    kinds = ((column.name, kept_type(shape.rules, column)) for column in columns)
    types = {name: kind for name, kind in kinds if kind is not None}
    effects = [alteration.effect for alteration in altered]
    widened = {
        name
        for place, effect in enumerate(effects)
        for told in effect.modified
        if (name := name_behind(told.column, effects[place:])) is not None
    }

    def last(images: pa.Table) -> pa.Table:
        return last_images(in_commit_order(without_voids(images, stretch.voids), ends.moves), shape.key)

    for images in spool.tables(last):
        kept = images if begin is None else begin.since(images)
        for place, alteration in enumerate(altered):
            if alteration.effect.emptied:
                kept = behind(kept, alteration.group)
            kept = without_values(kept, alteration.effect.dropped, alteration.group)
            for one in alteration.effect.renamed:
                kept = with_name(kept, one.old, one.new, alteration.group)
            kept = _with_values(kept, shape, alteration, effects[place + 1 :], types)
        if kept.num_rows:
            yield _together(task, shape, states_of(kept), types, widened)


def born_states(
    task: SegmentTask, stretch: Stretch, ends: Commits, spool: Spool, shape: TableShape, begin: Begin
) -> Iterator[pa.Table]:
    """The last states of the rows of a table that the log made and nothing altered since. Raises CutMissed for a row in
    front of its last definition."""
    return _states(task, stretch, ends, spool, shape, [], begin)


def _with_values(
    images: pa.Table,
    shape: TableShape,
    alteration: Alteration,
    later: Sequence[Columns],
    types: Mapping[str, pa.DataType],
) -> pa.Table:
    """The images with the values that columns came with by an ALTER. Those that no row event of the shard shows are
    filled by the shape, which may have them from another shard already. `types`: of the columns that the shard has."""
    for told in alteration.effect.filled:
        name = name_behind(told.column, later)
        column = shape.column(name) if name is not None else None
        kind = None if column is None else types.get(column.column.name)
        if kind is not None and told.value is not None:
            images = with_value(images, told.column, scalar_of(told.value, kind), alteration.group)
    return images


def _together(
    task: SegmentTask,
    shape: TableShape,
    rows: pa.Table,
    types: Mapping[str, pa.DataType],
    widened: Collection[str],
) -> pa.Table:
    try:
        return together(rows, types, widened)
    except ValueError as why:
        raise SourceError(
            f"shard {task.endpoint.shard}: {shape.table} was altered, and the log does not say how: {why}; start a new "
            "feed to copy it again"
        ) from None


def _receipt(
    task: SegmentTask,
    stretch: Stretch,
    resets: Resets,
    outputs: tuple[Output, ...],
    altered: tuple[Alteration, ...],
    met: tuple[MetTable, ...],
) -> SegmentReceipt:
    arrival = arrived(task.endpoint, task.start.position, task.start.sealed, stretch, task.stop)
    return SegmentReceipt(
        shard=task.endpoint.shard,
        reached=msgspec.structs.replace(arrival.position, resets=resets),
        sealed=arrival.sealed,
        outputs=outputs,
        altered=altered,
        met=met,
        groups=stretch.groups,
        log_bytes=stretch.read_bytes,
        event_time=stretch.event_time,
    )
