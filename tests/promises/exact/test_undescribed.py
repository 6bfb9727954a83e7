"""Shards whose log does not name columns (binlog_row_metadata): exact through ALTERs and restarts."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session, Writer, Writers
from catchment.feed.verify import verify
from catchment.model.position import LogOffset
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.layers.wire.dumps import read_dump
from tests.layers.wire.events import events_of, kind_of
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.promises.exact.steps import run_here
from tests.promises.exact.undescribed import (
    ADD,
    DROP,
    MINIMAL,
    NO_LOG,
    TABLE,
    Servers,
    described,
    must_be_equal,
    started,
    write,
)
from tests.world.engines import Here
from tests.world.servers.builds import Build

_NOBLOB = {"binlog_row_image": "NOBLOB"}
_PACKED_MARIADB = {"log_bin_compress": "ON", "log_bin_compress_min_len": "10"}
_PACKED_MYSQL = {"binlog_transaction_compression": "ON"}
_PACKED_KINDS = {40, *range(166, 172)}  # a MySQL payload, compressed rows of MariaDB
MORE = "ALTER TABLE shop.t ADD m INT UNSIGNED AFTER id"


def _change(sessions: Sequence[Session], rng: random.Random) -> int:
    """A transaction that knows only the columns that stay."""
    with sessions[0].cursor() as cursor:
        key = rng.randint(1, 60)
        cursor.execute(f"UPDATE {TABLE} SET c = %s WHERE id BETWEEN %s AND %s", (f"é{key}", key, key + 3))
        cursor.execute(f"DELETE FROM {TABLE} WHERE id = %s", (1000 + rng.randint(1, 20),))
        return cursor.execute(
            f"REPLACE INTO {TABLE} (id, c) VALUES (%s, 'new')", (1000 + rng.randint(1, 20),)
        )


def _writers(servers: Servers) -> Writers:
    def connector(server: PrivateServer) -> Callable[[], Session]:
        return lambda: server.connect(autocommit=True)

    return Writers(
        [
            Writer([connector(server)], _change, seed=number, rate=30)
            for number, server in enumerate(servers.values())
        ]
    )


def columns_known(feed: Feed) -> dict[str, list[str]]:
    """What the lake itself keeps of the definitions, for a restart."""
    newest = EpochsTable(feed.sink.path, feed.name).newest()
    assert newest is not None
    return {shard: [c.name for c in known.columns] for shard, known in described(newest.manifest).items()}


def must_be_packed(servers: Servers, packed: set[str]) -> None:
    """The logs of these shards have compressed rows, and no others."""
    for name, server in servers.items():
        raw = read_dump(server, LogOffset(server.log_end()[0], 4))
        kinds = {kind_of(event) for event in events_of(raw)}
        assert bool(kinds & _PACKED_KINDS) == (name in packed), name


@pytest.mark.promise("a binlog without column names is followed through ALTERs and restarts")
def test_alters_at_other_epochs_and_a_restart_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    packed = {**MINIMAL, **_NOBLOB, **_PACKED_MARIADB}
    with started(running=(None, packed), stopped=(None, NO_LOG)) as servers:
        altered_between(servers, ["running"], ["stopped"], tmp_path)
        must_be_packed(servers, {"running"})


def test_alters_of_every_kind_of_server_in_one_feed(
    tmp_path: Path, mysql_80_build: Build, mysql_97_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    kinds: dict[str, tuple[Build | None, dict[str, str | int]]] = {
        "nolog": (None, {**NO_LOG}),
        "mysql80": (mysql_80_build, {**MINIMAL}),
        "packed": (None, {**MINIMAL, **_NOBLOB, **_PACKED_MARIADB}),
        "mysql97": (mysql_97_build, {**MINIMAL, **_NOBLOB, **_PACKED_MYSQL}),
    }
    with started(**kinds) as servers:
        altered_between(servers, ["nolog", "mysql80"], ["packed", "mysql97"], tmp_path)
        must_be_packed(servers, {"packed", "mysql97"})


def altered_between(servers: Servers, running: list[str], stopped: list[str], directory: Path) -> None:
    """A feed that copies under writes, follows ADD and DROP COLUMN, and is stopped twice, once with ALTERs between.

    Of some shards the first ALTER comes while it is `running`, of others while it is `stopped`.
    """
    feed = make_feed(directory, servers, "shop", chunk_rows=10, interval="100ms")
    first, second = ([servers[name] for name in names] for names in (running, stopped))
    writers = _writers(servers)
    with writers, FeedRun(feed) as run:
        for server in first:
            write(server, 51, "a", "b", "c")
        run.wait("all is copied", lambda done: done[-1].cut.copied)
        with writers.paused():
            must_be_equal(run, servers)
        for server in first:
            write(server, 52, "a", "b", "c")
            server.sql(ADD)
            write(server, 53, "n", "a", "b", "c")
        for server in second:
            write(server, 53, "a", "b", "c")
        with writers.paused():
            must_be_equal(run, servers)
    known = {name: ["id", *(["n"] if name in running else []), "a", "b", "c"] for name in servers}
    assert columns_known(feed) == known
    for server in first:
        write(server, 54, "n", "a", "b", "c")
        server.sql(DROP)
        write(server, 55, "n", "a", "c")
    for server in second:
        write(server, 54, "a", "b", "c")
        server.sql(ADD, DROP)
        write(server, 55, "n", "a", "c")
    with FeedRun(feed) as run:
        must_be_equal(run, servers)
        for server in second:
            write(server, 56, "n", "a", "c")
            server.sql(MORE)
            write(server, 57, "m", "n", "a", "c")
        must_be_equal(run, servers)
    known = {name: ["id", *(["m"] if name in stopped else []), "n", "a", "c"] for name in servers}
    assert columns_known(feed) == known
    with FeedRun(feed) as run:
        for server in first:
            write(server, 57, "n", "a", "c")
        must_be_equal(run, servers)
        verdict = verify(feed, {endpoint.shard: endpoint for endpoint in feed.endpoints()}, Here())
    assert verdict.differences == 0
    assert sum(verdict.rows.values()) == sum(
        int(server.sql(f"SELECT COUNT(*) FROM {TABLE}")[0][0]) for server in servers.values()
    )


def test_metadata_switched_off_and_on_while_the_feed_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    full = {**NO_LOG, "binlog_row_metadata": "FULL"}
    with started(**{"-80": (None, full), "80-": (None, full)}) as servers:
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=10, interval="100ms")
        first = servers["-80"]
        with FeedRun(feed) as run:
            run.wait("all is copied", lambda done: done[-1].cut.copied)
            write(first, 51, "a", "b", "c")
            assert described(must_be_equal(run, servers)) == {}
            first.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
            write(first, 52, "a", "b", "c")
            assert set(described(must_be_equal(run, servers))) == {"-80"}
            first.sql(ADD)
            write(first, 53, "n", "a", "b", "c")
            first.sql("SET GLOBAL binlog_row_metadata = FULL")
            write(first, 54, "n", "a", "b", "c")
            for server in servers.values():
                server.sql("CREATE TABLE shop.came (id INT PRIMARY KEY)", "INSERT INTO shop.came VALUES (1)")
            run.wait("another table has come", lambda done: done[-1].cut.copied and len(done[-1].shapes) == 2)
            first.sql(DROP)
            write(first, 55, "n", "a", "c")
            first.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
            first.sql("INSERT INTO shop.came VALUES (2)")
            write(first, 56, "n", "a", "c")
            epoch = must_be_equal(run, servers).epoch
            assert sorted(read(feed, "shop.came", epoch).arrow()["id"].to_pylist()) == [1, 1, 2]
        first.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
        first.sql("SET sql_log_bin = 0", "ALTER TABLE shop.t DROP a")
        first.sql(f"INSERT INTO {TABLE} SET id = 60, n = 1")
        with FeedRun(feed) as run:
            write(servers["80-"], 61, "a", "b", "c")
            run.wait("the table is stale", lambda done: bool(done[-1].stale))
            reason = next(one.stale[0].reason for one in run.epochs if one.stale)
            assert "shop.t: a row of the log does not fit" in reason
            run.wait("it is exact again", lambda done: not done[-1].stale and done[-1].cut.copied)
            must_be_equal(run, servers)


def test_all_tables_are_copied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no definition is left, as where a log describes itself. The servers are at rest, so the new copy reads rows
    of before the change."""
    run_here(monkeypatch)
    with started(**{"-80": (None, NO_LOG), "80-": (None, NO_LOG)}) as servers:
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=10, interval="100ms")
        with FeedRun(feed) as run:
            run.wait("all is copied", lambda done: done[-1].cut.copied)
            for server in servers.values():
                server.sql(
                    f"ALTER TABLE {TABLE} ADD g BIGINT AS (b + 1) STORED", f"INSERT INTO {TABLE} SET id = 60"
                )
            run.wait("it is stale", lambda done: bool(done[-1].stale))
            run.wait("it is exact again", lambda done: not done[-1].stale and done[-1].cut.copied)
            assert set(described(must_be_equal(run, servers))) == {*servers}


def test_a_new_copy_is_altered_before_a_row_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the columns were is known from its beginning on: the catalog tells them as they are now."""
    run_here(monkeypatch)
    with started(**{"-80": (None, NO_LOG)}) as servers:
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=10, interval="100ms")
        with FeedRun(feed) as run:
            run.wait("all is copied", lambda done: done[-1].cut.copied)
            servers["-80"].sql(f"ALTER TABLE {TABLE} ADD g BIGINT AS (b + 1) STORED")
            run.wait("it is stale", lambda done: bool(done[-1].stale))
            servers["-80"].sql("CREATE DATABASE proof")  # so that the ALTER is proven visible
            run.wait("it is exact again", lambda done: not done[-1].stale and done[-1].cut.copied)
            servers["-80"].sql(ADD, f"INSERT INTO {TABLE} SET id = 60, n = 5")
            must_be_equal(run, servers)


def test_metadata_switched_off_while_a_chunk_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log behind the cut does not describe itself any more, and the one in front does."""
    run_here(monkeypatch)
    with started(**{"-80": (None, {**NO_LOG, "binlog_row_metadata": "FULL"})}) as servers:
        server = servers["-80"]
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=10, interval="100ms")
        plans = 0

        def switched_off(place: Fault) -> None:
            nonlocal plans
            plans += place is Fault.AFTER_PLAN
            if place is Fault.AFTER_PLAN and plans == 1:
                server.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
                write(server, 51, "a", "b", "c")

        with FeedRun(feed, switched_off) as run:
            run.wait("all is copied", lambda done: done[-1].cut.copied)
            assert set(described(must_be_equal(run, servers))) == {"-80"}
        assert plans > 1


def test_an_alter_that_says_too_little_stops_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The length that a TEXT is declared with decides which of its types it is, by the character set."""
    run_here(monkeypatch)
    with started(**{"-80": (None, NO_LOG), "80-": (None, NO_LOG)}) as servers:
        for server in servers.values():
            server.sql("CREATE TABLE shop.u (id INT PRIMARY KEY)")
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=10, interval="100ms")
        with FeedRun(feed) as run:
            run.wait("all is copied", lambda done: done[-1].cut.copied)
            for server in servers.values():
                server.sql(f"ALTER TABLE {TABLE} ADD x TEXT(300)", f"UPDATE {TABLE} SET x = id, a = 1")
                server.sql("INSERT INTO shop.u VALUES (1)")
            run.wait("it is stale", lambda done: bool(done[-1].stale))
            (stale,) = next(one.stale for one in run.epochs if one.stale)
            assert stale.table.name == "t"
            assert "cannot be told" in stale.reason
            run.wait("it is exact again", lambda done: not done[-1].stale and done[-1].cut.copied)
            must_be_equal(run, servers)


def test_an_alter_after_the_names_went_stops_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog does not tell any more what the table was like where the feed is."""
    run_here(monkeypatch)
    with started(**{"-80": (None, {**NO_LOG, "binlog_row_metadata": "FULL"})}) as servers:
        server = servers["-80"]
        server.sql("CREATE TABLE shop.u (id INT PRIMARY KEY)", "CREATE TABLE shop.w (id INT PRIMARY KEY)")
        feed = make_feed(tmp_path, servers, "shop", chunk_rows=10, interval="100ms")
        with FeedRun(feed) as run:
            run.wait("all is copied", lambda done: done[-1].cut.copied)
        server.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
        write(server, 51, "a", "b", "c")
        server.sql("INSERT INTO shop.w VALUES (1)", ADD, "DROP TABLE shop.w", "INSERT INTO shop.u VALUES (1)")
        write(server, 52, "n", "a", "b", "c")
        with FeedRun(feed) as run:
            run.wait("it is stale", lambda done: bool(done[-1].stale))
            stale = next(one.stale for one in run.epochs if one.stale)
            assert {one.table.name for one in stale} == {"t", "w"}
            assert "what its columns were here is not known" in stale[0].reason
            run.wait("it is exact again", lambda done: not done[-1].stale and done[-1].cut.copied)
            must_be_equal(run, servers)
