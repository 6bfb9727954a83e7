"""A task that reads one shard's log for an epoch and writes the net changes."""

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from catchment.flow.capture.stretch import Stretch, read_stretch
from catchment.flow.epoch.chain import gtids_after, must_continue
from catchment.flow.epoch.columns import shape_after
from catchment.flow.epoch.ddl import Columns, Stop, effect, is_dml
from catchment.flow.epoch.seal import newest_sealed
from catchment.flow.rewind.ranges import follows_log
from catchment.flow.rewind.spool import Spool
from catchment.flow.rewind.states import GROUP, net, without_values, without_voids
from catchment.model.chunk import Progress, chunk_key
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import CutMissed, Unsupported
from catchment.model.errors import IncompleteImage as IncompleteImageError
from catchment.model.position import Position
from catchment.model.table import Table, TableId
from catchment.spark.emit import emit
from catchment.spark.work import Alteration, Output, SegmentReceipt, SegmentTask
from catchment.wire.facts import Checkpoint, CutOff, Ddl, Incident, IncompleteImage, Statement


def read_segment(task: SegmentTask) -> SegmentReceipt:
    """Read (start, stop], keep the last state of every followed key, write them; raises CatchmentError."""
    shapes = {shape.table: shape for shape in task.shapes}
    with ExitStack() as stack:
        spools: dict[TableId, Spool] = {}
        met: dict[TableId, Table] = {}

        def on_images(table: Table, batch: pa.RecordBatch) -> None:
            met[table.id] = table
            images = pa.Table.from_batches([batch])
            mask = follows_log(images, chunk_key(_keyed(table, shapes)), _progress(task, table.id))
            if table.id not in spools:
                spools[table.id] = stack.enter_context(Spool(shapes[table.id].key))
            spools[table.id].add(images if mask is None else images.filter(pa.array(mask)))

        stretch = _read(task, shapes, on_images)
        alterations = _alterations(task, stretch)
        outputs = []
        for number, (table, spool) in enumerate(sorted(spools.items())):
            mine = [a for a in alterations if a.effect.table == table]
            effects = [a.effect for a in mine]
            seen = [met[table]] if table in met else []
            shape = shape_after(
                shapes[table], task.endpoint.shard, task.target.shards, seen, effects, task.target.epoch
            )
            output = _write(task, stretch, spool, shape, mine, number)
            if output is not None:
                outputs.append(output)
    return _receipt(task, stretch, tuple(outputs), tuple(alterations), tuple(met.values()))


def _keyed(table: Table, shapes: dict[TableId, TableShape]) -> Table:
    return Table(table.id, table.columns, shapes[table.id].key)


def _progress(task: SegmentTask, table: TableId) -> Progress:
    return task.progress.get(table, Progress(task.endpoint.shard, table, done=True))


def _read(task: SegmentTask, shapes: dict[TableId, TableShape], on_images: object) -> Stretch:
    shard = task.endpoint.shard
    stretch = read_stretch(
        task.endpoint,
        task.start.server,
        task.start.at,
        task.stop,
        keys={table: shape.key for table, shape in shapes.items()},
        before="key",
        on_images=on_images,  # type: ignore[arg-type]
    )
    must_continue(shard, task.start, stretch.files[0].born if stretch.files else 0, stretch.first)
    if not stretch.reached_stop:
        raise CutMissed(
            f"shard {shard}: the log ends at {stretch.at}, before the planned {task.stop}; the epoch is "
            "planned again"
        )
    for fact in stretch.facts:
        if isinstance(fact, IncompleteImage):
            raise IncompleteImageError(
                f"shard {shard}, {fact.table} at {fact.at}: a row event lacks columns; set "
                "binlog_row_image=FULL globally "
                "and end the sessions that still write otherwise; then copy the table again with a new feed"
            )
        if isinstance(fact, Incident):
            raise Unsupported(
                f"shard {shard} at {fact.at}: the server logged an incident: its log is incomplete; copy "
                "again"
            )
    _check_cut_off(task, stretch)
    return stretch


def _check_cut_off(task: SegmentTask, stretch: Stretch) -> None:
    """A group cut off at the end of a file is void only where the server crashed there: the next file says
    that a server start made it. Any other early end is an error to retry."""
    for fact in stretch.facts:
        if isinstance(fact, CutOff):
            names = [file.name for file in stretch.files]
            following = names.index(fact.at.file) + 1
            if following >= len(names) or stretch.files[following].created == 0:
                raise CutMissed(
                    f"shard {task.endpoint.shard}: the log breaks off inside a group at {fact.at}; it is "
                    "read again"
                )


def _alterations(task: SegmentTask, stretch: Stretch) -> list[Alteration]:
    """What DDL in the stretch did to the chosen tables' columns; raises Unsupported where it cannot be
    followed.
    """
    chosen = {shape.table for shape in task.shapes}
    found = []
    for fact in stretch.facts:
        if not isinstance(fact, Ddl | Statement):
            continue
        did = effect(fact.sql, fact.schema, chosen)
        if is_dml(fact.sql) and (isinstance(did, Stop) or _hides_tables(fact.sql)):
            raise Unsupported(
                f"shard {task.endpoint.shard} at {fact.at}: rows were changed by a statement that the log "
                "holds as text "
                f"({fact.sql[:80]!r}); set binlog_format=ROW, end the sessions that still write "
                "otherwise, and copy the "
                "tables again with a new feed"
            )
        if isinstance(did, Stop):
            raise Unsupported(
                f"shard {task.endpoint.shard}, {did.table} at {fact.at}: {did.reason}; {did.way_out}"
            )
        if isinstance(did, Columns):
            found.append(Alteration(did, fact.group))
    return found


def _hides_tables(sql: str) -> bool:
    """Whether a statement may change tables that it does not name, through a routine."""
    first = sql.lstrip(" \t\r\n(").partition(" ")[0].upper()
    return first in ("SELECT", "DO", "CALL", "WITH", "SET")


def _write(
    task: SegmentTask,
    stretch: Stretch,
    spool: Spool,
    shape: TableShape,
    alterations: list[Alteration],
    number: int,
) -> Output | None:
    def tables() -> Iterator[pa.Table]:
        for images in spool.tables():
            _refuse_xa(task, stretch, images, shape)
            kept = without_voids(images, stretch.voids)
            for alteration in alterations:
                kept = without_values(kept, alteration.effect.dropped, alteration.group)
            if kept.num_rows:
                yield net(kept, shape.key)

    return emit(tables(), shape, task.endpoint.shard, Part.CHANGES, task.target, number)


def _refuse_xa(task: SegmentTask, stretch: Stretch, images: pa.Table, shape: TableShape) -> None:
    if stretch.xa and np.isin(images.column(GROUP).to_numpy(), list(stretch.xa)).any():
        raise Unsupported(
            f"shard {task.endpoint.shard}, {shape.table}: an XA transaction changed the table before "
            f"{stretch.at}; "
            "XA is not followed yet: exclude the table, or write it without XA and start a new feed"
        )


def _receipt(
    task: SegmentTask,
    stretch: Stretch,
    outputs: tuple[Output, ...],
    altered: tuple[Alteration, ...],
    met: tuple[Table, ...],
) -> SegmentReceipt:
    checkpoints = [fact.file for fact in stretch.facts if isinstance(fact, Checkpoint)]
    reached = Position(
        at=task.stop,
        born=stretch.files[-1].born if stretch.files else task.start.born,
        server=task.start.server,
        gtids=gtids_after(task.start.gtids, stretch.newest),
    )
    return SegmentReceipt(
        shard=task.endpoint.shard,
        reached=reached,
        sealed=newest_sealed(task.sealed, task.start.at, task.stop, stretch.last, checkpoints),
        outputs=outputs,
        altered=altered,
        met=met,
        groups=stretch.groups,
        log_bytes=stretch.read_bytes,
        event_time=stretch.event_time,
    )
