"""Feeds that share a state store share the sessions of a server: never more than its ceiling, also where runs are
killed, stand still or wait for one another, and all lakes come to be equal.

The server itself refuses what is more than the ceiling.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import yaml

from catchment.cli.main import execute
from catchment.cli.output import EXIT_INTERRUPTED
from catchment.demo.server import PrivateServer
from catchment.state.store import Store
from catchment.watch.status import Status, read_status
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.feedrun import Thread
from tests.promises.exact.steps import Steps
from tests.world.servers.chosen import chosen_server
from tests.world.told import EIGHT_WORKERS, ToldRun

ROWS = 600
# The log of one statement is so much that a floor is worth to be proven, which takes a session more.
WIDTH, CHANGED = 1000, 150
FEED_USER = "catchment"
# What a run needs at least: its clock's, and two that read.
LEAST = 3
WRITE_SECONDS = 0.2
LOGIN_SECONDS = 0.02
COPYING = {"chunk_rows_max": 50, "group_time": "0s", "groups_per_shard": 4}
ALL_BESIDE = {
    "verify": {"every": "1s", "budget": "100%"},
    "copy": {"chunk_rows_max": 50, "group_time": "0s", "throttle": {"threads_running": 10_000}},
}
MARIADB_ALONE = pytest.mark.mariadb("strategies other than rewind")


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    """A server on which nobody but these feeds has sessions of the feed's user. Each takes its time to begin, so that
    many are there at once."""
    with chosen_server(server_id=171) as server:
        server.sql(
            f"SET GLOBAL init_connect = 'DO SLEEP({LOGIN_SECONDS})'",
            "CREATE DATABASE catchment",
            f"GRANT CREATE, INSERT, UPDATE, DELETE ON catchment.* TO {FEED_USER}@'%'",
        )
        yield server


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[PrivateServer]:
    """A server for state stores, whose sessions are not counted."""
    with chosen_server(server_id=172) as server:
        server.sql("CREATE DATABASE state", f"GRANT ALL ON state.* TO {FEED_USER}@'%'")
        yield server


@pytest.fixture
def server(own: PrivateServer) -> Iterator[PrivateServer]:
    """The same, on which any number of sessions is let in again behind the test."""
    yield own
    let_in(own, 0)


def let_in(server: PrivateServer, sessions: int) -> None:
    """Have the server refuse what is more; 0: nothing."""
    server.sql(f"ALTER USER {FEED_USER}@'%' WITH MAX_USER_CONNECTIONS {sessions}")


Made = Callable[..., Steps]


@pytest.fixture
def made(server: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path) -> Made:
    """`made(name, ceiling)`: a feed that has not begun, with many chunks to copy; all of a test share a state store."""

    def make(name: str, ceiling: int, state: str = str(tmp_path / "state.db")) -> Steps:
        directory = tmp_path / name
        directory.mkdir()
        steps = Steps(directory, {"-80": server}, fresh_schema(server))
        values = ", ".join(f"({key}, {key}, REPEAT('x', {WIDTH}))" for key in range(1, ROWS + 1))
        steps.everywhere(
            f"CREATE TABLE t (id INT PRIMARY KEY, n INT, wide VARCHAR({WIDTH}))",
            f"INSERT INTO t VALUES {values}",
        )
        source = yaml.safe_load(steps.file.read_text())["source"]
        steps.set(
            name=name,
            state=state,
            source={**source, "sessions_max": ceiling},
            copy=COPYING,
            engine="local",
            metrics={"file": str(directory / "feed.prom")},
        )
        return steps

    return make


Start = Callable[[Steps], ToldRun]


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(steps)`: a run, which is killed at the end of the test."""
    with ExitStack() as stack:

        def begun(steps: Steps) -> ToldRun:
            run = ToldRun(steps.file, program=EIGHT_WORKERS)
            stack.callback(run.kill)
            return run

        yield begun


@pytest.fixture
def written() -> Iterator[Callable[..., None]]:
    """`written(steps, ...)`: changes of their tables until the test ends or `written()` says so."""
    threads: list[Thread] = []

    def write(*feeds: Steps) -> None:
        while threads:
            threads.pop().stop()
        if not feeds:
            return
        step = 0

        def change() -> None:
            nonlocal step
            step += 1
            for steps in feeds:
                low = step * 37 % ROWS
                steps.everywhere(f"UPDATE t SET n = n + 1 WHERE id BETWEEN {low} AND {low + CHANGED}")
            writer.stopping.wait(WRITE_SECONDS)

        writer = Thread("writer", change)
        threads.append(writer)
        writer.start()

    yield write
    write()


def status_of(steps: Steps) -> Status:
    feed = steps.feed
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        return read_status(store)


def stopped(run: ToldRun) -> None:
    """End a run in order. It was never refused a session."""
    run.process.terminate()
    ended = run.ended()
    assert ended.code == EXIT_INTERRUPTED, ended
    assert "max_user_connections" not in ended.said
    refused = [event for event in run.events if "max_user_connections" in str(event)]
    assert refused == []


def followed(run: ToldRun) -> None:
    """All is copied, and some epochs of changes behind it."""
    run.wait_for("caught_up")
    for _ in range(3):
        run.wait("an epoch of changes", lambda event: event["event"] == "epoch" and event["changes"])


@pytest.mark.promise("all feeds of a state store together never hold more sessions than sessions_max")
def test_a_run_that_waits_gets_what_a_killed_one_had(
    server: PrivateServer,
    made: Made,
    start: Start,
    written: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = made("a", LEAST), made("b", LEAST)
    let_in(server, LEAST)
    written(a, b)
    first = start(a)
    first.wait_for("sessions", state="holds", held={"-80": LEAST})
    second = start(b)
    second.wait_for("sessions", state="waits")
    place = f"{server.host}:{server.port}"
    (claim,) = status_of(b).sessions
    assert f"for {LEAST} of {LEAST} sessions on {place} (feed a has {LEAST})" in claim.text
    assert execute(["status", str(b.file)]) == 0
    assert "the run waits since " in capsys.readouterr().out
    followed(first)  # whoever waits holds up nobody
    assert status_of(b).sessions[0].held == 0
    first.kill()
    second.wait_for("sessions", state="holds", held={"-80": LEAST})
    second.wait_for("caught_up")
    third = start(a)
    third.wait_for("sessions", state="waits")
    third.process.terminate()  # one that waits can be stopped
    assert third.ended().code == EXIT_INTERRUPTED
    assert "stopped while it waits for sessions: 3 of 3 on " in third.last()["error"]["message"]
    stopped(second)
    written()
    let_in(server, 0)
    for steps in (a, b):
        steps.must_be_equal("t", "id", "n")


def test_two_feeds_copy_and_follow_below_one_ceiling(
    server: PrivateServer, made: Made, start: Start, written: Callable[..., None]
) -> None:
    """The one that came first gives back what the other one needs."""
    ceiling = 2 * LEAST
    a, b = made("a", ceiling), made("b", ceiling)
    let_in(server, ceiling)
    written(a, b)
    first = start(a)
    first.wait_for("sessions", held={"-80": ceiling})
    second = start(b)
    first.wait_for("sessions", held={"-80": LEAST})
    second.wait_for("sessions", held={"-80": LEAST})
    followed(second)
    metrics = samples(a.file.with_name("feed.prom"))
    assert metrics["catchment_source_sessions -80"] >= LEAST
    assert metrics["catchment_source_sessions_max"] == ceiling
    assert metrics["catchment_source_sessions_waited_seconds"] == 0
    stopped(first)
    stopped(second)
    written()
    let_in(server, 0)
    for steps in (a, b):
        steps.must_be_equal("t", "id", "n")


@pytest.mark.parametrize(
    ("sessions", "settings"),
    [
        (LEAST + 5, ALL_BESIDE),
        pytest.param(LEAST, {"copy": {**COPYING, "strategy": "watermark"}}, marks=MARIADB_ALONE),
        pytest.param(LEAST, {"copy": {**COPYING, "strategy": "snapshot"}}, marks=MARIADB_ALONE),
        (LEAST, {"engine": "spark"}),
    ],
    ids=["all beside", "watermark", "snapshot", "spark"],
)
def test_one_feed_has_no_more_than_its_ceiling(
    server: PrivateServer,
    made: Made,
    start: Start,
    written: Callable[..., None],
    sessions: int,
    settings: dict[str, object],
) -> None:
    a = made("a", sessions)
    a.set(**settings)
    let_in(server, sessions)
    written(a)
    run = start(a)
    followed(run)
    if "verify" in settings:
        run.wait("a comparison", lambda event: status_of(a).verification.last is not None)
    stopped(run)
    written()
    let_in(server, 0)
    a.must_be_equal("t", "id", "n")


def test_a_run_that_stood_still_waits_until_it_is_its_turn_again(
    made: Made, start: Start, elsewhere: PrivateServer
) -> None:
    """The state store is in a server: a process that stands still may hold the lock of a file."""
    state = f"mysql://{FEED_USER}:{elsewhere.password}@{elsewhere.host}:{elsewhere.port}/state"
    a, b = made("a", LEAST, state), made("b", LEAST, state)
    first = start(a)
    first.wait_for("epoch")
    os.kill(first.pid, signal.SIGSTOP)
    second = start(b)
    second.wait_for("sessions", state="waits")
    second.wait_for("sessions", state="holds")
    os.kill(first.pid, signal.SIGCONT)
    first.wait_for("sessions", state="waits")
    second.wait_for("caught_up")
    stopped(second)
    first.wait_for("sessions", state="holds")
    if "following" not in first.states().values():
        first.wait_for("caught_up")
    stopped(first)
    for steps in (a, b):
        steps.must_be_equal("t", "id", "n")


def test_a_ceiling_that_is_too_low_is_refused(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    steps = made("a", LEAST - 1)
    assert execute(["run", str(steps.file), "--until-caught-up"]) == 2
    assert f"source.sessions_max: {LEAST - 1} is too few, {LEAST} is the least" in capsys.readouterr().err
    assert not (steps.file.parent.parent / "state.db").exists()
