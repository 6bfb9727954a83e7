"""One runner per feed, with real processes that are frozen and killed."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import update

from catchment.model.errors import LeaseHeld, LeaseLost, StoppedWaiting
from catchment.state import lease as lease_module
from catchment.state.database import lease_table
from catchment.state.lease import Owner, Standby, hold, holder
from catchment.state.store import Store
from tests.world import records
from tests.world.patience import until

_RUNNER = """
import sys, time
from catchment.model.errors import LeaseLost
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.world import records
from tests.world.patience import PATIENCE_SECONDS
store = Store.open(sys.argv[1], "shop")
with hold(store) as lease:
    print("fence", lease.fence, flush=True)
    for line in sys.stdin:
        said = []
        for what in (lease.check, lambda: store.put_plan(records.plan(1), lease.fence)):
            try:
                what()
                said.append("went")
            except LeaseLost:
                said.append("lost")
        print(*said, flush=True)
"""

Runner = subprocess.Popen[str]
LONG_SECONDS = 300.0


@pytest.fixture
def long_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a lease here waits for so long that it shows, however busy the machine is."""
    monkeypatch.setattr(lease_module, "LEASE_SECONDS", LONG_SECONDS)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def store(url: str) -> Store:
    return Store.open(url, "shop")


@pytest.fixture
def start(url: str) -> Iterator[Callable[[], Runner]]:
    with ExitStack() as stack:

        def runner() -> Runner:
            process = subprocess.Popen(
                [sys.executable, "-c", _RUNNER, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[3],
                env={"PYTHONPATH": "src:."},
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield runner


def answer(process: Runner) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ask(process: Runner) -> str:
    assert process.stdin is not None
    print(file=process.stdin, flush=True)
    return answer(process)


@pytest.mark.usefixtures("long_lease")
def test_fences_grow_and_release_needs_no_wait(store: Store) -> None:
    started = time.monotonic()
    fences = []
    for _ in range(3):
        with hold(store) as lease:
            fences.append(lease.fence)
            assert holder(store) == Owner.this_process()
        assert holder(store) is None
    assert fences == [1, 2, 3]
    assert time.monotonic() - started < LONG_SECONDS


def test_fence_goes_above_what_the_sink_has_seen(store: Store) -> None:
    with hold(store, fence_above=41) as lease:
        assert lease.fence == 42
    with hold(store, fence_above=7) as lease:
        assert lease.fence == 43


def test_a_fence_is_raised_while_the_lease_is_kept(store: Store) -> None:
    with hold(store) as lease:
        before = lease.fence
        for _ in range(2):  # a commit whose answer is lost is done again
            lease.fence = before
            lease.raise_fence()
            assert lease.fence == before + 1
        assert holder(store) == Owner.this_process()
        lease.check()
        store.put_plan(records.plan(1), lease.fence)
        with pytest.raises(LeaseLost):
            store.put_plan(records.plan(2), before)
    with hold(store) as lease:
        assert lease.fence == before + 2


def test_a_fence_is_not_raised_above_that_of_another_runner(store: Store) -> None:
    with hold(store) as lease:
        with store.database.transaction() as connection:
            theirs = {"fence": lease.fence + 1, "owner": Owner("elsewhere", 1, 1).host}
            connection.execute(update(lease_table).values(**theirs))
        with pytest.raises(LeaseLost, match="another runner took over"):
            lease.raise_fence()
        assert lease.lost


def test_a_live_runner_is_named(store: Store, start: Callable[[], Runner]) -> None:
    runner = start()
    assert answer(runner) == "fence 1"
    with pytest.raises(LeaseHeld, match=rf"run by process {runner.pid} on "), hold(store):
        pass
    assert ask(runner) == "went went"


@pytest.mark.usefixtures("long_lease")
@pytest.mark.parametrize("ends", ["killed", "in order"])
def test_a_standby_takes_over_when_the_runner_has_ended(
    store: Store, start: Callable[[], Runner], ends: str
) -> None:
    runner, told = start(), list[str]()
    assert answer(runner) == "fence 1"

    def heard(said: str) -> None:
        told.append(said)
        if len(told) == 2:
            if ends == "killed":
                runner.kill()
            else:
                runner.communicate()

    with hold(store, standby=Standby(threading.Event(), heard)) as lease:
        assert lease.fence == 2
    assert set(told) == {f"standing by: feed shop is run by {said_of(runner)}; end that runner first"}


@pytest.mark.usefixtures("long_lease")
def test_a_standby_can_be_stopped(store: Store, start: Callable[[], Runner]) -> None:
    runner, stop = start(), threading.Event()
    assert answer(runner) == "fence 1"
    with (
        pytest.raises(StoppedWaiting, match="stopped while it stood by"),
        hold(store, standby=Standby(stop, lambda said: stop.set())),
    ):
        pass
    assert ask(runner) == "went went"


def said_of(runner: Runner) -> str:
    return f"process {runner.pid} on {socket.gethostname()}"


@pytest.mark.usefixtures("long_lease")
def test_a_killed_runner_is_replaced_at_once(store: Store, start: Callable[[], Runner]) -> None:
    runner = start()
    assert answer(runner) == "fence 1"
    runner.kill()
    runner.wait()
    started = time.monotonic()
    with hold(store) as lease:
        assert lease.fence == 2
    assert time.monotonic() - started < LONG_SECONDS


def test_a_frozen_runner_is_replaced_and_may_not_write_when_it_wakes(
    store: Store, start: Callable[[], Runner]
) -> None:
    runner = start()
    assert answer(runner) == "fence 1"
    runner.send_signal(signal.SIGSTOP)
    started = time.monotonic()
    with hold(store) as lease:
        waited = time.monotonic() - started
        assert lease.fence == 2
        runner.send_signal(signal.SIGCONT)
        assert ask(runner) == "lost lost"
        assert not lease.lost
    assert waited >= lease_module.LEASE_SECONDS
    assert store.newest() == (None, None, None)


@pytest.mark.wide
def test_a_runner_frozen_without_a_successor_goes_on(store: Store, start: Callable[[], Runner]) -> None:
    runner = start()
    assert answer(runner) == "fence 1"
    runner.send_signal(signal.SIGSTOP)
    time.sleep(lease_module.LEASE_SECONDS + 0.5)
    runner.send_signal(signal.SIGCONT)
    assert ask(runner) == "went went"
    assert store.newest()[0] == records.plan(1)


def test_of_many_that_start_at_once_one_runs(url: str, start: Callable[[], Runner]) -> None:
    runners = [start() for _ in range(5)]
    answers = [answer(runner) for runner in runners]  # a refused runner ends, its answer is empty
    assert sorted(answers) == ["", "", "", "", "fence 1"]


def _claimed_by(store: Store, owner: Owner) -> None:
    with store.database.transaction() as connection:
        connection.execute(
            lease_table.insert().values(
                feed="shop", fence=5, owner=msgspec.json.encode(owner).decode(), renewals=9
            )
        )


@pytest.mark.usefixtures("long_lease")
def test_a_process_number_used_again_is_not_taken_for_the_holder(store: Store) -> None:
    me = Owner.this_process()
    _claimed_by(store, Owner(me.host, me.pid, me.started - 1))
    started = time.monotonic()
    with hold(store) as lease:
        assert lease.fence == 6
    assert time.monotonic() - started < LONG_SECONDS


def test_a_holder_on_another_host_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "LEASE_SECONDS", 1.0)
    _claimed_by(store, Owner("elsewhere/boot/namespace", 1, 1))
    started = time.monotonic()
    with hold(store) as lease:
        assert lease.fence == 6
    assert time.monotonic() - started >= 1.0


def test_clocks_that_jump_do_not_matter(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold(store) as lease:
        monkeypatch.setattr(time, "time", lambda: 4e9)
        assert not lease.lost
        lease.check()


def test_losing_the_lease_is_noticed_without_asking(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "_RENEW_SECONDS", 0.05)
    with hold(store) as lease:
        with store.database.transaction() as connection:
            connection.execute(lease_table.update().values(fence=99))
        until("the lease is lost", lambda: lease.lost)
        with pytest.raises(LeaseLost):
            lease.check()
