"""Events of MariaDB's log as bytes, by the manual ("1-Binlog Events"): what the simulator's servers write."""

import struct
import zlib
from collections.abc import Sequence

FORMAT, ROTATE, STOP, QUERY, XID, TABLE_MAP = 15, 4, 3, 2, 16, 19
WRITE, UPDATE, DELETE = 23, 24, 25
XA_PREPARE, CHECKPOINT, GTID, GTID_LIST = 38, 161, 162, 163
STANDALONE, TRANSACTIONAL, DDL, PREPARED, COMPLETED = 1, 4, 32, 64, 128
ARTIFICIAL = 0x20
_LONGLONG = 8
_TYPES = 164

Row = Sequence[int | None]


def event(kind: int, body: bytes, *, at: int | None, seconds: int, server_id: int, flags: int = 0) -> bytes:
    """One event that begins at offset `at` of its file; None for one that stands in no file."""
    size = 19 + len(body) + 4
    following = 0 if at is None else at + size
    head = struct.pack("<IBIIIH", seconds, kind, server_id, size, following & 0xFFFFFFFF, flags)
    return head + body + struct.pack("<I", zlib.crc32(head + body))


def format_body(created: int) -> bytes:
    """Of a FORMAT_DESCRIPTION: version 4, with checksums."""
    version = b"10.11.6-MariaDB-log".ljust(50, b"\0")
    return struct.pack("<H", 4) + version + struct.pack("<IB", created, 19) + bytes(_TYPES) + b"\x01"


def gtid_list_body(gtids: Sequence[tuple[int, int, int]]) -> bytes:
    """Of a GTID_LIST: domain, server and sequence of each."""
    return struct.pack("<I", len(gtids)) + b"".join(struct.pack("<IIQ", *gtid) for gtid in gtids)


def checkpoint_body(file: str) -> bytes:
    """Of a BINLOG_CHECKPOINT."""
    return struct.pack("<I", len(file)) + file.encode()


def rotate_body(file: str, offset: int) -> bytes:
    """Of a ROTATE."""
    return struct.pack("<Q", offset) + file.encode()


def gtid_body(sequence: int, domain: int, flags: int, xid: bytes = b"") -> bytes:
    """Of a GTID event; `xid` of one that prepares or ends an XA transaction."""
    head = struct.pack("<QIB", sequence, domain, flags)
    return head + (struct.pack("<IBB", 1, len(xid), 0) + xid if xid else bytes(6))


def query_body(schema: str, sql: str) -> bytes:
    """Of a QUERY without status variables."""
    return struct.pack("<IIBHH", 1, 0, len(schema), 0, 0) + schema.encode() + b"\0" + sql.encode()


def xa_prepare_body(xid: bytes) -> bytes:
    """Of an XA_PREPARE_LOG_EVENT."""
    return struct.pack("<BIII", 0, 1, len(xid), 0) + xid


def table_map_body(number: int, schema: str, name: str, columns: Sequence[str]) -> bytes:
    """Of a TABLE_MAP of BIGINT columns, of which the first is the key, with full metadata."""
    count = len(columns)
    nullable = bytearray((count + 7) // 8)
    for column in range(1, count):
        nullable[column // 8] |= 1 << column % 8
    names = b"".join(bytes([len(column)]) + column.encode() for column in columns)
    metadata = [(1, bytes((count + 7) // 8)), (4, names), (8, b"\0")]
    return (
        number.to_bytes(6, "little")
        + struct.pack("<HB", 1, len(schema))
        + schema.encode()
        + bytes([0, len(name)])
        + name.encode()
        + bytes([0, count])
        + bytes([_LONGLONG]) * count
        + b"\0"
        + bytes(nullable)
        + b"".join(bytes([kind, len(value)]) + value for kind, value in metadata)
    )


def rows_body(number: int, columns: int, images: Sequence[Sequence[Row]], *, last: bool) -> bytes:
    """Of a row event: each change has one image, or two for an UPDATE; `last` of its statement."""
    present = _bits((1 << columns) - 1, columns)
    maps = present * max(len(change) for change in images)
    body = number.to_bytes(6, "little") + struct.pack("<H", int(last)) + bytes([columns]) + maps
    return body + b"".join(_image(row) for change in images for row in change)


def _image(row: Row) -> bytes:
    nulls = sum(1 << column for column, value in enumerate(row) if value is None)
    values = b"".join(struct.pack("<q", value) for value in row if value is not None)
    return _bits(nulls, len(row)) + values


def _bits(bits: int, columns: int) -> bytes:
    """A bitmap with a bit for each column."""
    return bits.to_bytes((columns + 7) // 8, "little")


def packet(number: int, payload: bytes) -> bytes:
    """A packet of the protocol."""
    return struct.pack("<I", len(payload) | (number & 0xFF) << 24) + payload
