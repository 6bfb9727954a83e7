"""A log file that breaks off, though its server did not crash: nothing that stands after the damage is handed on."""

import os
from collections.abc import Iterator

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.errors import CorruptLog
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.log import LogReader, read_log
from catchment.source.session import connect
from catchment.source.wanted import Wanted

T = TableId("d", "t")
# More than is decoded before it is handed on.
ROWS, ROW_BYTES = 40, 700_000
LOST_BYTES = 100


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    """A server whose log these tests damage."""
    with PrivateServer(server_id=171) as server:
        server.sql(
            "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT)", "FLUSH BINARY LOGS"
        )
        yield server


def test_no_row_after_the_damage_is_handed_on(server: PrivateServer) -> None:
    endpoint = Endpoint("s", server.host, server.port, FEED_USER, server.password)
    with connect(endpoint) as session:
        known = session.server
    start = LogOffset(*server.log_end())
    server.sql(
        "INSERT INTO d.t VALUES (-1, 'whole'), (-2, 'whole')", "INSERT INTO d.t VALUES (-3, 'damaged')"
    )
    server.sql("FLUSH BINARY LOGS")
    server.sql(*(f"INSERT INTO d.t VALUES ({n}, REPEAT('x', {ROW_BYTES}))" for n in range(ROWS)))
    stop = LogOffset(*server.log_end())
    damaged = server.datadir / start.file
    os.truncate(damaged, damaged.stat().st_size - LOST_BYTES)
    handed_on: list[int] = []
    with pytest.raises(CorruptLog, match=f"no server start began {stop.file}"):
        _read(read_log(endpoint, known, start, stop, Wanted({T: ("id",)})), handed_on)
    assert not [number for number in handed_on if number >= 0]


def _read(log: LogReader, handed_on: list[int]) -> None:
    with log:
        for images in log.images():
            handed_on += images.batch.column("id").to_pylist()
