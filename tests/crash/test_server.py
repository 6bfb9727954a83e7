"""A server that crashes while it writes its log, and one that has purged the log that comes next."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from catchment.demo.server import PrivateServer
from catchment.flow.sink.epochs import EpochsTable
from catchment.model.errors import Purged
from tests.crash.conftest import MakeLife
from tests.exact.feedrun import FeedRun

BIG_ROWS = 3000
ROW_BYTES = 20_000


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, PrivateServer]]:
    """A shard that these tests stop and purge."""
    with PrivateServer(server_id=141, settings={"max_allowed_packet": "64M"}) as server:
        yield {"-80": server}


def crash_in_a_large_write(server: PrivateServer, table: str) -> None:
    """Kill the server while a transaction of 60 MB is being copied into its log."""
    file, size = server.log_end()
    log = Path(server.datadir) / file

    def commit() -> None:
        try:
            server.sql(f"INSERT INTO {table} SELECT seq, REPEAT('x', {ROW_BYTES}) FROM seq_1_to_{BIG_ROWS}")
        except pymysql.err.MySQLError:
            return  # the server is gone

    writer = threading.Thread(target=commit)
    writer.start()
    while log.stat().st_size < size + (1 << 20):
        assert writer.is_alive(), "the transaction was through before it could be cut"
    server.kill9()
    writer.join()
    assert size + (1 << 20) <= log.stat().st_size < size + BIG_ROWS * ROW_BYTES, "nothing was cut off"


def test_a_group_cut_off_by_a_crash_is_void(
    own: dict[str, PrivateServer], spark: SparkSession, live: MakeLife
) -> None:
    life = live(own)
    life.load(60)
    server = own["-80"]
    big = f"{life.schema}.big"
    server.sql(f"CREATE TABLE {big} (id INT PRIMARY KEY, b LONGTEXT)")
    with FeedRun(life.feed) as run:
        run.wait("a copy", lambda epochs: all(p.done for p in epochs[-1].progress))
        life.touch(1)
        crash_in_a_large_write(server, big)
        server.start()
        life.touch(2)
        run.wait_for_log(own)
    assert server.sql(f"SELECT COUNT(*) FROM {big}") == [(0,)]
    life.keys[big] = ("id",)
    life.must_be_exact()
    life.keys.pop(big)
    life.touch(3)
    assert life.run() == 0
    life.must_be_exact()


def test_a_log_purged_during_a_pause_is_named_before_harm(
    own: dict[str, PrivateServer], spark: SparkSession, live: MakeLife, capfd: pytest.CaptureFixture[str]
) -> None:
    life = live(own)
    life.load(60)
    assert life.run() == 0
    life.touch(1)
    server = own["-80"]
    server.sql("FLUSH BINARY LOGS")
    life.touch(2)
    server.sql(f"PURGE BINARY LOGS TO '{server.log_end()[0]}'")
    before = EpochsTable(life.lake, "life").newest()
    capfd.readouterr()
    assert life.run() == Purged.exit_code
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert "shard -80" in said[0]
    assert "purged" in said[0]
    assert EpochsTable(life.lake, "life").newest() == before
