"""A dump that waits at the end of the log and gets heartbeats, on real servers."""

import struct
from collections.abc import Callable

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.answers import run, socket_of
from tests.layers.wire.dumps import end_of_log
from tests.layers.wire.events import events_of, kind_of
from tests.world.patience import PATIENCE_SECONDS

_DUMP, _HEARTBEATS_2, _SERVER_ID = 0x12, 2, 4711
_HEARTBEAT, _HEARTBEAT_2 = 27, 41
_PERIOD_NS = 20_000_000


@pytest.mark.parametrize(
    ("fixture", "flags", "kind"),
    [
        ("shard", 0, _HEARTBEAT),
        ("mysql_server", 0, _HEARTBEAT),
        ("mysql_97_server", 0, _HEARTBEAT),
        ("mysql_97_server", _HEARTBEATS_2, _HEARTBEAT_2),
    ],
)
def test_heartbeats_say_nothing_and_change_nothing(
    fixture: str, flags: int, kind: int, request: pytest.FixtureRequest, fresh_schema: Callable[..., str]
) -> None:
    server: PrivateServer = request.getfixturevalue(fixture)
    schema = fresh_schema(server)
    server.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    start = end_of_log(server)
    decoder = LogDecoder(start, [TableId(schema, "t")])
    received = b""
    inserted = 0
    session = server.connect()
    try:
        run(
            session,
            "SET @master_binlog_checksum = @@global.binlog_checksum",
            "SET @source_binlog_checksum = @@global.binlog_checksum, @mariadb_slave_capability = 4",
            f"SET @master_heartbeat_period = {_PERIOD_NS}, @source_heartbeat_period = {_PERIOD_NS}",
            "SELECT 1",
        )
        command = struct.pack("<BIHI", _DUMP, start.offset, flags, _SERVER_ID) + start.file.encode()
        sock = socket_of(session)
        sock.sendall(struct.pack("<I", len(command)) + command)
        sock.settimeout(PATIENCE_SECONDS)
        while decoder.last_group is None or inserted < 2 or decoder.at != end_of_log(server):
            piece = sock.recv(1 << 16)
            assert piece
            received += piece
            decoder.feed(piece)
            beats = [kind_of(event) for event in events_of(received)].count(kind)
            if beats > 2 * inserted and inserted < 2:
                inserted += 1
                server.sql(f"INSERT INTO {schema}.t VALUES ({inserted})")
    finally:
        session._force_close()  # type: ignore[attr-defined]
    kinds = [kind_of(event) for event in events_of(received)]
    assert kinds.count(kind) >= 3
    rows = [row["id"] for images in decoder.take_images() for row in images.batch.to_pylist()]
    assert rows == [1, 2]
