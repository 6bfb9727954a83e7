"""Held commits behave as tests/world/held.py says: in the log, not in any SELECT."""

import itertools
from collections.abc import Iterator, Sequence

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session, Writer, Writers
from tests.world.held import (
    Background,
    commits_wait,
    flush_logs_in_hold,
    held_commit,
    held_group,
    hold_commits,
    release,
    snapshot,
)
from tests.world.oracle import Oracle
from tests.world.patience import SLOWNESS, until
from tests.world.workload import await_transactions

_KEYS = {"d.t": ("id",)}


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateServer]:
    with PrivateServer(settings={"max_binlog_size": 4096}) as server:
        yield server


@pytest.fixture
def server(running: PrivateServer) -> Iterator[PrivateServer]:
    running.sql("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v TEXT)")
    yield running
    release(running)
    running.sql("DROP DATABASE d")


def _visible(server: PrivateServer) -> list[int]:
    return [row[0] for row in server.sql("SELECT id FROM d.t ORDER BY id")]


def _in_log(server: PrivateServer, oracle: Oracle) -> list[int]:
    """Ids in the log, up to the end of its last group."""
    return sorted(key[0] for key in oracle.advance(*server.log_end())["d.t"])


def test_a_held_commit_stands_in_the_log_and_is_not_visible(server: PrivateServer) -> None:
    oracle = Oracle.from_rest(server.login(), _KEYS)
    commit = held_commit(
        server, "INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, 'y')", database="d"
    )
    assert _in_log(server, oracle) == [1, 2]
    assert _visible(server) == []
    assert snapshot(server) < oracle.at, "within a file the snapshot position does not run ahead"
    assert commit.held
    commit.release()
    assert not commit.held
    assert _visible(server) == [1, 2]
    assert snapshot(server) == oracle.at


def test_a_held_commit_becomes_visible_by_itself_and_the_next_is_held_again(server: PrivateServer) -> None:
    first = held_commit(server, "INSERT INTO d.t VALUES (1, 'x')", timeout_ms=int(1000 * SLOWNESS))
    while first.held:
        assert _visible(server) == [] or not first.held
    first.finish()
    assert _visible(server) == [1]
    second = held_commit(server, "INSERT INTO d.t VALUES (2, 'x')")
    assert _visible(server) == [1]
    second.release()
    assert _visible(server) == [1, 2]


def test_commits_queue_behind_a_held_one(server: PrivateServer) -> None:
    """The second is in the log, too, and keeps the log's lock: SHOW MASTER STATUS waits, SELECT does not."""
    running = "SELECT 1 FROM information_schema.processlist WHERE info = 'SHOW MASTER STATUS'"
    oracle = Oracle.from_rest(server.login(), _KEYS)
    commits = [held_commit(server, f"INSERT INTO d.t VALUES ({n}, 'x')") for n in (1, 2)]
    status = Background(server, ["SHOW MASTER STATUS"])
    status.start()
    until("SHOW MASTER STATUS runs", lambda: server.sql(running))
    assert _visible(server) == []
    assert server.sql(running), "it still runs behind a SELECT that began later"
    assert all(commit.held for commit in commits)
    for commit in commits:
        commit.release()
    status.finish()
    assert _visible(server) == [1, 2] == _in_log(server, oracle)


def test_several_commits_are_held_in_one_group(server: PrivateServer) -> None:
    """Those of a group have one commit id in their GTID events, which others do not have."""
    oracle = Oracle.from_rest(server.login(), _KEYS)
    start = oracle.at
    commits = held_group(server, [f"INSERT INTO d.t VALUES ({n}, 'x')" for n in range(5)])
    events = server.sql(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    begins = [str(event[5]) for event in events if event[2] == "Gtid"]
    assert len(begins) == 5
    assert len({begin.partition(" cid=")[2] for begin in begins} - {""}) == 1
    assert _in_log(server, oracle) == [0, 1, 2, 3, 4]
    assert _visible(server) == []
    assert all(commit.held for commit in commits)
    for commit in commits:
        commit.release()
    assert _visible(server) == [0, 1, 2, 3, 4]


def test_flush_in_the_hold_pairs_the_new_file_with_the_old_offset(server: PrivateServer) -> None:
    """DESIGN section 3: the snapshot runs ahead in the hold, and is torn after it, until the next commit."""
    server.sql("FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (1, REPEAT('x', 1000))")
    oracle = Oracle.from_rest(server.login(), _KEYS)
    commit = held_commit(server, "INSERT INTO d.t VALUES (2, 'x')")
    oracle.advance(*server.log_end())
    old = oracle.at
    flush = flush_logs_in_hold(server)
    ahead = snapshot(server)
    assert _visible(server) == [1]
    assert flush.is_alive()
    commit.release()
    flush.finish()
    assert _visible(server) == [1, 2]
    end = server.log_end()
    assert end[0] > old.file
    assert ahead[0] == end[0], "in the hold: the new file, though the old one holds an invisible commit"
    assert snapshot(server) == (end[0], old.offset), "after it: the new file with the old file's offset"
    assert old.offset > end[1], "which here even lies beyond its end"
    server.sql("INSERT INTO d.t VALUES (3, 'x')")
    file, offset = snapshot(server)
    assert file == end[0]
    assert end[1] < offset <= server.log_end()[1], "the next commit mends it (a checkpoint event may follow)"


def test_a_held_commit_that_fills_the_file_leaves_the_snapshot_ahead_of_what_is_visible(
    server: PrivateServer,
) -> None:
    oracle = Oracle.from_rest(server.login(), _KEYS)
    commit = held_commit(server, "INSERT INTO d.t VALUES (1, REPEAT('x', 5000))")
    file, end = server.log_end()
    assert file > oracle.at.file, "the commit rotated the log"
    assert snapshot(server) == (file, end), "and the snapshot stands in the new file"
    assert _in_log(server, oracle) == [1]
    assert _visible(server) == []
    commit.release()
    assert _visible(server) == [1]


def test_free_writers_are_held_and_go_on(server: PrivateServer) -> None:
    """After each hold all that the log holds is visible; in the hold at least one commit is not."""
    oracle = Oracle.from_rest(server.login(), _KEYS)
    numbers = itertools.count()

    def insert(sessions: Sequence[Session], rng: object) -> int:
        with sessions[0].cursor() as cursor:
            return cursor.execute("INSERT INTO d.t VALUES (%s, REPEAT('x', 300))", (next(numbers),))

    held = 0
    with Writers([Writer([server.connect], insert, seed=n, rate=50) for n in range(16)]) as writers:
        for _ in range(10):
            hold_commits(server)
            until("a commit is held", lambda: commits_wait(server), every=0.001)
            seen = _visible(server)
            held += commits_wait(server)
            assert _visible(server) == seen
            release(server)
            await_transactions(writers, 10)
        with writers.paused():
            assert _visible(server) == _in_log(server, oracle)
    assert held == 10


def test_a_statement_that_is_refused_or_changes_nothing_is_an_error(server: PrivateServer) -> None:
    with pytest.raises(AssertionError, match="not held"):
        held_commit(server, "DELETE FROM d.t")
    commit = Background(server, ["INSERT INTO d.none VALUES (1)"])
    commit.start()
    with pytest.raises(pymysql.err.ProgrammingError):
        commit.finish()
