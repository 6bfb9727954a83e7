"""Held commits of MySQL: cuts run ahead of what SELECT shows, floors and seals do not."""

import threading
import time
from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from tests.hidden.follow import Floor, Follower, floor_at_the_cut, place, sealed_floor
from tests.hidden.judge import Verdict, judge, take_base
from tests.oracle import Place
from tests.semisync import HeldCommit, held_commit, mysql_options, release
from tests.servers.builds import Build
from tests.servers.launch import PrivateMySQL

_STEPS = 6
_LOADED = 800


@pytest.fixture(scope="module")
def running(mysql_97_build: Build) -> Iterator[PrivateMySQL]:
    with PrivateMySQL(mysql_97_build, settings=mysql_options()) as server:
        yield server


@pytest.fixture
def server(running: PrivateMySQL) -> Iterator[PrivateMySQL]:
    numbers = f"WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < {_LOADED}) SELECT"
    running.sql(
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v MEDIUMTEXT CHARACTER SET ascii)",
        "CREATE TABLE d.told (writer INT PRIMARY KEY, n INT)",
        f"INSERT INTO d.t {numbers} i * 3 DIV 2, CONCAT('loaded ', i) FROM n",
        "INSERT INTO d.told VALUES (0, 0), (1, 0)",
        "FLUSH BINARY LOGS",
    )
    yield running
    release(running)
    running.sql("DROP DATABASE d")


def _held(server: PrivateServer) -> HeldCommit:
    return held_commit(
        server,
        "INSERT INTO d.t VALUES (1100, 'born')",
        "UPDATE d.t SET v = 'held' WHERE id IN (3, 301, 604)",
        "DELETE FROM d.t WHERE id = 900",
        "UPDATE d.t SET id = 1001 WHERE id = 6",
        "UPDATE d.told SET n = 1 WHERE writer = 0",
        timeout_ms=60_000,
    )


def _run(server: PrivateServer, floor: Floor) -> Verdict:
    """Chunks of every key at cuts behind a held commit, then of every key after it."""
    base = take_base(server)
    follower = Follower(server, floor)
    try:
        follower.step(with_chunks=True)
        before = Place(*server.log_end())
        commit = _held(server)
        assert Place(*server.log_end()) > before
        steps = 0
        while steps < _STEPS:
            beyond = place(follower.at.at) > before
            follower.step(with_chunks=beyond)
            steps += beyond
            assert commit.held
        assert server.sql("SELECT v FROM d.t WHERE id = 301") != [("held",)]
        assert place(follower.sealed) <= before, "the held commit was declared visible"
        commit.release()
        while place(follower.at.at) < Place(*server.log_end()) or follower.sealed != follower.at.at:
            follower.step(with_chunks=True)
    finally:
        follower.close()
    return judge(server, base, follower.seen)


def test_chunks_are_right_at_cuts_ahead_of_a_held_commit(server: PrivateMySQL) -> None:
    verdict = _run(server, sealed_floor)
    assert verdict.chunks >= 4 * _STEPS
    assert verdict.wrong_chunks == []
    assert verdict.wrong_claims == []
    assert verdict.wrong_segments == []


def test_chunks_are_wrong_there_with_the_floor_at_the_cut(server: PrivateMySQL) -> None:
    assert _run(server, floor_at_the_cut).wrong_chunks


def test_a_first_cut_waits_for_a_held_commit(server: PrivateMySQL) -> None:
    commit = _held(server)
    end = Place(*server.log_end())
    began = time.monotonic()
    timer = threading.Timer(1.0, release, [server])
    timer.start()
    follower = Follower(server)
    follower.close()
    commit.finish()
    assert time.monotonic() - began > 0.9
    assert place(follower.at.at) >= end
    assert follower.seen.claims[0].told[0] == 1
