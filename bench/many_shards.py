"""What the driver does for an epoch of 100, 300 and 1,000 shards with 50 tables each: no server, no task, real records.

A twentieth of the shards has moved, or all of them; each one that has brings rows of every table. State store and lake
are real, on the disk of temporary files. Run: `python -m bench --only shards`.
"""

import pickle
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

import pyarrow as pa
from prometheus_client import CollectorRegistry

from bench.figures import Figure, figure
from catchment.epoch.gather import gather, manifest
from catchment.epoch.standstill import Standstill
from catchment.epoch.work import FewRows, Output, SegmentReceipt
from catchment.feed.applier import Applier
from catchment.feed.clock import Clock
from catchment.feed.planner import Limits, Planner
from catchment.feed.policies import Policies
from catchment.feed.tasks import TaskMaker
from catchment.feed.unmoved import inherited, unmoved
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import DataFile, LakeColumn, Manifest, Part, Plan, TableDelta, TableShape
from catchment.model.position import Gtid, GtidList, LastEvent, LogOffset, Position, Resets, Server
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.model.treatment import Changes, SchemaChange
from catchment.schema.passage import MetTable
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.sink.delta.upkeep.lake import DeltaLake
from catchment.state.lease import Lease, hold
from catchment.state.store import Store
from catchment.watch.metrics import Metrics

SHARDS = (100, 300, 1000)
TABLES = 50
COLUMNS = 10
EPOCHS = 5
# How many of the shards have moved: one of so many.
MOVED = {"1 of 20 moved": 20, "all moved": 1}
FEED = "bench"
STEPS = ("plan", "gather", "manifest", "tables", "commit", "metrics")
_SECOND = 1_790_000_000
Spent = dict[str, float]


def run(runs: int = 1, sizes: Sequence[int] = SHARDS) -> list[Figure]:
    """CPU seconds of an epoch by what it does, each beside that of the fewest shards; bytes that it writes.

    `tables` are the commits of the lake tables, whose number is that of the tables with changes.
    """
    figures = []
    for said, every in MOVED.items():
        found = {shards: [_measured(shards, every) for _ in range(runs)] for shards in sizes}
        for shards in sizes:
            name = f"{shards} shards x {TABLES} tables, {said}"
            for step in (*STEPS, "all but tables"):
                here, few = ([_of(spent, step) for spent in found[n]] for n in (shards, sizes[0]))
                figures.append(figure(f"{name}: {step}", here, "CPU s", f"{sizes[0]} shards", few, 3))
            for step in ("store bytes", "row bytes"):
                here, few = ([spent[step] for spent in found[n]] for n in (shards, sizes[0]))
                figures.append(figure(f"{name}: {step}", here, "bytes", f"{sizes[0]} shards", few))
    return figures


def _of(spent: Spent, step: str) -> float:
    return sum(spent[s] for s in STEPS if s != "tables") if step == "all but tables" else spent[step]


class _Answers:
    """The clock's answer without a clock: nobody said RESET."""

    def resets(self, shards: Collection[str]) -> dict[str, Resets]:
        return dict.fromkeys(shards, Resets(0, _SECOND, int(time.time())))


class _Sink(DeltaLake):
    """Counts what the commits of the tables take."""

    seconds = 0.0

    def apply(self, manifest: Manifest, fence: int) -> dict[str, int]:
        began = time.process_time()
        versions = super().apply(manifest, fence)
        self.seconds += time.process_time() - began
        return versions


class _Feed:
    """A feed whose rows are copied, and whose shards move on when told."""

    def __init__(self, root: Path, shards: int, store: Store, lease: Lease) -> None:
        self.names = [f"s{number:04}" for number in range(shards)]
        self.endpoints = {name: Endpoint(name, "127.0.0.1", 3306, "catchment", "") for name in self.names}
        kind = ColumnType(Kind.BIGINT)
        columns = tuple(LakeColumn(Column(f"c{n}", kind), f"c{n}") for n in range(COLUMNS))
        shapes = tuple(TableShape(TableId("shop", f"t{n:03}"), columns, ("c0",)) for n in range(TABLES))
        self.met = tuple(MetTable(shape.definition, 0) for shape in shapes)
        self.lake = root / "lake"
        self.sink = _Sink(UpkeepOrder(str(self.lake), FEED, 0, 3600.0), 10.0)
        self.applier = Applier(store, lease, self.sink, threading.Event())
        self.tasks = TaskMaker(
            self.endpoints, self.sink.writer, Policies(lambda tables: Changes(SchemaChange.EVOLVE))
        )
        self.planner = Planner(self.endpoints, Limits(0.5, 100_000, 2, 1 << 26))
        self.standstill = Standstill()
        states = {name: self._state(number, shapes) for number, name in enumerate(self.names)}
        self.standing = Manifest(
            feed=FEED,
            previous=0,
            window_us=100,
            cut=Cut(_SECOND << 32, _SECOND * 1_000_000, states),
            shapes=shapes,
            deltas=tuple(TableDelta(shape, ()) for shape in shapes),
        )
        self.metrics = Metrics(
            self.standing, dict.fromkeys(self.names, 86400.0), registry=CollectorRegistry()
        )

    def begin(self) -> None:
        """The first epoch, which makes the tables."""
        self.applier.store.put_manifest(self.standing, self.applier.lease.fence)
        self.applier.apply(self.standing)

    def epoch(self, turn: int, every: int) -> Iterator[str]:
        """An epoch in which each `every`-th shard has moved; the name of each step when it is done."""
        previous, store, fence = self.standing, self.applier.store, self.applier.lease.fence
        offsets = {
            name: LogOffset("binlog.000001", at.at.offset + 1000 * ((number + turn) % every == 0))
            for number, (name, at) in enumerate(previous.cut.positions.items())
        }
        number = previous.epoch + (1 << 32)
        tick = Tick(number, (number >> 32) * 1_000_000, 100, offsets)
        yield ""
        still = unmoved(previous.cut, tick)
        self.planner.groups(previous.cut, previous.shapes, tick)
        plan = Plan(number, previous.epoch, tick, previous.cut.floors, (), self.standstill.refusals)
        store.put_plan(plan, fence)
        rested = inherited(previous.cut, still, cast(Clock, _Answers()), self.endpoints)
        arrived = {receipt.shard: receipt for receipt in rested}
        tasks = self.tasks.segments(previous, plan, str(fence), still)
        yield "plan"
        assert len(tasks) + len(still) == len(self.names)
        arrived |= {task.endpoint.shard: self._receipt(task.endpoint.shard, tick) for task in tasks}
        yield ""
        gathered = gather(previous, plan, arrived, {}, {})
        held = self.planner.held
        self.standstill.count(previous.cut, gathered.cut, gathered.refused, {}, held)
        yield "gather"
        files = {
            shape.table: [
                DataFile(f"_part=changes/{number}-{shape.table.name}.parquet", 1000, 10, Part.CHANGES, "{}")
            ]
            for shape in previous.shapes
        }
        yield ""
        read = manifest(previous, plan, gathered, files, {})
        store.put_manifest(read, fence)
        yield "manifest"
        self.standing = read
        self.applier.apply(read)
        yield "commit"
        self.metrics.observe(read, {"plan": 0.1, "read": 0.1, "apply": 0.1})
        yield "metrics"

    def _receipt(self, shard: str, tick: Tick) -> SegmentReceipt:
        number, at = self.names.index(shard), tick.offsets[shard]
        outputs = tuple(Output(one.table.id, Part.CHANGES, FewRows(pa.table({})), 1, 0) for one in self.met)
        reached = self._position(number, at.offset)
        receipt = SegmentReceipt(shard, reached, at, outputs, (), self.met, 1, 1000, _SECOND)
        # As one that comes from a task: it shares no value with another.
        return cast(SegmentReceipt, pickle.loads(pickle.dumps(receipt)))

    def _state(self, number: int, shapes: Sequence[TableShape]) -> ShardState:
        position = self._position(number, 0)
        copies = (Copy(s.table, (10**6,), (10**6,), True, 10**6, 10**6) for s in shapes)
        return ShardState(position, position.at, tuple(copies))

    def _position(self, number: int, offset: int) -> Position:
        return Position(
            LogOffset("binlog.000001", offset),
            _SECOND,
            Server(number, f"db{number}.example.com", 3306),
            GtidList((Gtid(0, number, offset),)),
            Resets(0, _SECOND, _SECOND),
            event=LastEvent(31, offset),
        )


def _measured(shards: int, every: int) -> Spent:
    """Means of EPOCHS epochs, after one that is not counted."""
    with _feed(shards) as feed:
        feed.begin()
        _epoch(feed, 0, every)
        spent: Spent = dict.fromkeys((*STEPS, "store bytes", "row bytes"), 0.0)
        for turn in range(1, EPOCHS + 1):
            for step, value in _epoch(feed, turn, every).items():
                spent[step] += value / EPOCHS
        return spent


def _epoch(feed: _Feed, turn: int, every: int) -> Spent:
    spent: Spent = dict.fromkeys(STEPS, 0.0)
    feed.sink.seconds = 0.0
    before = time.process_time()
    for step in feed.epoch(turn, every):
        now = time.process_time()
        if step:
            spent[step] += now - before
        before = time.process_time()
    spent["tables"] = feed.sink.seconds
    spent["commit"] -= spent["tables"]
    return spent | {"store bytes": _record_bytes(feed), "row bytes": _row_bytes(feed)}


def _record_bytes(feed: _Feed) -> float:
    """Of the newest plan, manifest and commit."""
    query = "SELECT SUM(LENGTH(record)) FROM catchment_record WHERE epoch = %d"
    with feed.applier.store.database.transaction() as connection:
        return float(connection.exec_driver_sql(query % feed.standing.epoch).scalar_one())


def _row_bytes(feed: _Feed) -> float:
    """Of the newest file of the epochs table."""
    files = (feed.lake / "_catchment" / "epochs").glob("*.parquet")
    return float(max(files, key=lambda file: file.stat().st_mtime_ns).stat().st_size)


@contextmanager
def _feed(shards: int) -> Iterator[_Feed]:
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory:
        root = Path(directory)
        with closing(Store.open(f"sqlite:///{root}/state.db", FEED)) as store, hold(store) as lease:
            yield _Feed(root, shards, store, lease)
