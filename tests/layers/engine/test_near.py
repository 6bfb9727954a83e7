"""Which epochs the driver reads itself."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catchment.engine import near
from catchment.engine.near import LOG_BYTES_MAX, TASKS_MAX, Near, is_small
from catchment.epoch.work import ChunkTask, SegmentTask, Target
from catchment.model.errors import EngineError, ProgramFault
from catchment.model.position import GtidList, LogOffset, Position, Prepared, Server, Xid
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.sink.delta.tail.writer import LakeWriter
from tests.world.engines import Here
from tests.world.worlds import SetClocks, put

AT = LogOffset("binlog.000007", 4)
SERVER = Server(1, "db1", 3306)
STATE = ShardState(Position(AT, 1, SERVER, GtidList()))
TARGET = Target(LakeWriter(Path("/lake")), ("a",), 1, "1")


def segment(size: int, prepared: int = 0) -> SegmentTask:
    """A task that reads so much log, and so much of a transaction prepared before."""
    start = LogOffset("binlog.000006", 100)
    xa = Prepared(Xid(1, b"x", b""), start, LogOffset(start.file, 100 + prepared), 0)
    position = Position(AT, 1, SERVER, GtidList(), prepared=(xa,) if prepared else ())
    stop = LogOffset(AT.file, AT.offset + size)
    return SegmentTask(Endpoint("a", "db1", 3306, "u", "hunter2"), ShardState(position, AT), stop, (), TARGET)


def chunk() -> ChunkTask:
    return ChunkTask(Endpoint("a", "db1", 3306, "u", "hunter2"), STATE, AT, AT, (), (), TARGET)


@pytest.mark.parametrize(
    ("tasks", "small"),
    [
        ([segment(0)], True),
        ([segment(LOG_BYTES_MAX)], True),
        ([segment(LOG_BYTES_MAX + 1)], False),
        ([segment(LOG_BYTES_MAX // 2), segment(LOG_BYTES_MAX // 2)], True),
        ([segment(LOG_BYTES_MAX // 2 + 1), segment(LOG_BYTES_MAX // 2)], False),
        ([segment(10)] * TASKS_MAX, True),
        ([segment(10)] * (TASKS_MAX + 1), False),
        ([segment(10, prepared=LOG_BYTES_MAX - 10)], True),
        ([segment(10, prepared=LOG_BYTES_MAX)], False),
        ([replace(segment(10), stop=LogOffset("binlog.000008", 4))], False),
        ([segment(10), chunk()], False),
        ([object()], False),
    ],
)
def test_few_tasks_with_little_log_are_small(tasks: Sequence[Any], small: bool) -> None:
    assert is_small(tasks) is small


def pid_of(task: SegmentTask) -> tuple[int, int]:
    return task.stop.offset, os.getpid()


def test_the_driver_reads_small_epochs_and_sends_others_away() -> None:
    far = Here()
    engine = Near(far)
    tasks = [segment(size) for size in (1, 2, 3)]
    assert engine.each(pid_of, tasks) == [(task.stop.offset, os.getpid()) for task in tasks]
    assert far.done == []
    large = [segment(LOG_BYTES_MAX + 1)]
    engine.each(pid_of, large)
    assert far.done == [large]


def break_down(task: SegmentTask) -> int:
    raise (
        LookupError(f"cannot log in with {task.endpoint.password}")
        if task.stop.offset
        else MemoryError("7 bytes")
    )


def test_faults_are_those_of_any_engine() -> None:
    engine = Near(Here())
    with pytest.raises(ProgramFault, match="LookupError"):
        engine.each(break_down, [segment(1)])
    with pytest.raises(EngineError, match="7 bytes"):
        engine.each(break_down, [replace(segment(1), stop=LogOffset(AT.file, 0))])


def test_the_engine_behind_rests_when_it_was_not_used_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    far, rests = Here(), []
    monkeypatch.setattr(far, "rest", lambda: rests.append(len(far.done)))
    clocks = put(monkeypatch, SetClocks())
    now = 100.0
    clocks.steady = now
    engine = Near(far)
    engine.each(pid_of, [segment(1)])
    engine.each(pid_of, [segment(LOG_BYTES_MAX + 1)])
    for _ in range(3):
        now += 0.4 * near.REST_SECONDS
        clocks.steady = now
        engine.each(pid_of, [segment(1)])
    assert rests == [1]
