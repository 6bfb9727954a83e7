"""Held commits of MySQL: cuts run ahead of what SELECT shows, floors and seals do not.

MySQL begins a new log file after the held commits of the old one, so that a cut in the new file is visible. What
a hold leaves open is where in a file it stands, and whether a chunk is read while the rotation waits.
"""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.hidden.follow import Floor, Follower, floor_at_the_cut, place, sealed_floor
from tests.promises.hidden.judge import Verdict, judge, take_base
from tests.promises.hidden.source import create
from tests.world.held import Background, HeldCommit, held_commit, mysql_options, release
from tests.world.log_groups import Place
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

_STEPS = 6  # more than once through all keys
_TIMEOUT_MS = 60_000


@pytest.fixture(
    params=[("mysql_80_build", 4096), ("mysql_80_build", 1 << 20), ("mysql_97_build", 1 << 20)],
    ids=["8.0, 4KiB", "8.0, 1MiB", "9.7, 1MiB"],
    scope="module",
)
def running(request: pytest.FixtureRequest) -> Iterator[PrivateMySQL]:
    name, size = request.param
    build: Build = request.getfixturevalue(name)
    with PrivateMySQL(build, settings={**mysql_options(build), "max_binlog_size": size}) as server:
        yield server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold of a second is to see several chunks: no task waits long for what is held to become visible."""
    monkeypatch.setattr("catchment.source.prove.SECONDS_MAX", 0.05)


@pytest.fixture
def server(running: PrivateMySQL) -> Iterator[PrivateMySQL]:
    create(running)
    yield running
    release(running)
    running.sql("DROP DATABASE d")


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


def _plain(server: PrivateServer, number: int) -> HeldCommit:
    return _held(server, number)


def _filling(server: PrivateServer, number: int) -> HeldCommit:
    """The held commit is the last of its file."""
    return _held(server, number, int(server.settings["max_binlog_size"]) + 10)


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

    def judged(self, make: Callable[[PrivateServer, int], HeldCommit], *, flush: bool = False) -> Verdict:
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


_WAYS = pytest.mark.parametrize(
    ("make", "flush"),
    [(_plain, False), (_filling, False), (_plain, True)],
    ids=["within a file", "at its end", "flushed"],
)


@_WAYS
def test_chunks_are_right_at_cuts_ahead_of_a_held_commit(
    server: PrivateMySQL, make: Callable[[PrivateServer, int], HeldCommit], flush: bool
) -> None:
    verdict = _Run(server, sealed_floor).judged(make, flush=flush)
    assert verdict.chunks >= 4 * _STEPS
    assert verdict.wrong_chunks == []
    assert verdict.wrong_claims == []
    assert verdict.wrong_segments == []


@_WAYS
def test_chunks_are_wrong_there_with_the_floor_at_the_cut(
    server: PrivateMySQL, make: Callable[[PrivateServer, int], HeldCommit], flush: bool
) -> None:
    assert _Run(server, floor_at_the_cut).judged(make, flush=flush).wrong_chunks


def test_a_first_cut_waits_for_a_held_commit(server: PrivateMySQL) -> None:
    began = time.monotonic()
    commit = _held(server)
    end = Place(*server.log_end())
    timer = threading.Timer(1.0, release, [server])
    timer.start()
    follower = Follower(server)
    follower.close()
    commit.finish()
    assert time.monotonic() - began >= 1.0
    assert place(follower.at.at) >= end
    assert follower.seen.claims[0].told[0] == 1
