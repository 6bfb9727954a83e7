"""Log files that are purged while a feed is stopped: it goes on where nothing is lost, and says so where not."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.model.errors import Purged
from tests.exact.feedrun import FeedRun, make_feed
from tests.judge import lake_rows, source_rows

T = "shop.t"


@pytest.fixture
def own() -> Iterator[PrivateServer]:
    """A server whose log may be purged."""
    with PrivateServer(server_id=121) as server:
        yield server


def purge(server: PrivateServer) -> None:
    """Begin a new log file and remove all others."""
    server.sql("FLUSH BINARY LOGS")
    newest = server.log_end()[0]
    deadline = time.monotonic() + 10
    while len(server.sql(f"PURGE BINARY LOGS TO '{newest}'", "SHOW BINARY LOGS")) > 1:
        assert time.monotonic() < deadline, "the old file is still in use"
        time.sleep(0.1)  # until InnoDB has made a checkpoint behind it


def test_a_file_that_held_nothing_more_is_not_missed(
    own: PrivateServer, spark: SparkSession, tmp_path: Path
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
            purge(own)
    own.sql(f"UPDATE {T} SET c = 9")
    purge(own)
    with pytest.raises(Purged, match="it was purged; copy the tables again"), FeedRun(feed) as run:
        run.wait_for_log(servers)
