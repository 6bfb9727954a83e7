"""A dump of a real server's log, as raw bytes: what a LogDecoder is fed."""

import struct
from typing import Any

from pymysql.connections import Connection

from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.source.session import connect
from catchment.wire.log.decoder import LogDecoder

NON_BLOCKING = 1
WITH_ANNOTATIONS = 2


def read_dump(server: PrivateServer, start: LogOffset, flags: int = NON_BLOCKING) -> bytes:
    """Everything that the server sends for COM_BINLOG_DUMP up to the end of its log."""
    connection: Connection[Any] = server.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("SET @mariadb_slave_capability = 4")
        command = struct.pack("<BIHI", 0x12, start.offset, flags, 0) + start.file.encode()
        socket = connection._sock  # type: ignore[attr-defined]
        socket.sendall(struct.pack("<I", len(command)) + command)
        received = bytearray()
        while piece := socket.recv(1 << 20):
            received += piece
        return bytes(received)
    finally:
        connection.close()


def end_of_log(server: PrivateServer) -> LogOffset:
    """Where the log of the server ends now."""
    return LogOffset(*server.log_end())


def decoded(raw: bytes, start: LogOffset, **options: Any) -> LogDecoder:
    """A decoder that has been fed all of `raw` at once."""
    decoder = LogDecoder(start, **options)
    decoder.feed(raw)
    return decoder


def packets(raw: bytes) -> list[bytes]:
    """The packets of a dump, headers included."""
    found = []
    at = 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 3], "little") + 4
        found.append(raw[at : at + size])
        at += size
    return found


def logs_generated(server: PrivateServer) -> bool:
    """Whether the server's log has generated columns, as far as is known (tests/layers/source/test_generated.py)."""
    with connect(Endpoint("s", server.host, server.port, "catchment", server.password)) as session:
        return not session.leaves_generated_out
