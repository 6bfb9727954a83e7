"""A copy that waits for the source's sake is quiet; the log goes on, lag is told, and at the end all is equal."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from tests.conftest import Shards
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_orders import newest, running, table, wait
from tests.promises.exact.throttled import (
    QUIET_SECONDS,
    ROWS,
    Health,
    begun,
    copied,
    copy_other_first,
    must_be_quiet,
    must_copy_the_rest,
    status,
    throttled,
    throttled_by,
)


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, whose copy takes many epochs."""
    return begun(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards), monkeypatch)


@pytest.fixture
def health() -> Iterator[Health]:
    with Health() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.ended.set()
        server.shutdown()


def test_a_flag_file_and_all_that_tells_of_it(
    steps: Steps, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = steps.file.parent / "wait"
    throttled_by(steps, flag_file="wait")
    copy_other_first(steps)
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
        wait(lambda: samples(steps.file.parent / "feed.prom")["catchment_copy_throttled 80-"] > QUIET_SECONDS)
        assert first.text in caplog.messages
        flag.unlink()
        must_copy_the_rest(steps)
    assert any("rows are copied again after" in message for message in caplog.messages)
    assert not [message for message in caplog.messages if "stands still" in message]
    assert throttled(steps) == []
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")


def test_what_was_throttled_is_gone_on_with_by_a_later_run(steps: Steps) -> None:
    flag = steps.file.parent / "wait"
    flag.touch()
    throttled_by(steps, flag_file=str(flag))
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        time.sleep(QUIET_SECONDS)
        assert copied(steps) == 0
    assert throttled(steps) == [], "nobody runs it"
    flag.unlink()
    steps.must_be_equal("t", "id", "n")


def test_a_run_is_stopped_while_it_is_throttled(steps: Steps) -> None:
    (steps.file.parent / "wait").touch()
    throttled_by(steps, flag_file="wait")
    steps.set(epoch={"interval": "300s", "tick": "50ms"})
    with running(steps) as run:
        wait(lambda: len(throttled(steps)) == 2)
        assert catchment.stop(steps.file).answer is not None
        run.join(60)
        assert run.outcome is not None


def test_a_long_interval_holds_up_no_copy_that_may_go_on(steps: Steps) -> None:
    flag = steps.file.parent / "wait"
    flag.touch()
    throttled_by(steps, flag_file="wait")
    steps.set(epoch={"interval": "1h", "tick": "50ms"})
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        flag.unlink()
        must_copy_the_rest(steps)
    steps.set(epoch={"interval": "50ms", "tick": "50ms"})
    steps.must_be_equal("t", "id", "n")


def test_a_paused_table_does_not_stay_throttled(steps: Steps) -> None:
    (steps.file.parent / "wait").touch()
    throttled_by(steps, flag_file="wait")
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        catchment.dump(steps.file, "pause")
        wait(lambda: not throttled(steps))
        (steps.file.parent / "wait").unlink()
        catchment.dump(steps.file, "start")
        must_copy_the_rest(steps)
    steps.must_be_equal("t", "id", "n")


def test_rates(steps: Steps) -> None:
    """Two shards of 2,000 rows, 200 a second: the first 400 may come at once."""
    throttled_by(steps, rows_per_second=200)
    began = time.monotonic()
    with running(steps):
        wait(lambda: newest(steps).cut.copied)
        assert time.monotonic() - began > (ROWS - 400) / 200
        assert throttled(steps) == []
    steps.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_a_rate_of_bytes_far_below_one_chunk(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE long_ones (id INT PRIMARY KEY, b LONGTEXT)")
    values = ", ".join(f"({key}, REPEAT('x', 20000))" for key in range(20))
    steps.everywhere(f"INSERT INTO long_ones VALUES {values}")
    throttled_by(steps, bytes_per_second="64KB")
    began = time.monotonic()
    with running(steps):
        wait(lambda: newest(steps).cut.copied)
    assert time.monotonic() - began > (400_000 - 4 * (64 << 10)) / (64 << 10)
    steps.must_be_equal("long_ones", "id", "b")


@pytest.mark.wide
def test_a_feed_at_rest_asks_nothing(steps: Steps, health: Health) -> None:
    throttled_by(steps, http=f"http://127.0.0.1:{health.server_address[1]}/")
    with running(steps):
        wait(lambda: newest(steps).cut.copied)
        assert health.paths
        wait(lambda: not [one for one in threading.enumerate() if one.name.startswith("throttle ")])
        asked = len(health.paths)
        steps.everywhere("INSERT INTO other VALUES (NULL)")
        wait(lambda: len(steps.lake("other", "id")) == 4)
        time.sleep(QUIET_SECONDS)
        assert len(health.paths) == asked
