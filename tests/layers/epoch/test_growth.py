"""What the driver does for an epoch grows with shards and tables as their product does, and no faster.

Steps of the interpreter are counted, not seconds: the count is the same on a busy machine.
"""

import pickle
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from catchment.epoch.gather import gather, manifest
from catchment.epoch.standstill import Standstill
from catchment.epoch.work import (
    ChunkReceipt,
    CopiedChunk,
    Failed,
    FewRows,
    Nowhere,
    Output,
    SegmentReceipt,
    Task,
)
from catchment.feed.policies import Policies
from catchment.feed.tasks import TaskMaker
from catchment.model.chunk import Chunk
from catchment.model.epoch import Commit, Manifest, Part, TableShape
from catchment.model.records import encoded
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.model.treatment import Changes
from catchment.schema.passage import MetTable
from catchment.screen.progress import RunView
from catchment.watch.report import Report
from tests.world import records

TABLES, SHARDS = 4, 20
TIMES = 4
# A little more than TIMES: each call has a part that does not grow.
TIMES_MAX = 1.15 * TIMES


def steps(work: Callable[[], object]) -> int:
    """Instructions of the interpreter that `work` takes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


class Epoch:
    """An epoch in which every shard of a feed has moved, with rows of all tables, and copies a chunk of each."""

    def __init__(self, shards: int, tables: int) -> None:
        names = [f"s{number:04}" for number in range(shards)]
        ids = [TableId("shop", f"t{number:03}") for number in range(tables)]
        base, plan = records.manifest(1), records.plan(2)
        known, at = base.cut.positions["-80"], records.offset(2)
        copies = tuple(Copy(table) for table in ids)
        states = {name: ShardState(known, known.at, copies) for name in names}
        self.previous = replace(
            base,
            cut=replace(base.cut, shards=states),
            shapes=tuple(TableShape(table, base.shapes[0].columns, ("id",)) for table in ids),
            deltas=(),
        )
        self.groups = [tuple(Chunk(name, table, None, (9,)) for table in ids) for name in names]
        self.plan = replace(
            plan,
            tick=replace(plan.tick, offsets=dict.fromkeys(names, at)),
            floors=self.previous.cut.floors,
            chunks=tuple(chunk for group in self.groups for chunk in group),
        )
        endpoints = {name: Endpoint(name, "127.0.0.1", 3306, "catchment", "secret") for name in names}
        self.tasks = TaskMaker(endpoints, Nowhere(), Policies(lambda tables: Changes()))
        reached = replace(known, at=at)
        met = tuple(MetTable(shape.definition, 0) for shape in self.previous.shapes)
        outputs = tuple(Output(table, Part.CHANGES, FewRows(pa.table({})), 1, 0) for table in ids)
        self.segments = {
            name: SegmentReceipt(name, reached, at, outputs, (), met, 1, 100, 1_700_000_000) for name in names
        }
        self.copies: dict[tuple[Chunk, ...], ChunkReceipt | Failed] = {
            group: ChunkReceipt(
                group[0].shard, tuple(CopiedChunk(c, 5, 50, 0.1) for c in group), outputs, (), 0
            )
            for group in self.groups
        }

    def made(self) -> Manifest:
        gathered = gather(self.previous, self.plan, self.segments, self.copies, {})
        Standstill().count(self.previous.cut, gathered.cut, gathered.refused, {}, {})
        return manifest(self.previous, self.plan, gathered, {}, {})

    def stored(self) -> None:
        """As the state store and the epochs table write it, after an epoch that was written whole."""
        _, base = encoded(self.previous, None)
        encoded(self.made(), base)

    def handed_out(self) -> list[Task]:
        segments = self.tasks.segments(self.previous, self.plan, "1")
        return [
            *segments,
            *self.tasks.copies(self.previous, self.plan, dict.fromkeys(self.groups), "1"),
        ]

    def pickled(self) -> int:
        return sum(map(len, map(pickle.dumps, self.handed_out())))

    def shown(self) -> None:
        report = Report(self.previous, Commit(1, "", 0, {}), {}, {}, {})
        RunView("feed", lambda line: None).observe(report)


WORK: dict[str, Callable[[Epoch], object]] = {
    "tasks": Epoch.handed_out,
    "holders": lambda epoch: epoch.previous.holders,
    "manifest": Epoch.made,
    "records": Epoch.stored,
    "screen": Epoch.shown,
}


@pytest.mark.parametrize("name", WORK)
def test_with_shards(name: str) -> None:
    few, many = Epoch(SHARDS, TABLES), Epoch(TIMES * SHARDS, TABLES)
    assert steps(lambda: WORK[name](many)) <= TIMES_MAX * steps(lambda: WORK[name](few))


@pytest.mark.parametrize("name", WORK)
def test_with_tables(name: str) -> None:
    few, many = Epoch(TABLES, SHARDS), Epoch(TABLES, TIMES * SHARDS)
    assert steps(lambda: WORK[name](many)) <= TIMES_MAX * steps(lambda: WORK[name](few))


def test_what_goes_to_the_tasks() -> None:
    """A thousand tasks that each name a thousand shards for each of fifty tables would be 750 MB an epoch."""
    few, many = Epoch(SHARDS, 5 * TABLES), Epoch(TIMES * SHARDS, 5 * TABLES)
    assert many.pickled() <= 1.5 * TIMES * few.pickled()
