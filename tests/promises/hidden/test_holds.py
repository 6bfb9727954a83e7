"""One held commit in each way that lets a snapshot run ahead of it, and cuts, chunks and seals meanwhile."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.hidden.conftest import with_tables
from tests.promises.hidden.follow import Floor, Follower, floor_at_the_cut, place, sealed_floor
from tests.promises.hidden.judge import Verdict, judge, take_base
from tests.world.held import (
    HOLD_MS,
    Background,
    HeldCommit,
    flush_logs_in_hold,
    held_commit,
    hold_commits,
)
from tests.world.log_groups import Place
from tests.world.patience import until

pytestmark = pytest.mark.mariadb(
    "its snapshot positions and checkpoint events; MySQL's holds are in test_mysql.py"
)

_CHUNK_STEPS = 6  # more than once through all keys


def _held(server: PrivateServer, filling: int) -> HeldCommit:
    """Rows changed, deleted, born, moved to another key; then held, in the log."""
    return held_commit(server, *_changes(filling))


def _changes(filling: int) -> tuple[str, ...]:
    return (
        f"INSERT INTO d.t VALUES (1100, REPEAT('x', {filling}))",
        "UPDATE d.t SET v = 'held' WHERE id IN (3, 301, 604)",
        "DELETE FROM d.t WHERE id = 900",
        "UPDATE d.t SET id = 1001 WHERE id = 6",
        "UPDATE d.told SET n = 1 WHERE writer = 0",
    )


@dataclass(frozen=True)
class Hold:
    """A held commit, a place behind it that a snapshot shows meanwhile, and FLUSH if one is under way."""

    commit: HeldCommit
    behind: Place
    flush: Background | None = None


def _fill(server: PrivateServer) -> Hold:
    commit = _held(server, int(server.settings["max_binlog_size"]) + 10)
    return Hold(commit, Place(_newest_file(server), 5))


def _flush(server: PrivateServer) -> Hold:
    commit = _held(server, 10)
    flush = flush_logs_in_hold(server)
    return Hold(commit, Place(_newest_file(server), 5), flush)


def _checkpoint(server: PrivateServer) -> Hold:
    """A checkpoint event follows a rotation when the redo log is flushed, within a second: in the hold."""
    for _ in range(10):
        server.sql("UPDATE d.told SET n = n + 1 WHERE writer = 1", "FLUSH BINARY LOGS")
        commit = _held(server, 10)
        file, size = server.log_end()
        deadline = time.monotonic() + 2  # a hold without one: the next has it
        while server.log_end() == (file, size) and time.monotonic() < deadline:
            time.sleep(0.01)
        if server.log_end() != (file, size):
            return Hold(commit, Place(file, size + 1))
        commit.release()
        server.sql(
            "UPDATE d.t SET id = 6 WHERE id = 1001",
            "DELETE FROM d.t WHERE id = 1100",
            "INSERT INTO d.t VALUES (900, 'again')",
        )
    raise AssertionError("no checkpoint event came in ten holds")


def _prepared(server: PrivateServer) -> Hold:
    """An XA COMMIT is held, whose rows stand where they were prepared."""
    server.sql("XA START 'x'", *_changes(10), "XA END 'x'", "XA PREPARE 'x'")
    before = server.log_end()
    commit = HeldCommit(server, ["XA COMMIT 'x'"], None, hold_commits(server, HOLD_MS))
    commit.start()
    until("an XA COMMIT in the log", lambda: server.log_end() != before)
    flush = flush_logs_in_hold(server)
    return Hold(commit, Place(_newest_file(server), 5), flush)


def _newest_file(server: PrivateServer) -> str:
    """From the directory: SHOW MASTER STATUS may wait for the hold's end."""
    return max(path.name for path in server.datadir.glob("binlog.[0-9]*[0-9]"))


def _hidden(server: PrivateServer) -> bool:
    return server.sql("SELECT v FROM d.t WHERE id = 301") != [("held",)]


MakeHold = Callable[[PrivateServer], Hold]
WAYS: dict[str, MakeHold] = {"filled": _fill, "flushed": _flush, "checkpoint": _checkpoint}
OF_XA: dict[str, MakeHold] = {"XA COMMIT": _prepared}


def _run(server: PrivateServer, make: MakeHold, floor: Floor) -> Verdict:
    with with_tables(server):
        base = take_base(server)
        follower = Follower(server, floor)
        try:
            follower.step(with_chunks=True)
            hold = make(server)
            steps = 0
            while steps < _CHUNK_STEPS:
                beyond = place(follower.at.at) >= hold.behind
                follower.step(with_chunks=beyond)
                steps += beyond
                assert hold.commit.held, "the hold was too short to see a cut ahead of it"
            assert _hidden(server), "cuts were taken behind a commit that nobody sees"
            _release(hold)
            _catch_up(server, follower)
        finally:
            follower.close()
        return judge(server, base, follower.seen)


def _release(hold: Hold) -> None:
    hold.commit.release()
    if hold.flush is not None:
        hold.flush.finish()


def _catch_up(server: PrivateServer, follower: Follower) -> None:
    while place(follower.at.at) < Place(*server.log_end()):
        follower.step(with_chunks=True)


def _must_be_right(way: str, verdict: Verdict) -> None:
    assert verdict.wrong_chunks == [], way
    assert verdict.wrong_claims == [], way
    assert verdict.wrong_segments == [], way


def _must_all_be_right(server: PrivateServer, ways: Iterable[tuple[str, MakeHold]]) -> None:
    for way, make in ways:
        verdict = _run(server, make, sealed_floor)
        assert verdict.chunks >= 4 * _CHUNK_STEPS
        _must_be_right(way, verdict)


@pytest.mark.promise("a commit that waits for a replica is neither lost nor applied early")
def test_chunks_are_right_at_cuts_ahead_of_a_held_commit(small: PrivateServer) -> None:
    _must_all_be_right(small, [*WAYS.items(), *OF_XA.items()])


def test_chunks_are_wrong_there_with_the_floor_at_the_cut(small: PrivateServer) -> None:
    for way, make in (*WAYS.items(), *OF_XA.items()):
        assert _run(small, make, floor_at_the_cut).wrong_chunks, way


def test_a_first_cut_taken_in_a_hold_is_sealed(small: PrivateServer) -> None:
    for way, make in WAYS.items():
        with with_tables(small):
            base = take_base(small)
            hold = make(small)
            follower = Follower(small)
            try:
                assert hold.commit.held
                follower.step(with_chunks=True)
                _release(hold)
                _catch_up(small, follower)
            finally:
                follower.close()
            _must_be_right(way, judge(small, base, follower.seen))


def test_the_same_in_larger_files(large: PrivateServer) -> None:
    _must_all_be_right(large, WAYS.items())
    for way, make in WAYS.items():
        assert _run(large, make, floor_at_the_cut).wrong_chunks, way
