"""Shards whose log does not name columns (binlog_row_metadata): exact through ALTERs and restarts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.flow.sink.epochs import EpochsTable
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError
from catchment.run.verify import verify
from tests.exact.feedrun import FeedRun, make_feed
from tests.judge import Rows, lake_rows, source_rows

Servers = dict[str, PrivateServer]
TABLE = "shop.t"
ADD, DROP = "ALTER TABLE shop.t ADD n INT UNSIGNED AFTER id", "ALTER TABLE shop.t DROP b"


@pytest.fixture
def plain(spark: SparkSession) -> Iterator[Servers]:
    """Two shards without metadata in their logs, with a table of three columns of one type."""
    settings = {"binlog_row_metadata": "NO_LOG", "binlog_alter_two_phase": "ON"}
    with (
        PrivateServer(server_id=111, password="same", settings=settings) as first,
        PrivateServer(server_id=112, password="same", settings=settings) as second,
    ):
        for server in (first, second):
            server.sql("CREATE DATABASE shop")
            server.sql(
                "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT UNSIGNED, b INT UNSIGNED, c VARCHAR(9))"
            )
            server.sql(
                "INSERT INTO shop.t SELECT seq, 4294967295 - seq, seq, CONCAT('é', seq) FROM shop.seq_1_to_50"
            )
        yield {"-80": first, "80-": second}


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
    return {shard: [c.name for c in known[0].columns] for shard, known in newest.manifest.definitions.items()}


@pytest.mark.timeout(300)
def test_alters_at_other_epochs_and_a_restart_between(
    plain: Servers, spark: SparkSession, tmp_path: Path
) -> None:
    feed = make_feed(tmp_path, plain, "shop", chunk_rows=10, interval="100ms")
    first, second = plain.values()
    with FeedRun(feed) as run:
        write(first, 51, "a", "b", "c")
        must_be_equal(run, plain)
        write(first, 52, "a", "b", "c")
        first.sql(ADD)
        write(first, 53, "n", "a", "b", "c")
        write(second, 53, "a", "b", "c")
        must_be_equal(run, plain)
    assert columns_known(feed) == {"-80": ["id", "n", "a", "b", "c"], "80-": ["id", "a", "b", "c"]}
    write(first, 54, "n", "a", "b", "c")
    first.sql(DROP)
    write(first, 55, "n", "a", "c")
    write(second, 54, "a", "b", "c")
    second.sql(ADD, DROP)
    write(second, 55, "n", "a", "c")
    with FeedRun(feed) as run:
        must_be_equal(run, plain)
        write(second, 56, "n", "a", "c")
        must_be_equal(run, plain)
    assert columns_known(feed) == {shard: ["id", "n", "a", "c"] for shard in plain}
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    with FeedRun(feed) as run:
        write(first, 57, "n", "a", "c")
        must_be_equal(run, plain)
        verdict = verify(feed, endpoints, spark)
    assert verdict.differences == 0
    assert sum(verdict.rows.values()) == 50 * 2 + 6 + 4


@pytest.mark.timeout(300)
def test_metadata_switched_off_and_on_while_the_feed_runs(
    plain: Servers, spark: SparkSession, tmp_path: Path
) -> None:
    for server in plain.values():
        server.sql("SET GLOBAL binlog_row_metadata = FULL", "FLUSH BINARY LOGS")
    feed = make_feed(tmp_path, plain, "shop", chunk_rows=10, interval="100ms")
    first = plain["-80"]
    with FeedRun(feed) as run:
        run.wait("all is copied", lambda done: all(p.done for p in done[-1].progress))
        write(first, 51, "a", "b", "c")
        assert must_be_equal(run, plain).definitions == {}
        first.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
        write(first, 52, "a", "b", "c")
        assert set(must_be_equal(run, plain).definitions) == {"-80"}
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
