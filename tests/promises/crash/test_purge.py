"""Log files that are purged while a feed is stopped: it goes on where nothing is lost, and says so where not."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.world.judge import lake_rows, source_rows
from tests.world.purged import begin_anew

T = "shop.t"


@pytest.fixture
def own() -> Iterator[PrivateServer]:
    """A server whose log may be purged."""
    with PrivateServer(server_id=121, settings={"gtid_strict_mode": "ON"}) as server:
        yield server


def test_a_file_that_held_nothing_more_is_not_missed(
    own: PrivateServer, spark: SparkContext, tmp_path: Path
) -> None:
    own.sql(
        "CREATE DATABASE shop",
        f"CREATE TABLE {T} (id INT PRIMARY KEY, c INT)",
        f"INSERT INTO {T} VALUES (1, 1)",
    )
    servers = {"-80": own}
    feed = make_feed(tmp_path, servers, "shop", chunk_rows=10)
    for number in (2, 3):
        with FeedRun(feed) as run:
            manifest = run.wait_for_log(servers)
            own.sql(f"INSERT INTO {T} VALUES ({number}, 1)", f"UPDATE {T} SET c = c + 1")
            manifest = run.wait_for_log(servers)
        found = read(feed, T, manifest.epoch).arrow().to_pylist()
        assert lake_rows(found, ("id",)) == source_rows(servers, T, ("id",))
        if number == 2:
            begin_anew(own)
    own.sql(f"UPDATE {T} SET c = 9")
    begin_anew(own)
    with FeedRun(feed) as run:
        newest = run.wait("a stale table", lambda epochs: bool(epochs[-1].stale))
    assert re.search("it was purged; copy its tables again", newest.stale[0].reason)


def test_a_log_that_was_reset_before_a_restart_may_begin_at_the_same_gtids(
    own: PrivateServer, spark: SparkContext, tmp_path: Path
) -> None:
    own.sql("CREATE DATABASE shop", f"CREATE TABLE {T} (id INT PRIMARY KEY, c INT)", "RESET MASTER")
    own.sql(*(f"INSERT INTO {T} VALUES ({key}, 1)" for key in (1, 2)))
    feed = make_feed(tmp_path, {"-80": own}, "shop", chunk_rows=10)
    with FeedRun(feed) as run:
        run.wait_for_log({"-80": own})
    own.sql("RESET MASTER", *(f"UPDATE {T} SET c = {number}" for number in (5, 6)))
    begin_anew(own)  # the file of the position is another log's, and gone
    own.restart()
    with FeedRun(feed) as run:
        newest = run.wait("a stale table", lambda epochs: bool(epochs[-1].stale))
    assert "the server was restarted since" in newest.stale[0].reason
