"""A dump that the server ends early says the same as one that has come to the end of the log."""

import random
from collections.abc import Callable

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.errors import ConnectionLost
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.dump import Dump
from catchment.source.groups import Tally
from catchment.source.log import EndedGroups, _Reading, read_facts, read_log
from catchment.source.session import connect
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from tests.world.sim import binlog
from tests.world.sim.server import Server

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


def test_a_stretch_does_not_end_in_front_of_a_file_of_which_nothing_was_read() -> None:
    """Its budget is used up where a file names the next one: the position would have the birth of the file before."""
    server = Server("s0", 101, random.Random(1), lambda: 0.0)
    server.commit((("t", 1, (1, 1)),), hold=0.0)
    end, first = server.end(), server.files[0]
    server.rotate()
    server.commit((("t", 2, (2, 2)),), hold=0.0)
    reading = _Reading(LogOffset(first.name, 4), None, Wanted(), Tally(None, budget=1))
    names = 0  # a dump says the name of each file, too
    for number, payload in enumerate(server.dump(first.name, 4, stands=False), 1):
        reading.decoder.feed(binlog.packet(number, payload))
        names += payload[5] == binlog.ROTATE
        if names == 3:
            break
    assert reading.decoder.at == LogOffset("binlog.000002", 4)
    reading.over = True
    (ended,) = reading.take()
    assert isinstance(ended, EndedGroups)
    stretch = reading.stretch
    assert stretch.at == LogOffset(first.name, end[1])
    assert [file.name for file in stretch.files] == [first.name]
    assert (stretch.groups, stretch.whole) == (1, False)
