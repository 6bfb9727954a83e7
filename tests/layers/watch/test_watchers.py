"""What looks on at a feed may fail in any way: the feed goes on, and the log says so once."""

import logging
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.sink.delta.upkeep import attempt, settler, turns
from catchment.watch.report import Observer, Report, Rest
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import Steps, run_here

TURN = turns.LakeUpkeep.turn  # which the fixture leaves out


@pytest.fixture
def steps(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": shard}, fresh_schema(shard))
    for name in ("t", "u"):
        steps.sql(
            "a", f"CREATE TABLE {name} (id INT PRIMARY KEY, c INT)", f"INSERT INTO {name} VALUES (1, 1)"
        )
    steps.run()
    return steps


def follow(steps: Steps, epochs: int = 3) -> None:
    """Run the feed over some epochs; raises what ended it."""
    with FeedRun(steps.feed) as run:
        for number in range(epochs):
            steps.sql("a", f"REPLACE INTO t VALUES ({100 + number}, 1)", "UPDATE u SET c = c + 1")
            run.wait_for_log(steps.servers)
    for name in ("t", "u"):
        assert steps.lake(name, "id", "c") == steps.source(name, "id", "c")


def test_a_process_that_cannot_be_started(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[str] = []

    def no_memory(root: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        started.append(root)
        raise OSError(12, "Cannot allocate memory")

    steps.set(sink={"path": str(steps.feed.sink.path), "settle": "0s"})
    monkeypatch.setattr(turns.LakeUpkeep, "turn", TURN)
    monkeypatch.setattr(attempt, "LIGHT_BYTES", -1)
    monkeypatch.setattr(settler, "start", no_memory)
    follow(steps)
    assert started
    assert caplog.text.count("Cannot allocate memory") == 1
    assert "Traceback" not in caplog.text


def test_a_metrics_file_that_cannot_be_written(steps: Steps, tmp_path: Path) -> None:
    steps.set(metrics={"file": str(tmp_path / "away" / "catchment.prom")})
    follow(steps)


def test_an_observer_with_a_fault(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    """Where it is in our own program says its traceback."""
    stop, turns = threading.Event(), [0, 0]

    def observe(report: Report) -> None:
        turns[0] += 1
        if turns[0] < 3:
            steps.sql("a", "UPDATE u SET c = c + 1")
        raise LookupError("no bar for this table")

    def at_rest(rest: Rest) -> None:
        turns[1] += 1
        if turns[1] == 3:
            stop.set()
        raise LookupError("no line for this turn")

    steps.sql("a", "UPDATE u SET c = c + 1")
    with caplog.at_level(logging.WARNING):
        run_feed(
            steps.feed, until_caught_up=False, observer=Observer(committed=observe, rested=at_rest), stop=stop
        )
    assert turns == [3, 3]
    assert caplog.text.count("LookupError: no bar for this table") == 2, (
        "once in the line, once in the traceback"
    )
    assert caplog.text.count("Traceback") == 2
    steps.must_be_equal("u", "id", "c")
