"""Feeds that share a state store share the sessions of a server: never more than its ceiling, also where runs are
killed, stand still or wait for one another, and all lakes come to be equal."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import yaml

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.model.table_state import TableState
from catchment.watch.status import Status
from tests.layers.watch.test_vitals import samples
from tests.promises.crash.running import Run, status_of
from tests.promises.exact.steps import Steps
from tests.world.servers.chosen import chosen_server

ROWS = 3000
# The log of one statement is so much that a floor is worth to be proven, which takes a session more.
WIDTH, CHANGED = 1000, 150
FEED_USER = "catchment"
# What a run needs at least: its clock's, and two that read.
LEAST = 3
FOLLOWED_SECONDS = 2.0
SAMPLE_SECONDS = 0.001
WRITE_SECONDS = 0.2
ENOUGH_SAMPLES = 200
LOGIN_SECONDS = 0.02


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


@pytest.fixture
def server(own: PrivateServer) -> Iterator[PrivateServer]:
    """The same, on which any number of sessions is let in again behind the test."""
    yield own
    let_in(own, 0)


def let_in(server: PrivateServer, sessions: int) -> None:
    """Have the server refuse what is more; 0: nothing."""
    server.sql(f"ALTER USER {FEED_USER}@'%' WITH MAX_USER_CONNECTIONS {sessions}")


@pytest.fixture
def made(
    server: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path
) -> Callable[[str, int], Steps]:
    """`made(name, ceiling)`: a feed that has not begun, with many chunks to copy; all of a test share a state store."""

    def make(name: str, ceiling: int) -> Steps:
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
            state=str(tmp_path / "state.db"),
            source={**source, "sessions_max": ceiling},
            copy={"chunk_rows_max": 50, "group_time": "0s", "groups_per_shard": 4},
            engine="local",
            metrics={"file": str(directory / "feed.prom")},
        )
        return steps

    return make


@pytest.fixture
def start() -> Iterator[Callable[[Steps], Run]]:
    """`start(steps)`: a run, which is killed at the end of the test."""
    with ExitStack() as stack:

        def begun(steps: Steps) -> Run:
            run = Run(steps)
            stack.callback(run.kill)
            return run

        yield begun


def has(sessions: int) -> Callable[[Status], bool]:
    return lambda status: bool(status.sessions) and status.sessions[0].held >= sessions


def copies(status: Status) -> bool:
    return has(LEAST)(status) and any(one.state is TableState.COPYING for one in status.tables)


def waits(status: Status) -> bool:
    return bool(status.sessions) and status.sessions[0].held == 0


class Samples(threading.Thread):
    """Asks a server again and again for the sessions of the feeds; `most` it had at once, and what these did."""

    def __init__(self, server: PrivateServer) -> None:
        super().__init__(daemon=True)
        self._server = server
        self.stopping = threading.Event()
        self.most: list[tuple[object, ...]] = []
        self.taken = self.dumps = 0

    def run(self) -> None:
        with closing(self._server.connect()) as connection, connection.cursor() as cursor:
            while not self.stopping.wait(SAMPLE_SECONDS):
                cursor.execute(
                    "SELECT ID, COMMAND, STATE, INFO FROM information_schema.PROCESSLIST WHERE USER = %s",
                    (FEED_USER,),
                )
                found = list(cursor.fetchall())
                self.taken += 1
                self.dumps += any("Dump" in str(row[1]) for row in found)
                if len(found) > len(self.most):
                    self.most = found


@contextmanager
def sampled(server: PrivateServer, ceiling: int) -> Iterator[Samples]:
    """There are never more sessions than the ceiling in the block, and as many of them that it is a test."""
    samples = Samples(server)
    samples.start()
    try:
        yield samples
    finally:
        samples.stopping.set()
        samples.join()
    assert len(samples.most) <= ceiling, samples.most
    assert samples.taken > ENOUGH_SAMPLES


@contextmanager
def written(*feeds: Steps) -> Iterator[None]:
    """Changes of all tables while the block runs."""
    stop = threading.Event()

    def work() -> None:
        step = 0
        while not stop.wait(WRITE_SECONDS):
            step += 1
            for steps in feeds:
                low = step * 37 % ROWS
                steps.everywhere(f"UPDATE t SET n = n + 1 WHERE id BETWEEN {low} AND {low + CHANGED}")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def refusals(status: Status) -> list[str]:
    return [error.message for error in status.errors if "max_user_connections" in error.message]


MARIADB_ALONE = pytest.mark.mariadb("strategies other than rewind")


def by(strategy: str) -> dict[str, object]:
    """The settings of a feed that copies so."""
    return {"copy": {"chunk_rows_max": 50, "group_time": "0s", "groups_per_shard": 4, "strategy": strategy}}


ALL_BESIDE = {
    "verify": {"every": "1s", "budget": "100%"},
    "copy": {"chunk_rows_max": 50, "group_time": "0s", "throttle": {"threads_running": 10_000}},
}


@pytest.mark.wide
@pytest.mark.parametrize(
    ("sessions", "settings"),
    [
        (LEAST, {}),
        (LEAST + 1, {}),
        (LEAST + 3, {}),
        (LEAST + 5, ALL_BESIDE),
        pytest.param(LEAST, by("watermark"), marks=MARIADB_ALONE),
        pytest.param(LEAST, by("snapshot"), marks=MARIADB_ALONE),
        (LEAST, {"engine": "spark"}),
    ],
    ids=["least", "one more", "two groups", "all beside", "watermark", "snapshot", "spark"],
)
def test_one_feed_has_no_more_than_its_ceiling(
    server: PrivateServer,
    made: Callable[[str, int], Steps],
    start: Callable[[Steps], Run],
    sessions: int,
    settings: dict[str, object],
) -> None:
    """The server refuses what is more."""
    a = made("a", sessions)
    a.set(**settings)
    let_in(server, sessions)
    with written(a):
        run = start(a)
        run.await_copied()
        if "verify" in settings:
            run.wait(lambda status: status.verification.last is not None)
        time.sleep(FOLLOWED_SECONDS)
        run.stop()
    assert refusals(status_of(a.feed)) == []
    assert "max_user_connections" not in run.said.read_text()
    let_in(server, 0)
    a.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_two_feeds_copy_and_follow_below_one_ceiling(
    server: PrivateServer, made: Callable[[str, int], Steps], start: Callable[[Steps], Run]
) -> None:
    ceiling = 2 * LEAST
    a, b = made("a", ceiling), made("b", ceiling)
    with sampled(server, ceiling) as seen, written(a, b):
        first = start(a)
        first.wait(has(ceiling))
        second = start(b)
        found = second.wait(has(LEAST))
        assert found.sessions[0].others["a"] <= ceiling - LEAST
        first.await_copied()
        second.await_copied()
        time.sleep(FOLLOWED_SECONDS)
        second.wait(lambda status: seen.dumps)
        metrics = samples(a.file.with_name("feed.prom"))
        assert metrics["catchment_source_sessions -80"] >= LEAST
        assert metrics["catchment_source_sessions_max"] == ceiling
        assert metrics["catchment_source_sessions_waited_seconds"] == 0
        first.stop()
        second.stop()
    assert [*refusals(status_of(a.feed)), *refusals(status_of(b.feed))] == []
    a.must_be_equal("t", "id", "n")
    b.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_what_a_killed_run_had_is_given_to_one_that_waits(
    server: PrivateServer,
    made: Callable[[str, int], Steps],
    start: Callable[[Steps], Run],
    capsys: pytest.CaptureFixture[str],
) -> None:
    ceiling = LEAST + 1
    a, b = made("a", ceiling), made("b", ceiling)
    with sampled(server, ceiling), written(a, b):
        first = start(a)
        first.wait(has(LEAST))
        second = start(b)
        found = second.wait(waits)
        place = f"{server.host}:{server.port}"
        assert f"for {LEAST} of {ceiling} sessions on {place} (feed a has " in found.sessions[0].text
        assert execute(["status", str(b.file)]) == 0
        assert "the run waits since " in capsys.readouterr().out
        first.await_copied()  # whoever waits holds up nobody
        assert waits(status_of(b.feed))
        first.kill()
        second.wait(has(LEAST))
        second.await_copied()
        third = start(a)
        third.wait(waits)
        second.stop()
        third.wait(has(LEAST))
        third.stop()
    assert "the run has the sessions that it waited for" in b.file.with_name("said").read_text()
    a.must_be_equal("t", "id", "n")
    b.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_a_run_that_waits_can_be_stopped(
    made: Callable[[str, int], Steps], start: Callable[[Steps], Run]
) -> None:
    a, b = made("a", LEAST), made("b", LEAST)
    first = start(a)
    first.wait(has(LEAST))
    second = start(b)
    second.wait(waits)
    second.stop()
    assert "stopped while it waits for sessions: 3 of 3 on " in second.said.read_text()
    first.await_copied()
    first.stop()
    b.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_a_run_that_stood_still_waits_until_it_is_its_turn_again(
    made: Callable[[str, int], Steps], start: Callable[[Steps], Run]
) -> None:
    a, b = made("a", LEAST), made("b", LEAST)
    first = start(a)
    first.wait(copies)  # a run that stands still while it looks at shards for the first time may end
    first.stand_still()
    second = start(b)
    second.wait(has(LEAST))
    first.go_on()
    second.await_copied()
    first.wait(waits)
    second.stop()
    first.await_copied()
    first.stop()
    a.must_be_equal("t", "id", "n")
    b.must_be_equal("t", "id", "n")


def test_a_ceiling_that_is_too_low_is_refused(
    server: PrivateServer, made: Callable[[str, int], Steps], capsys: pytest.CaptureFixture[str]
) -> None:
    steps = made("a", LEAST - 1)
    assert execute(["run", str(steps.file), "--until-caught-up"]) == 2
    assert f"source.sessions_max: {LEAST - 1} is too few, {LEAST} is the least" in capsys.readouterr().err
    assert not (steps.file.parent.parent / "state.db").exists()
