"""A dump that the server ends early says the same as one that has come to the end of the log."""

from collections.abc import Callable

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.errors import ConnectionLost
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.dump import Dump
from catchment.source.log import read_facts, read_log
from catchment.source.session import connect
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from tests.world.sim import binlog

# More than sockets hold: the server is still sending when the first rows are handed on.
ROWS, ROW_BYTES = 96, 700_000


def _killing(shard: PrivateServer, table: TableId, start: LogOffset) -> tuple[Stretch, int]:
    """The log from `start` on, read while its first dump is killed; how many rows came."""
    endpoint = Endpoint("s", shard.host, shard.port, FEED_USER, shard.password)
    session = connect(endpoint)
    server = session.server
    session.close()
    rows = 0
    killed: list[int] = []
    with read_log(endpoint, server, start, None, Wanted({table: ("id",)})) as log:
        for read in log.images():
            rows += read.batch.num_rows
            if not killed:
                dumps = "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'"
                killed.extend(number for (number,) in shard.sql(dumps))
                shard.sql(*(f"KILL QUERY {number}" for number in killed))
    assert len(killed) == 1
    return log.stretch, rows


@pytest.fixture
def table(shard: PrivateServer, fresh_schema: Callable[..., str]) -> TableId:
    schema = fresh_schema(shard)
    shard.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, filler LONGTEXT)", "FLUSH BINARY LOGS")
    return TableId(schema, "t")


def _insert(table: TableId, number: int) -> str:
    return f"INSERT INTO {table} VALUES ({number}, REPEAT('x', {ROW_BYTES}))"


def test_a_dump_that_is_killed_is_not_taken_for_the_end(shard: PrivateServer, table: TableId) -> None:
    start = LogOffset(*shard.log_end())
    shard.sql(*(_insert(table, number) for number in range(ROWS // 2)))
    shard.sql("FLUSH BINARY LOGS", *(_insert(table, number) for number in range(ROWS // 2, ROWS)))
    try:
        stretch, rows = _killing(shard, table, start)
    except ConnectionLost:  # killed between two events of a group
        return
    assert rows == stretch.groups == ROWS
    assert stretch.at == LogOffset(*shard.log_end())
    assert stretch.whole


def test_a_dump_that_is_killed_inside_a_group_is_an_error_to_repeat(
    shard: PrivateServer, table: TableId
) -> None:
    start = LogOffset(*shard.log_end())
    shard.sql("BEGIN", *(_insert(table, number) for number in range(ROWS)), "COMMIT")
    with pytest.raises(ConnectionLost, match="ended a dump inside the group"):
        _killing(shard, table, start)


def test_a_dump_that_is_killed_before_it_has_begun_is_a_lost_connection(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names its file, and ends: a stretch without a file says nothing of any log."""
    start = LogOffset(shard.log_end()[0], 4)
    named = binlog.event(
        binlog.ROTATE,
        binlog.rotate_body(start.file, start.offset),
        at=None,
        seconds=0,
        server_id=1,
        flags=binlog.ARTIFICIAL,
    )
    sent = binlog.packet(1, b"\0" + named) + binlog.packet(2, b"\xfe\0\0\2\0")

    def killed(dump: Dump) -> int:
        if not dump._decoder.ended:
            dump._decoder.feed(sent)
            return len(sent)
        return 0

    monkeypatch.setattr(Dump, "pull", killed)
    endpoint = Endpoint("s", shard.host, shard.port, FEED_USER, shard.password)
    with pytest.raises(ConnectionLost, match="ended a dump before it had begun"):
        read_facts(endpoint, None, start, start)
