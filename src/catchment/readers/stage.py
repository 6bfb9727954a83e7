"""A task that SELECTs a group of chunks in front of the cut, and keeps the rows until there is one."""

from dataclasses import dataclass, field, replace

import pyarrow as pa

from catchment import world
from catchment.epoch.evidence import Between, Evidence, Marks, SnapshotAt
from catchment.epoch.staging import StageReceipt, StageTask
from catchment.epoch.work import ChunkTask, Failed, StagedGroup, StagedTable
from catchment.model.epoch import TableShape
from catchment.model.errors import CatchmentError, CutMissed, SinkError
from catchment.model.position import LogOffset
from catchment.model.strategy import Strategy
from catchment.model.table import TableId
from catchment.readers.selected import Selected, select_all
from catchment.source.marks import HIGH, LOW, marks_in, marks_session, with_marks, write_mark
from catchment.source.offsets import begun_snapshot, open_xa, snapshot_offset, snapshot_session
from catchment.source.prove import proven_floor
from catchment.source.session import Session, connect
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Images


def run_stage(task: StageTask) -> StageReceipt | Failed:
    """Stage what the task says; an error of ours comes back as a value. Each run of a task keeps its rows under names
    of its own."""
    try:
        return _staged(replace(task, name=f"{task.name}-{world.token()[:12]}"))
    except CatchmentError as error:
        error.shard = task.endpoint.shard
        return Failed(error.shard, error)


def taken_up(group: StagedGroup) -> Selected:
    """The rows that a group has staged. Raises CutMissed where they are gone: an erasure lets go of all."""
    found = Selected(refused=list(group.refused))
    for one in group.tables:
        try:
            rows, at = group.stage.take(one.name), 0
        except SinkError as gone:
            raise CutMissed(
                f"{one.table}: rows that waited for their cut are gone; they are read again for a later epoch"
            ) from gone
        for copied in one.chunks:
            found.reads.setdefault(one.table, []).append((copied, rows.slice(at, copied.rows)))
            at += copied.rows
    return found


@dataclass
class MarksMet:
    """The marks of a staged group that the log shows; none is sought of other groups. `at`: the groups of the log in
    which they stand."""

    group: StagedGroup | None
    at: dict[str, int] = field(default_factory=dict)

    @property
    def _sought(self) -> Marks | None:
        evidence = self.group.evidence if self.group is not None else None
        return evidence if isinstance(evidence, Marks) else None

    def with_theirs(self, wanted: Wanted) -> Wanted:
        """The same rows, and those of the marks."""
        return wanted if self.group is None or self._sought is None else with_marks(wanted, self.group.marks)

    def add(self, read: Images) -> None:
        """Look for them in images."""
        sought = self._sought
        if self.group is not None and sought is not None and read.table.id == self.group.marks:
            self.at |= marks_in(read, (sought.low, sought.high))

    def divided(self, task: ChunkTask, stretch: Stretch) -> Stretch:
        """The stretch, whose `boundary` is the first group that the SELECTs need not have seen: that behind the last
        cut, or a low mark. Raises CutMissed where the rows do not count at the cut up to which it was to be read."""
        if self.group is None:
            return stretch
        why = self.group.evidence.why_not(task.epoch_at, self.at)
        if not stretch.reached_stop:
            why = f"the log ends no group at {task.epoch_at}"
        if why:
            raise CutMissed(f"shard {task.endpoint.shard}: {why}; the rows are read again for a later epoch")
        sought = self._sought
        return stretch if sought is None else replace(stretch, boundary=self.at[sought.low])


def _staged(task: StageTask) -> StageReceipt:
    shapes = {shape.table: shape for shape in task.shapes}
    selected, evidence = _SELECTING[task.strategy](task, shapes)
    tables = []
    for number, (table, reads) in enumerate(selected.reads.items()):
        name = f"{task.name}-{number}"
        task.stage.put(name, pa.concat_tables([rows for _, rows in reads]))
        tables.append(StagedTable(table, name, tuple(copied for copied, _ in reads)))
    return StageReceipt(task.endpoint.shard, tuple(tables), tuple(selected.refused), evidence)


def _between_marks(task: StageTask, shapes: dict[TableId, TableShape]) -> tuple[Selected, Evidence]:
    """SELECT the chunks between two marks. XA RECOVER is asked in front of them. What was committed in front of the low
    mark, and is not listed then, is visible to them."""
    with marks_session(task.endpoint, task.server) as session:
        low = write_mark(session, task.marks, task.feed, LOW)
        listed = tuple(open_xa(session))
        selected = select_all(task.chunks, shapes, task.mask_key, lambda: connect(task.endpoint, task.server))
        high = write_mark(session, task.marks, task.feed, HIGH)
    return selected, Marks(low, high, listed)


@dataclass
class _Snapshots:
    """Sessions of a task, each in a consistent snapshot of its own, and the place in the log of the newest one."""

    task: StageTask
    at: list[LogOffset] = field(default_factory=list)

    def opened(self) -> Session:
        """One more."""
        session = connect(self.task.endpoint, self.task.server, snapshots=True)
        self.at.append(begun_snapshot(session))
        return session


def _in_a_snapshot(task: StageTask, shapes: dict[TableId, TableShape]) -> tuple[Selected, Evidence]:
    snapshots = _Snapshots(task)
    selected = select_all(task.chunks, shapes, task.mask_key, snapshots.opened)
    return selected, SnapshotAt(snapshots.at[-1])


def _after_a_floor(task: StageTask, shapes: dict[TableId, TableShape]) -> tuple[Selected, Evidence]:
    """SELECT the chunks after what is visible up to the last cut was proven: of the tables between a parent and its
    grandchildren the lake has the rows as of that."""
    if task.sealed is None:
        raise CutMissed(f"shard {task.endpoint.shard}: nothing is proven visible; copied in a later epoch")
    proven = proven_floor(task.endpoint, task.server, task.sealed, task.at, worth=1)
    opened = _Once(task).opened if task.at_once else lambda: connect(task.endpoint, task.server)
    selected = select_all(task.chunks, shapes, task.mask_key, opened)
    with snapshot_session(task.endpoint, task.server) as session:
        told = snapshot_offset(session)
    return selected, Between(proven, told, task.at_once)


@dataclass
class _Once:
    """One session in one consistent snapshot: a second one would show another moment."""

    task: StageTask
    begun: bool = False

    def opened(self) -> Session:
        """The session. Raises CutMissed where there was one."""
        if self.begun:
            raise CutMissed(f"shard {self.task.endpoint.shard}: a SELECT broke off; copied in a later epoch")
        self.begun = True
        session = connect(self.task.endpoint, self.task.server, snapshots=True)
        session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        return session


_SELECTING = {
    Strategy.WATERMARK: _between_marks,
    Strategy.SNAPSHOT: _in_a_snapshot,
    Strategy.REWIND: _after_a_floor,
}
