"""A task that reads one shard's log for an epoch and writes the net changes."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import msgspec
import pyarrow as pa

from catchment.flow.capture.identity import must_be_same_log
from catchment.flow.capture.stretch import OnImages, Stretch, read_stretch
from catchment.flow.epoch.columns import shape_after
from catchment.flow.epoch.definitions import Followed
from catchment.flow.epoch.shape import logged_kinds
from catchment.flow.epoch.xa import Commits, commits
from catchment.flow.rewind.ranges import follows_log
from catchment.flow.rewind.spool import Spool
from catchment.flow.rewind.states import in_commit_order, net, without_values, without_voids
from catchment.model.chunk import Progress, chunk_key
from catchment.model.epoch import Part, TableShape
from catchment.model.position import Resets
from catchment.model.table import Table, TableId
from catchment.spark.emit import emit
from catchment.spark.log_checks import alterations, arrived, must_be_whole, must_keep_keys
from catchment.spark.prepared import read_prepared
from catchment.spark.work import Alteration, Output, SegmentReceipt, SegmentTask


def read_segment(task: SegmentTask) -> SegmentReceipt:
    """Read (start, stop], keep the last state of every followed key, write them; raises CatchmentError."""
    shapes = {shape.table: shape for shape in task.shapes}
    with ExitStack() as stack:
        spools: dict[TableId, Spool] = {}
        met: dict[TableId, Table] = {}

        def on_images(table: Table, batch: pa.RecordBatch, *, late: bool = False) -> None:
            if not late or table.id not in met:
                met[table.id] = table
            images = pa.Table.from_batches([batch])
            mask = follows_log(images, chunk_key(_keyed(table, shapes)), _progress(task, table.id))
            if table.id not in spools:
                spools[table.id] = stack.enter_context(Spool(shapes[table.id].key))
            spools[table.id].add(images if mask is None else images.filter(pa.array(mask)))

        followed = Followed(shapes, task.definitions)
        stretch, resets = _read(task, shapes, on_images, followed)
        altered = alterations(task.endpoint.shard, shapes, stretch)
        must_keep_keys(task.endpoint, task.shapes, stretch)
        ends = commits(task.endpoint.shard, task.start.prepared, stretch.xa)
        log_bytes = stretch.read_bytes + read_prepared(
            task.endpoint,
            task.start.server,
            ends.earlier,
            shapes=task.shapes,
            before="key",
            on_images=partial(on_images, late=True),
            definitions=task.definitions,
        )
        outputs = []
        for number, (table, spool) in enumerate(sorted(spools.items())):
            mine = [a for a in altered if a.effect.table == table]
            effects = [a.effect for a in mine]
            seen = [met[table]] if table in met else []
            shape = shape_after(
                shapes[table], task.endpoint.shard, task.target.shards, seen, effects, task.target.epoch
            )
            output = _write(task, stretch, ends, spool, shape, mine, number)
            if output is not None:
                outputs.append(output)
    receipt = _receipt(task, stretch, resets, tuple(outputs), tuple(altered), tuple(met.values()))
    return replace(receipt, log_bytes=log_bytes, definitions=tuple(followed.now.values()))


def _keyed(table: Table, shapes: dict[TableId, TableShape]) -> Table:
    return Table(table.id, table.columns, shapes[table.id].key)


def _progress(task: SegmentTask, table: TableId) -> Progress:
    return task.progress.get(table, Progress(task.endpoint.shard, table, done=True))


def _read(
    task: SegmentTask, shapes: dict[TableId, TableShape], on_images: OnImages, followed: Followed
) -> tuple[Stretch, Resets]:
    # Before the log is read: a reset that comes later is noticed in the next epoch.
    resets = must_be_same_log(task.endpoint, task.start)
    stretch = read_stretch(
        task.endpoint,
        task.start.server,
        task.start.at,
        task.stop,
        keys={table: shape.key for table, shape in shapes.items()},
        kinds={table: logged_kinds(shape) for table, shape in shapes.items()},
        definitions=followed.now,
        on_ddl=followed.on_ddl,
        before="key",
        on_images=on_images,
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
    def tables() -> Iterator[pa.Table]:
        for images in spool.tables():
            kept = in_commit_order(without_voids(images, stretch.voids), ends.moves)
            for alteration in altered:
                kept = without_values(kept, alteration.effect.dropped, alteration.group)
            if kept.num_rows:
                yield net(kept, shape.key)

    return emit(tables(), shape, task.endpoint.shard, Part.CHANGES, task.target, number)


def _receipt(
    task: SegmentTask,
    stretch: Stretch,
    resets: Resets,
    outputs: tuple[Output, ...],
    altered: tuple[Alteration, ...],
    met: tuple[Table, ...],
) -> SegmentReceipt:
    position, sealed = arrived(task.endpoint, task.start, task.sealed, stretch, task.stop)
    return SegmentReceipt(
        shard=task.endpoint.shard,
        reached=msgspec.structs.replace(position, resets=resets),
        sealed=sealed,
        outputs=outputs,
        altered=altered,
        met=met,
        groups=stretch.groups,
        log_bytes=stretch.read_bytes,
        event_time=stretch.event_time,
    )
