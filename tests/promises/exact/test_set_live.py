"""Settings that are changed under a running copy: at once, and for later runs, until the feed file says otherwise."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from catchment.model.chunk import Chunk
from catchment.model.epoch import Plan
from catchment.model.errors import ConfigError, StateError
from catchment.model.order import Kept
from catchment.state.store import Store
from tests.conftest import Shards
from tests.promises.exact.steps import Died, Steps
from tests.promises.exact.test_orders import beat, newest, running, wait
from tests.promises.exact.test_throttle_checks import asleep, rows_on
from tests.promises.exact.throttled import begun, copied, status, throttled_by
from tests.world.patience import PATIENCE_SECONDS

SLOW = 20


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, whose copy would take minutes."""
    made = begun(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards), monkeypatch)
    throttled_by(made, rows_per_second=SLOW)
    # Beside a table that is followed, a copy has what an interval has time for: enough for more than a chunk, here.
    made.set(epoch={"interval": "2s", "tick": "50ms"})
    return made


def said(steps: Steps, **settings: str) -> str:
    """What a run answers to a change of `copy.throttle`."""
    named = {f"copy.throttle.{name}": value for name, value in settings.items()}
    (kept,) = catchment.set_live(steps.file, named, wait=PATIENCE_SECONDS)
    assert kept.answer is not None
    assert kept.answer.done
    return kept.answer.said


def newest_plan(steps: Steps) -> Plan:
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        plan = store.newest()[0]
    assert plan is not None
    return plan


def planned(steps: Steps, after: int) -> tuple[Chunk, ...]:
    """The chunks of the newest plan, if it is behind an epoch."""
    plan = newest_plan(steps)
    return plan.chunks if plan.epoch > after else ()


def in_force(steps: Steps) -> list[str]:
    return [f"{one.name}={one.value} ({one.file_value})" for one in status(steps).settings]


@pytest.mark.promise("settings of the copy change while it runs")
def test_settings_of_a_copy_that_runs(steps: Steps) -> None:
    with pytest.raises(StateError, match="has not run yet"):
        catchment.set_live(steps.file, {"copy.chunk_time": "1s"})
    with asleep(steps.servers["-80"], 12), running(steps):
        wait(lambda: rows_on(steps, "-80") > 0)
        for settings in (
            {"copy.chunk_time": "1s", "epoch.interval": "2s"},
            {"copy.chunk_time": "1s", "copy.log_budget": "2"},
            {},
        ):
            with pytest.raises(ConfigError):
                catchment.set_live(steps.file, settings)
        assert status(steps).orders == ()
        said(steps, threads_running="12")
        wait(lambda: len(status(steps).throttled) == 1)
        beat(steps)
        rows = rows_on(steps, "-80")
        for _ in range(2):
            beat(steps)
            assert rows_on(steps, "-80") == rows
        assert said(steps, threads_running="off") == "it is off, as in the feed file"
        assert in_force(steps) == []
        wait(lambda: rows_on(steps, "-80") > rows)
        must_make_smaller_chunks(steps)
        assert said(steps, rows_per_second="100000") == (
            f"it is 100000, until a run finds another value in the feed file than {SLOW}"
        )
        catchment.set_live(steps.file, {"copy.chunk_rows_max": "1000"}, wait=PATIENCE_SECONDS)
        wait(lambda: newest(steps).cut.copied)
        assert said(steps, rows_per_second="100000") == "it is 100000 already"
    steps.must_be_equal("t", "id", "n")


def must_make_smaller_chunks(steps: Steps) -> None:
    """At once."""
    smaller = {
        "copy.chunk_rows_max": "7",
        "copy.groups_per_shard": "3",
        "copy.throttle.rows_per_second": "off",
    }
    kept = catchment.set_live(steps.file, smaller, wait=PATIENCE_SECONDS)
    assert all(one.answer is not None and one.answer.done for one in kept)
    after = newest_plan(steps).epoch
    wait(lambda: planned(steps, after))
    for chunk in planned(steps, after):
        assert chunk.lo is None or chunk.hi is None or int(chunk.hi[0]) - int(chunk.lo[0]) <= 14, chunk
    # Beside a table that is followed, an epoch is dealt more as epochs turn out to be short.
    wait(lambda: len({chunk.lo for chunk in planned(steps, after)}) > 3)


@pytest.mark.promise("a changed setting lasts until the feed file has another value")
def test_a_later_run_goes_by_it_until_the_file_says_another_value(
    steps: Steps,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running(steps):
        wait(lambda: copied(steps) > 0)
        said(steps, rows_per_second="1")
    with running(steps):
        assert said(steps, rows_per_second="1") == "it is 1 already"
    throttled_by(steps, rows_per_second=SLOW, threads_running=1000)
    with running(steps):
        assert said(steps, rows_per_second="1") == "it is 1 already", "another setting was edited"
    assert in_force(steps) == [f"copy.throttle.rows_per_second=1 ({SLOW})"]
    throttled_by(steps, rows_per_second=100_000)
    steps.must_be_equal("t", "id", "n")
    assert in_force(steps) == []
    assert (
        "copy.throttle.rows_per_second=1 is not in force any more: the feed file says 100000 now, and said "
        f"{SLOW} when that was set"
    ) in caplog.messages
    throttled_by(steps, rows_per_second=SLOW)
    with running(steps):
        assert said(steps, rows_per_second=str(SLOW)) == f"it is {SLOW} already", "it is gone for good"
    must_wait_for_a_run(steps, monkeypatch)
    must_print(steps, capsys)
    steps.must_be_equal("t", "id", "n")


def must_wait_for_a_run(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order without a run is kept. A run that dies before it answers leaves the setting, and the next one finds it
    done."""

    def die(store: object, orders: tuple[Kept, ...], *rest: object) -> None:
        raise Died

    (kept,) = catchment.set_live(steps.file, {"copy.throttle.rows_per_second": "100000"})
    assert kept.answer is None
    with monkeypatch.context() as patch:
        patch.setattr("catchment.state.orders.answer", die)
        with pytest.raises(Died):
            steps.run()
    assert in_force(steps) == [f"copy.throttle.rows_per_second=100000 ({SLOW})"]
    steps.run()
    order = status(steps).orders[0]
    assert (order.state, order.answer) == ("done", "it is 100000 already")


def must_print(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the answers."""
    file, last = str(steps.file), status(steps).orders[0].number
    with running(steps):
        capsys.readouterr()
        assert execute(["set", file, "copy.chunk_time=200ms", "copy.throttle.rows_per_second=off"]) == 0
        printed = capsys.readouterr().out.splitlines()
        assert printed == [
            f"order {last + 1}, set copy.chunk_time=200ms: done: it is 200ms, until a run finds another value in the "
            "feed file than 500ms",
            f"order {last + 2}, set copy.throttle.rows_per_second=off: done: it is off, until a run finds another "
            f"value in the feed file than {SLOW}",
        ]
        assert execute(["set", file, "copy.chunk_time"]) == 2
        assert execute(["set", file, "copy.first=a"]) == 2
        assert "copy.first cannot change while a feed runs" in capsys.readouterr().err
    assert execute(["status", file]) == 0
    assert "copy.chunk_time=200ms, set by " in capsys.readouterr().out
    assert status(steps).orders[0].order == "set copy.throttle.rows_per_second=off"
