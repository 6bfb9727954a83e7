"""Shards whose log does not name columns (binlog_row_metadata): exact through ALTERs and restarts."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session, Writer, Writers
from catchment.feed.verify import verify
from catchment.model.definition import Definition
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError
from catchment.model.position import LogOffset
from catchment.sink.delta.epochs.table import EpochsTable
from tests.layers.wire.dumps import read_dump
from tests.layers.wire.events import events_of, kind_of
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.world.engines import on_spark
from tests.world.judge import Rows, lake_rows, source_rows
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

Servers = dict[str, PrivateServer]
TABLE = "shop.t"
ADD, DROP = "ALTER TABLE shop.t ADD n INT UNSIGNED AFTER id", "ALTER TABLE shop.t DROP b"

_NO_LOG = {"binlog_row_metadata": "NO_LOG", "binlog_alter_two_phase": "ON"}
_MINIMAL = {"binlog_row_metadata": "MINIMAL"}
_NOBLOB = {"binlog_row_image": "NOBLOB"}
_PACKED_MARIADB = {"log_bin_compress": "ON", "log_bin_compress_min_len": "10"}
_PACKED_MYSQL = {"binlog_transaction_compression": "ON"}
_PAYLOAD, _ROWS_PACKED = 40, range(166, 172)


@contextmanager
def two_shards(build: Build | None, settings: Mapping[str, str | int]) -> Iterator[Servers]:
    """Two shards whose logs do not name columns, with a table of three columns of one type."""

    def server(server_id: int) -> PrivateServer:
        options: dict[str, Any] = {"server_id": server_id, "password": "same", "settings": settings}
        return PrivateServer(**options) if build is None else PrivateMySQL(build, **options)

    with server(111) as first, server(112) as second:
        for one in (first, second):
            one.sql("CREATE DATABASE shop")
            one.sql(
                "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT UNSIGNED, b INT UNSIGNED, c VARCHAR(9))"
                " CHARACTER SET utf8mb4"
            )
            one.sql(
                "INSERT INTO shop.t SELECT seq, 4294967295 - seq, seq, CONCAT('é', seq) FROM shop.seq_1_to_50"
            )
        yield {"-80": first, "80-": second}


@pytest.fixture
def plain(spark: SparkContext) -> Iterator[Servers]:
    """Two shards of MariaDB without metadata in their logs."""
    with two_shards(None, _NO_LOG) as servers:
        yield servers


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


def write(server: PrivateServer, key: int, *names: str) -> None:
    """One row more, one changed, with another value in every column."""
    values = ", ".join(f"{name} = {key * 10 + place}" for place, name in enumerate(names))
    server.sql(
        f"INSERT INTO {TABLE} SET id = {key}, {values}", f"UPDATE {TABLE} SET {values} WHERE id = {key - 50}"
    )


def must_be_equal(run: FeedRun, servers: Servers) -> Manifest:
    """Wait for an epoch with all that is in the logs, and compare it with the sources."""
    manifest = run.wait_for_log(servers)
    found = lake_rows(read(run.feed, TABLE, manifest.epoch).arrow().to_pylist(), ("id",))
    columns = {name for row in found.values() for name in row}
    expected: Rows = {
        key: {**dict.fromkeys(columns), **row} for key, row in source_rows(servers, TABLE, ("id",)).items()
    }
    assert found == expected
    return manifest


def columns_known(feed: Feed) -> dict[str, list[str]]:
    """What the lake itself keeps of the definitions, for a restart."""
    newest = EpochsTable(feed.sink.path, feed.name).newest()
    assert newest is not None
    return {shard: [c.name for c in known.columns] for shard, known in described(newest.manifest).items()}


def described(manifest: Manifest) -> dict[str, Definition]:
    """The definition that is known of a shard's table, where one is."""
    return {shard: s.definitions[0] for shard, s in manifest.cut.shards.items() if s.definitions}


@pytest.mark.parametrize(
    ("fixture", "settings"),
    [
        pytest.param("", _NO_LOG, id="MariaDB NO_LOG", marks=pytest.mark.wide),
        pytest.param("", _MINIMAL | _NOBLOB | _PACKED_MARIADB, id="MariaDB MINIMAL, NOBLOB, packed"),
        pytest.param("mysql_80_build", _MINIMAL, id="MySQL 8.0 MINIMAL", marks=pytest.mark.wide),
        pytest.param(
            "mysql_97_build",
            _MINIMAL | _NOBLOB | _PACKED_MYSQL,
            id="MySQL 9.7 MINIMAL, NOBLOB, packed",
            marks=pytest.mark.wide,
        ),
    ],
)
def test_alters_at_other_epochs_and_a_restart_between(
    fixture: str,
    settings: Mapping[str, str | int],
    request: pytest.FixtureRequest,
    spark: SparkContext,
    tmp_path: Path,
) -> None:
    build = request.getfixturevalue(fixture) if fixture else None
    with two_shards(build, settings) as servers:
        _altered_between(servers, spark, tmp_path)
        raw = b"".join(_newest_log(server) for server in servers.values())
    kinds = {kind_of(event) for event in events_of(raw)}
    packed = bool({*_PACKED_MARIADB, *_PACKED_MYSQL} & settings.keys())
    assert (_PAYLOAD in kinds or bool(kinds.intersection(_ROWS_PACKED))) == packed


def _newest_log(server: PrivateServer) -> bytes:
    file, _ = server.log_end()
    return read_dump(server, LogOffset(file, 4))


def _altered_between(servers: Servers, spark: SparkContext, directory: Path) -> None:
    """A feed that copies under writes, follows ADD and DROP COLUMN, and is stopped twice, once with ALTERs between."""
    feed = make_feed(directory, servers, "shop", chunk_rows=10, interval="100ms")
    first, second = servers.values()
    writers = _writers(servers)
    with writers, FeedRun(feed) as run:
        write(first, 51, "a", "b", "c")
        run.wait("all is copied", lambda done: done[-1].cut.copied)
        with writers.paused():
            must_be_equal(run, servers)
        write(first, 52, "a", "b", "c")
        first.sql(ADD)
        write(first, 53, "n", "a", "b", "c")
        write(second, 53, "a", "b", "c")
        with writers.paused():
            must_be_equal(run, servers)
    assert columns_known(feed) == {"-80": ["id", "n", "a", "b", "c"], "80-": ["id", "a", "b", "c"]}
    write(first, 54, "n", "a", "b", "c")
    first.sql(DROP)
    write(first, 55, "n", "a", "c")
    write(second, 54, "a", "b", "c")
    second.sql(ADD, DROP)
    write(second, 55, "n", "a", "c")
    with FeedRun(feed) as run:
        must_be_equal(run, servers)
        write(second, 56, "n", "a", "c")
        must_be_equal(run, servers)
    assert columns_known(feed) == {shard: ["id", "n", "a", "c"] for shard in servers}
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    with FeedRun(feed) as run:
        write(first, 57, "n", "a", "c")
        must_be_equal(run, servers)
        verdict = verify(feed, endpoints, on_spark(spark))
    assert verdict.differences == 0
    assert sum(verdict.rows.values()) == sum(
        int(server.sql(f"SELECT COUNT(*) FROM {TABLE}")[0][0]) for server in servers.values()
    )


def test_metadata_switched_off_and_on_while_the_feed_runs(
    plain: Servers, spark: SparkContext, tmp_path: Path
) -> None:
    for server in plain.values():
        server.sql("SET GLOBAL binlog_row_metadata = FULL", "FLUSH BINARY LOGS")
    feed = make_feed(tmp_path, plain, "shop", chunk_rows=10, interval="100ms")
    first = plain["-80"]
    with FeedRun(feed) as run:
        run.wait("all is copied", lambda done: done[-1].cut.copied)
        write(first, 51, "a", "b", "c")
        assert described(must_be_equal(run, plain)) == {}
        first.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
        write(first, 52, "a", "b", "c")
        assert set(described(must_be_equal(run, plain))) == {"-80"}
        first.sql(ADD)
        write(first, 53, "n", "a", "b", "c")
        first.sql("SET GLOBAL binlog_row_metadata = FULL")
        write(first, 54, "n", "a", "b", "c")
        first.sql(DROP)
        write(first, 55, "n", "a", "c")
        first.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
        write(first, 56, "n", "a", "c")
        must_be_equal(run, plain)
    first.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
    first.sql("SET sql_log_bin = 0", "ALTER TABLE shop.t DROP a")
    first.sql(f"INSERT INTO {TABLE} SET id = 60, n = 1")
    with (
        pytest.raises(CatchmentError, match=r"log .*: shop\.t: a row of the log does not fit") as raised,
        FeedRun(feed) as run,
    ):
        run.wait("an error", lambda done: False)
    assert "altered unseen" in str(raised.value)
