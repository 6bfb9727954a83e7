"""Held commits of MySQL: cuts run ahead of what SELECT shows, floors and seals do not.

MySQL begins a new log file after the held commits of the old one, so that a cut in the new file is visible. What
a hold leaves open is where in a file it stands, and whether a chunk is read while the rotation waits.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from catchment.demo.server import PrivateServer
from catchment.source.pending import Pending, must_know_pending
from catchment.source.session import Session
from tests.promises.hidden.conftest import with_tables
from tests.promises.hidden.follow import Floor, Follower, floor_at_the_cut, place, sealed_floor
from tests.promises.hidden.judge import Verdict, judge, take_base
from tests.world.held import Background, HeldCommit, held_commit, mysql_options
from tests.world.log_groups import Place
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

_STEPS = 6  # more than once through all keys
_TIMEOUT_MS = 60_000


@contextmanager
def _started(build: Build) -> Iterator[PrivateMySQL]:
    with PrivateMySQL(build, settings=mysql_options(build)) as server:
        yield server


@pytest.fixture(scope="module")
def of_80(mysql_80_build: Build) -> Iterator[PrivateMySQL]:
    with _started(mysql_80_build) as server:
        yield server


@pytest.fixture(scope="module")
def of_97(mysql_97_build: Build) -> Iterator[PrivateMySQL]:
    with _started(mysql_97_build) as server:
        yield server


@pytest.fixture(params=["of_80", "of_97"])
def server(request: pytest.FixtureRequest) -> PrivateMySQL:
    found: PrivateMySQL = request.getfixturevalue(request.param)
    return found


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold of a second is to see several chunks: no task waits long for what is held to become visible."""
    monkeypatch.setattr("catchment.source.prove.SECONDS_MAX", 0.05)


def _held(server: PrivateServer, number: int = 1, filling: int = 10) -> HeldCommit:
    """Rows changed, deleted, born, moved to another key; then held, in the log. Keys 2 + 3n are not loaded."""
    return held_commit(
        server,
        f"INSERT INTO d.t VALUES ({1097 + 3 * number}, REPEAT('x', {filling}))",
        f"UPDATE d.t SET v = 'held {number}' WHERE id IN (3, 301, 604)",
        f"DELETE FROM d.t WHERE id = {900 + 3 * number}",
        f"UPDATE d.t SET id = {599 + 3 * number} WHERE id = {3 * number + 3}",
        f"UPDATE d.told SET n = {number} WHERE writer = 0",
        timeout_ms=_TIMEOUT_MS,
    )


def _step_on(follower: Follower, before: Place) -> bool:
    """An epoch at the next cut; with chunks and True once cuts lie behind the held commit."""
    beyond = place(follower.at.at) > before
    follower.step(with_chunks=beyond)
    return beyond


def _stay(follower: Follower, before: Place) -> bool:
    """As `_step_on`, with no new cut behind the held commit: the clock waits while a rotation keeps the log."""
    if place(follower.at.at) <= before:
        follower.step(with_chunks=False)
        return False
    follower.visit(follower.at.at, with_chunks=True)
    return True


class _Run:
    """Chunks of every key at cuts behind held commits, in as many holds as that takes, then after them."""

    def __init__(self, server: PrivateServer, floor: Floor) -> None:
        self._server = server
        self._base = take_base(server)
        self._follower = Follower(server, floor)
        self._steps = 0
        self._holds = 0

    def judged(self, make: "Make", *, flush: bool) -> Verdict:
        """Hold, step, release; with `flush` FLUSH BINARY LOGS waits in each hold."""
        try:
            self._follower.step(with_chunks=True)
            while self._steps < _STEPS:
                self._holds += 1
                before = Place(*self._server.log_end())
                commit = make(self._server, self._holds)
                self._step_in_hold(commit, before, flush=flush)
                commit.release()
            self._catch_up()
        finally:
            self._follower.close()
        return judge(self._server, self._base, self._follower.seen)

    def _step_in_hold(self, commit: HeldCommit, before: Place, *, flush: bool) -> None:
        rotation: Background | None = None
        while self._steps < _STEPS and commit.held:
            if flush and rotation is None and place(self._follower.at.at) > before:
                rotation = Background(self._server, ["FLUSH BINARY LOGS"])
                rotation.start()
            counts = (_stay if flush else _step_on)(self._follower, before)
            shown = self._server.sql("SELECT v FROM d.t WHERE id = 301") == [(f"held {self._holds}",)]
            sealed = place(self._follower.sealed)
            if not commit.held:
                break
            assert not shown
            assert sealed <= before, "the held commit was declared visible"
            assert rotation is None or rotation.is_alive()
            self._steps += counts
        if rotation is not None:
            commit.release()
            rotation.finish()

    def _catch_up(self) -> None:
        follower = self._follower
        while place(follower.at.at) < Place(*self._server.log_end()) or follower.sealed != follower.at.at:
            follower.step(with_chunks=True)


Make = Callable[[PrivateServer, int], HeldCommit]


def _ways(file_size: int) -> dict[str, tuple[Make, bool]]:
    """What is held, and whether FLUSH waits meanwhile. The second one is the last commit of its file."""
    return {
        "within a file": (_held, False),
        "at its end": (partial(_held, filling=file_size + 10), False),
        "flushed": (_held, True),
    }


def _verdicts(server: PrivateMySQL, file_size: int, floor: Floor) -> Iterator[tuple[str, Verdict]]:
    """Of each way to hold commits, in log files of a size."""
    server.sql(f"SET GLOBAL max_binlog_size = {file_size}")
    for way, (make, flush) in _ways(file_size).items():
        with with_tables(server):
            yield way, _Run(server, floor).judged(make, flush=flush)


def _must_be_right(server: PrivateMySQL, file_size: int) -> None:
    for way, verdict in _verdicts(server, file_size, sealed_floor):
        assert verdict.chunks >= 4 * _STEPS
        assert verdict.wrong_chunks == [], way
        assert verdict.wrong_claims == [], way
        assert verdict.wrong_segments == [], way


@pytest.mark.promise("on MySQL, a commit that is held is neither lost nor applied early")
def test_chunks_are_right_at_cuts_ahead_of_a_held_commit(of_80: PrivateMySQL) -> None:
    _must_be_right(of_80, 4096)


def test_the_same_in_larger_files(server: PrivateMySQL) -> None:
    _must_be_right(server, 1 << 20)


def test_chunks_are_wrong_there_with_the_floor_at_the_cut(server: PrivateMySQL) -> None:
    for way, verdict in _verdicts(server, 4096, floor_at_the_cut):
        assert verdict.wrong_chunks, way


def test_a_first_cut_waits_for_a_held_commit(server: PrivateMySQL, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [0]

    def pending(session: Session) -> Pending:
        asked[0] += 1
        return must_know_pending(session)

    monkeypatch.setattr("catchment.source.first_position.must_know_pending", pending)
    with with_tables(server):
        commit = _held(server)
        end = Place(*server.log_end())
        with ThreadPoolExecutor(1) as pool:
            cut = pool.submit(Follower, server)
            until("the first cut, asked for again and again", lambda: cut.done() or asked[0] >= 5)
            assert not (cut.done() and commit.held), "a first cut was taken in front of a held commit"
            commit.release()
            follower = cut.result(PATIENCE_SECONDS)
        follower.close()
        assert place(follower.at.at) >= end
        assert follower.seen.claims[0].told[0] == 1
