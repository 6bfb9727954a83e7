"""Requests of prepared statements and of the log, as bytes to send, and the answer to a PREPARE.

Sources: MariaDB manual, "Clients & Utilities: Server Client/Protocol" (COM_STMT_PREPARE, COM_STMT_EXECUTE,
COM_STMT_CLOSE, COM_BINLOG_DUMP); MySQL, sql/rpl_source.cc (COM_BINLOG_DUMP_GTID). Requests are whole packets with
their headers, sequence number 0, ready for the socket.
"""

import datetime
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec

from catchment.model.errors import CorruptResult
from catchment.model.gtidset import GtidSet
from catchment.model.position import LogOffset
from catchment.wire.packets.gtidsets import encoded_gtids
from catchment.wire.packets.replies import ERROR, Fields, server_error

Parameter = int | str | bytes | Decimal | datetime.date | None

_PREPARE: Final = b"\x16"
_EXECUTE: Final = b"\x17"
_CLOSE: Final = b"\x19"
_DUMP: Final = b"\x12"
_DUMP_GTID: Final = b"\x1e"
# The dump ends where the log ends. Server id 0 then kills no other dump and is killed by none.
_NON_BLOCKING: Final = 1
_NO_SERVER_ID: Final = 0
_FILE_START: Final = 4
_PACKET_MAX: Final = 0xFFFFFF
_LONGLONG, _NULL, _NEWDECIMAL, _BLOB, _VAR_STRING = 8, 6, 246, 252, 253
_UNSIGNED: Final = 0x80


class PreparedStatement(msgspec.Struct, frozen=True):
    """What the server answered to PREPARE; `size` is how many bytes the answer took."""

    statement_id: int
    columns: int
    parameters: int
    warnings: int
    size: int


def _packets(payload: bytes) -> bytes:
    """Add headers; a payload of 2^24 - 1 bytes or more goes in several packets, the last one shorter."""
    parts = []
    for number, start in enumerate(range(0, len(payload) + 1, _PACKET_MAX)):
        piece = payload[start : start + _PACKET_MAX]
        parts.append(len(piece).to_bytes(3, "little") + bytes([number & 0xFF]) + piece)
    return b"".join(parts)


def prepare_packet(sql: str) -> bytes:
    """COM_STMT_PREPARE; parameters are `?` in the statement."""
    return _packets(_PREPARE + sql.encode())


def close_packet(statement_id: int) -> bytes:
    """COM_STMT_CLOSE; the server does not answer it."""
    return _packets(_CLOSE + struct.pack("<I", statement_id))


def execute_packet(statement_id: int, parameters: Sequence[Parameter] = ()) -> bytes:
    """COM_STMT_EXECUTE without a cursor: rows come at once.

    Dates and datetimes go as text, a Decimal as an exact number, text as utf8mb4. Raises ValueError for an
    integer beyond 64 bits or a value of another type.
    """
    payload = _EXECUTE + struct.pack("<IBI", statement_id, 0, 1)
    if parameters:
        nulls = sum(1 << i for i, value in enumerate(parameters) if value is None)
        encoded = [_encoded(value) for value in parameters]
        payload += nulls.to_bytes((len(parameters) + 7) // 8, "little") + b"\x01"
        payload += b"".join(kind for kind, _ in encoded) + b"".join(value for _, value in encoded)
    return _packets(payload)


def dump_packet(start: LogOffset) -> bytes:
    """COM_BINLOG_DUMP from an offset to the end of the log."""
    return _dump(start, _NON_BLOCKING, _NO_SERVER_ID)


def standing_dump_packet(start: LogOffset, server_id: int) -> bytes:
    """COM_BINLOG_DUMP from an offset on, which waits for more where the log ends. A server ends such a dump at once for
    server id 0, and when another one comes that has the same id."""
    return _dump(start, 0, server_id)


def _dump(start: LogOffset, flags: int, server_id: int) -> bytes:
    return _packets(_DUMP + struct.pack("<IHI", start.offset, flags, server_id) + start.file.encode())


def dump_gtid_packet(known: GtidSet) -> bytes:
    """COM_BINLOG_DUMP_GTID: the groups that are not known, to the end of the log. MySQL only."""
    gtids = encoded_gtids(known)
    head = struct.pack("<HIIQI", _NON_BLOCKING, _NO_SERVER_ID, 0, _FILE_START, len(gtids))
    return _packets(_DUMP_GTID + head + gtids)


def _encoded(value: Parameter) -> tuple[bytes, bytes]:
    """Type (code, flags) and bytes of a parameter."""
    if value is None:
        return bytes([_NULL, 0]), b""
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError("a statement takes integers of 64 bits; pass a Decimal")
        flag = _UNSIGNED if value >= 1 << 63 else 0
        return bytes([_LONGLONG, flag]), (value & (1 << 64) - 1).to_bytes(8, "little")
    code, text = _as_text(value)
    return bytes([code, 0]), _counted(text)


def _as_text(value: Parameter) -> tuple[int, bytes]:
    """Type code and text of a parameter that is sent as such."""
    match value:
        case str():
            return _VAR_STRING, value.encode()
        case bytes():
            return _BLOB, value
        case Decimal() if value.is_finite():
            return _NEWDECIMAL, format(value, "f").encode()
        case datetime.datetime() if value.tzinfo is None:
            return _VAR_STRING, value.isoformat(" ").encode()
        case datetime.date() if not isinstance(value, datetime.datetime):
            return _VAR_STRING, value.isoformat().encode()
    raise ValueError(f"a statement takes no such parameter: {type(value).__name__}")


def _counted(value: bytes) -> bytes:
    """Length-encoded string."""
    size = len(value)
    if size < 0xFB:
        return bytes([size]) + value
    if size < 1 << 16:
        return b"\xfc" + size.to_bytes(2, "little") + value
    if size < 1 << 24:
        return b"\xfd" + size.to_bytes(3, "little") + value
    return b"\xfe" + size.to_bytes(8, "little") + value


def parse_prepare_ok(data: bytes | memoryview) -> PreparedStatement | None:
    """The answer to PREPARE from the bytes received so far; None when more must come.

    The session must not have agreed on CLIENT_DEPRECATE_EOF (PyMySQL never does).
    Raises ServerSaid when the server refused the statement, CorruptResult when this is no such answer.
    """
    fields = Fields(bytes(data))
    first = fields.packet()
    if first is None:
        return None
    if first.left == 0 or first.peek() == ERROR:
        raise server_error(first)
    if first.integer(1) != 0 or first.left < 11:
        raise CorruptResult("the answer to PREPARE is neither OK nor an error")
    statement_id, columns, parameters = first.integer(4), first.integer(2), first.integer(2)
    first.skip(1)
    warnings = first.integer(2)
    for definitions in (parameters, columns):
        for _ in range(definitions + 1 if definitions else 0):  # one more: the EOF packet
            if fields.packet() is None:
                return None
    return PreparedStatement(statement_id, columns, parameters, warnings, fields.at)
