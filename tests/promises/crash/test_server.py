"""A server that crashes while it writes its log."""

import threading
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from tests.promises.crash.conftest import MakeLife
from tests.promises.exact.feedrun import FeedRun
from tests.world.disks import SmallDisk, small_disk
from tests.world.patience import until
from tests.world.servers.chosen import chosen_server

DISK_BYTES = 4 << 20
BIG_ROWS = 400
ROW_BYTES = 20_000


def crash_in_a_large_write(server: PrivateServer, disk: SmallDisk, table: str) -> None:
    """Kill the server while it writes a large transaction to its log, and waits since the disk is full."""
    log = disk.path / server.log_end()[0]
    size = log.stat().st_size

    def commit() -> None:
        with suppress(pymysql.err.MySQLError):  # the server goes away
            rows = f"SELECT seq, REPEAT('x', {ROW_BYTES}) FROM seq_1_to_{BIG_ROWS}"
            server.sql(f"INSERT INTO {table} {rows}", database=table.partition(".")[0])

    writer = threading.Thread(target=commit)
    writer.start()
    until("the disk is full", lambda: not disk.free or not writer.is_alive())
    assert writer.is_alive(), "the transaction was through before it could be cut"
    server.kill9()
    writer.join()
    assert log.stat().st_size > size + ROW_BYTES
    disk.resize(10 * DISK_BYTES)


@pytest.mark.promise("a transaction that a killed server wrote only in part is ignored")
def test_a_group_cut_off_by_a_crash_is_void(live: MakeLife, tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", DISK_BYTES) as disk,
        chosen_server(server_id=142, settings={"log_bin": str(disk.path / "binlog")}) as server,
    ):
        own = {"-80": server}
        life = live(own)
        life.load(60)
        big = f"{life.schema}.big"
        server.sql(f"CREATE TABLE {big} (id INT PRIMARY KEY, b LONGTEXT)")
        with FeedRun(life.feed) as run:
            run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
            life.touch(1)
            crash_in_a_large_write(server, disk, big)
            server.start()
            life.touch(2)
            run.wait_for_log(own)
        assert server.sql(f"SELECT COUNT(*) FROM {big}") == [(0,)]
        life.must_be_exact()
        assert read(life.feed, big).arrow().num_rows == 0
