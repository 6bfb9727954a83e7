"""A copy that waits for the source's sake is quiet; the log goes on, lag is told, and at the end all is equal."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from tests.conftest import Shards
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_orders import beat, newest, running, table, wait
from tests.promises.exact.throttled import (
    ROWS,
    begun,
    copied,
    copy_other_first,
    must_be_quiet,
    must_copy_the_rest,
    status,
    throttled,
    throttled_by,
)
from tests.world.patience import PATIENCE_SECONDS


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, whose copy takes many epochs."""
    return begun(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards), monkeypatch)


@pytest.mark.promise("a throttle holds up only the copy, never the log")
def test_a_flag_file_and_all_that_tells_of_it(
    steps: Steps, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = steps.file.parent / "wait"
    throttled_by(steps, flag_file="wait")
    copy_other_first(steps)
    caplog.set_level(logging.INFO)
    with running(steps):
        wait(lambda: table(steps).rows > 0)
        flag.touch()
        wait(lambda: len(throttled(steps)) == 2)
        must_be_quiet(steps)
        (first, second) = status(steps).throttled
        assert (first.shard, second.shard) == ("-80", "80-")
        assert (first.check, first.value, first.limit) == ("flag_file", None, None)
        assert first.text == f"shard -80: no rows are copied since {first.since}: flag_file {flag} exists"
        assert table(steps).throttled == (first.text, second.text)
        assert table(steps, "other").throttled == ()
        assert execute(["status", str(steps.file)]) == 0
        assert first.text in capsys.readouterr().out
        assert execute(["tables", str(steps.file)]) == 0
        assert capsys.readouterr().out.count(first.text) == 1
        wait(lambda: samples(steps.file.parent / "feed.prom")["catchment_copy_throttled 80-"] > 0)
        assert first.text in caplog.messages
        flag.unlink()
        must_copy_the_rest(steps)
    assert any("rows are copied again after" in message for message in caplog.messages)
    assert not [message for message in caplog.messages if "stands still" in message]
    assert throttled(steps) == []
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")


def test_a_run_that_is_throttled_obeys_and_a_later_one_goes_on(steps: Steps) -> None:
    """However long the interval is between two epochs."""
    flag = steps.file.parent / "wait"
    flag.touch()
    throttled_by(steps, flag_file=str(flag))
    steps.set(epoch={"interval": "1h", "tick": "50ms"})
    with running(steps) as run:
        wait(lambda: len(throttled(steps)) == 2)
        for _ in range(2):
            beat(steps)
            assert copied(steps) == 0
        catchment.dump(steps.file, "pause")
        wait(lambda: not throttled(steps))
        catchment.dump(steps.file, "start")
        wait(lambda: len(throttled(steps)) == 2)
        assert catchment.stop(steps.file).answer is not None
        run.join(PATIENCE_SECONDS)
        assert run.outcome is not None
    assert throttled(steps) == [], "nobody runs it"
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        flag.unlink()
        must_copy_the_rest(steps)
    steps.set(epoch={"interval": "50ms", "tick": "50ms"})
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")


def test_rates(steps: Steps) -> None:
    """Two shards of 2,000 rows, 500 a second: the first 1,000 may come at once. Of a table with 400 KB, each chunk is
    longer than the bytes of a second."""
    steps.everywhere("CREATE TABLE long_ones (id INT PRIMARY KEY, b LONGTEXT)")
    values = ", ".join(f"({key}, REPEAT('x', 20000))" for key in range(20))
    steps.everywhere(f"INSERT INTO long_ones VALUES {values}")
    throttled_by(steps, rows_per_second=500, bytes_per_second="64KB")
    began = time.monotonic()
    with running(steps):
        wait(lambda: all(copy.done for copy in newest(steps).cut.copies if copy.table.name == "t"))
        assert time.monotonic() - began > (ROWS - 1000) / 500
        wait(lambda: newest(steps).cut.copied)
        assert time.monotonic() - began > (400_000 - 4 * (64 << 10)) / (64 << 10)
        assert throttled(steps) == []
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("long_ones", "id", "b")
