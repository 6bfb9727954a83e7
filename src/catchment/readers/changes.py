"""A task that reads one shard's log for an epoch and writes the net changes."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import msgspec
import pyarrow as pa

from catchment.epoch.work import Alteration, Output, SegmentReceipt, SegmentTask
from catchment.epoch.xa import Commits, commits
from catchment.model.chunk import Progress, chunk_key
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import SourceError
from catchment.model.image import GROUP, SEQ
from catchment.model.position import Resets
from catchment.model.table import Table, TableId
from catchment.readers.checks import alterations, arrived, must_be_whole, must_keep_keys
from catchment.readers.xa_rows import read_prepared
from catchment.rewind.keyless import with_keys
from catchment.rewind.ranges import follows_log
from catchment.rewind.retyped import Retyped, together
from catchment.rewind.spool import Spool
from catchment.rewind.states import in_commit_order, last_images, net, without_values, without_voids
from catchment.schema.columns import shape_after
from catchment.schema.effects import tables_here
from catchment.schema.existence import existence
from catchment.schema.follow import Followed
from catchment.source.identity import must_be_same_log
from catchment.source.segment import Stretch, read_stretch
from catchment.source.stored_at import StoredAt
from catchment.source.wanted import Handlers, OnImages, Wanted
from catchment.wire.cells.types import arrow_type


class Met:
    """Tables as the last of their row events describes them.

    Images of one definition come together, and those of XA transactions prepared before the stretch come last. So they
    are out of the log's order, and the number of an image tells what is newest.
    """

    def __init__(self) -> None:
        self._newest: dict[TableId, tuple[int, int, Table]] = {}

    def add(self, table: Table, batch: pa.RecordBatch) -> None:
        """Images with this definition were read."""
        number, group = batch.column(SEQ)[-1].as_py(), batch.column(GROUP)[-1].as_py()
        if table.id not in self._newest or number > self._newest[table.id][0]:
            self._newest[table.id] = number, group, table

    def tables(self, altered: Iterable[Alteration]) -> dict[TableId, Table]:
        """The tables as they are after the stretch, where a row shows that."""
        last: dict[TableId, int] = {}
        for alteration in altered:
            last[alteration.effect.table] = alteration.group
        return {
            name: table for name, (_, group, table) in self._newest.items() if group >= last.get(name, group)
        }


def read_segment(task: SegmentTask) -> SegmentReceipt:
    """Read (start, stop], keep the last state of every followed key, write them; raises CatchmentError."""
    shapes = {shape.table: shape for shape in task.shapes}
    shard = task.endpoint.shard
    with ExitStack() as stack:
        spools: dict[TableId, Spool] = {}
        retyped = {table: Retyped(shape.key) for table, shape in shapes.items()}
        met = Met()

        def on_images(table: Table, batch: pa.RecordBatch) -> None:
            met.add(table, batch)
            images = with_keys(
                pa.Table.from_batches([batch]), shapes[table.id].key, f"shard {shard}, {table.id}"
            )
            images = retyped[table.id].apart(images)
            mask = follows_log(images, chunk_key(_keyed(table, shapes)), _progress(task, table.id))
            if table.id not in spools:
                spools[table.id] = stack.enter_context(Spool(shapes[table.id].key))
            spools[table.id].add(images if mask is None else images.filter(pa.array(mask)))

        holders = {table: task.holders.get(table, task.target.shards) for table in shapes}
        here = tables_here(task.shapes, shard, holders)
        followed = Followed(shapes, task.definitions, here)
        stretch, resets = _read(task, on_images, followed)
        stored = StoredAt(task.endpoint, task.start.server, task.start.at, stretch.at, stretch.facts)
        altered = alterations(shard, shapes, stored, here, evolves=task.evolves)
        must_keep_keys(task.endpoint, task.start.server, (shapes[table] for table in here), stretch)
        ends = commits(shard, task.start.prepared, stretch.xa)
        log_bytes = stretch.read_bytes + read_prepared(
            task.endpoint,
            task.start.server,
            ends.earlier,
            Wanted.of(task.shapes, task.definitions),
            on_images,
        )
        tables = met.tables(altered)
        outputs = []
        for number, (table, spool) in enumerate(sorted(spools.items())):
            mine = [a for a in altered if a.effect.table == table]
            effects = [a.effect for a in mine]
            met_last = tables.get(table)
            shape = shape_after(shapes[table], shard, holders[table], met_last, effects, task.target.epoch)
            output = _write(task, stretch, ends, spool, shape, mine, number)
            if output is not None:
                outputs.append(output)
    receipt = _receipt(task, stretch, resets, tuple(outputs), tuple(altered), tuple(tables.values()))
    return replace(receipt, log_bytes=log_bytes, definitions=tuple(followed.now.values()))


def _keyed(table: Table, shapes: dict[TableId, TableShape]) -> Table:
    return Table(table.id, table.columns, shapes[table.id].key)


def _progress(task: SegmentTask, table: TableId) -> Progress:
    return task.progress.get(table, Progress(task.endpoint.shard, table, done=True))


def _read(task: SegmentTask, on_images: OnImages, followed: Followed) -> tuple[Stretch, Resets]:
    # Before the log is read: a reset that comes later is noticed in the next epoch.
    resets = must_be_same_log(task.endpoint, task.start)
    stretch = read_stretch(
        task.endpoint,
        task.start.server,
        task.start,
        task.stop,
        Wanted.of(task.shapes, followed.now.values()),
        Handlers(on_images, on_ddl=followed.on_ddl),
    )
    must_be_whole(task.endpoint.shard, task.start, task.stop, stretch)
    return stretch, resets


def _write(
    task: SegmentTask,
    stretch: Stretch,
    ends: Commits,
    spool: Spool,
    shape: TableShape,
    altered: list[Alteration],
    number: int,
) -> Output | None:
    types = {c.column.name: arrow_type(c.column.type) for c in shape.columns if c.live}

    def last(images: pa.Table) -> pa.Table:
        return last_images(in_commit_order(without_voids(images, stretch.voids), ends.moves), shape.key)

    def tables() -> Iterator[pa.Table]:
        for images in spool.tables(last):
            kept = images
            for alteration in altered:
                kept = without_values(kept, alteration.effect.dropped, alteration.group)
            if kept.num_rows:
                yield _together(task, shape, net(kept, shape.key), types)

    return task.target.emit(tables(), shape, task.endpoint.shard, Part.CHANGES, number)


def _together(
    task: SegmentTask, shape: TableShape, rows: pa.Table, types: dict[str, pa.DataType]
) -> pa.Table:
    try:
        return together(rows, types)
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
    met: tuple[Table, ...],
) -> SegmentReceipt:
    arrival = arrived(task.endpoint, task.start, task.sealed, stretch, task.stop)
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
        existence=existence(stretch.facts),
    )
