"""The rare packets of an answer, read field by field: errors, ends and column definitions.

Rows are read in results.py. Sources: MariaDB manual, "Server Client/Protocol" (ERR_Packet, EOF_Packet,
OK_Packet, Result Set Packets: column definition).
"""

from typing import Final

import msgspec

from catchment.model.errors import CorruptResult, ServerSaid, SourceError
from catchment.model.table import Column, ColumnType, Kind
from catchment.wire.cells import charsets

ERROR: Final = 0xFF
END: Final = 0xFE
EOF_SIZE: Final = 5
_MORE_RESULTS: Final = 0x0008  # server status flag
_UNSIGNED, _ENUM, _SET = 0x0020, 0x0100, 0x0800  # column flags
_BINARY_COLLATION: Final = 63

_STRINGS: Final = (15, 249, 250, 251, 252, 253, 254)
_TYPE_CODES: Final = {
    Kind.TINYINT: (1,),
    Kind.SMALLINT: (2,),
    Kind.MEDIUMINT: (9,),
    Kind.INT: (3,),
    Kind.BIGINT: (8,),
    Kind.FLOAT: (4,),
    Kind.DOUBLE: (5,),
    Kind.DECIMAL: (0, 246),
    Kind.BIT: (16,),
    Kind.YEAR: (13,),
    Kind.DATE: (10, 14),
    Kind.TIME: (11,),
    Kind.DATETIME: (12,),
    Kind.TIMESTAMP: (7,),
    Kind.TEXT: _STRINGS,
    Kind.BINARY: _STRINGS,
    Kind.BLOB: (*_STRINGS, 242),
    Kind.ENUM: (247, 254),
    Kind.SET: (248, 254),
    Kind.JSON: (245,),
    Kind.UUID: _STRINGS,
    Kind.INET4: _STRINGS,
    Kind.INET6: _STRINGS,
    Kind.GEOMETRY: (255,),
}


class Fields:
    """A cursor over bytes that cannot leave them: every reading past the end raises CorruptResult."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return len(self._data) - self.at

    def peek(self) -> int:
        """The next byte, not consumed."""
        if self.left < 1:
            raise CorruptResult("a packet ends too early")
        return self._data[self.at]

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if not 0 <= size <= self.left:
            raise CorruptResult("a packet ends too early")
        self.at += size
        return self._data[self.at - size : self.at]

    def skip(self, size: int) -> None:
        """Pass over `size` bytes."""
        self.take(size)

    def integer(self, size: int) -> int:
        """Unsigned little-endian integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def length(self) -> int:
        """Length-encoded integer."""
        first = self.integer(1)
        if first < 0xFB:
            return first
        if first not in (0xFC, 0xFD, 0xFE):
            raise CorruptResult("a packet holds no length where one must be")
        return self.integer({0xFC: 2, 0xFD: 3, 0xFE: 8}[first])

    def string(self) -> bytes:
        """Length-encoded string."""
        return self.take(self.length())

    def packet(self) -> "Fields | None":
        """The payload of the next packet of less than 16 MB; None when it is not complete."""
        if self.left < 4 or self.left - 4 < int.from_bytes(self._data[self.at : self.at + 3], "little"):
            return None
        size = self.integer(3)
        self.skip(1)
        return Fields(self.take(size))


class ColumnDefinition(msgspec.Struct, frozen=True):
    """A column as the result set declares it."""

    name: str
    code: int
    flags: int
    collation: int


class End(msgspec.Struct, frozen=True):
    """The packet that ends a result set: warnings of the statement and the server's status flags."""

    warnings: int
    status: int


def server_error(packet: Fields) -> ServerSaid:
    """The error in an ERR packet."""
    packet.skip(1)
    code = packet.integer(2)
    text = packet.take(packet.left)
    if text[:1] == b"#":  # then five characters of SQLSTATE
        text = text[6:]
    return ServerSaid(code, text.decode(errors="replace"))


def definition(packet: Fields) -> ColumnDefinition:
    """A column definition packet."""
    for _ in range(4):  # catalog, schema, table, table as named in the schema
        packet.string()
    name = packet.string().decode(errors="replace")
    packet.string()
    if packet.length() != 12:
        raise CorruptResult(f"the definition of column {name} is malformed")
    collation = packet.integer(2)
    packet.skip(4)
    return ColumnDefinition(name, packet.integer(1), packet.integer(2), collation)


def end(packet: Fields) -> End:
    """An EOF packet, or the OK packet that takes its place where EOF is deprecated."""
    size = packet.left
    packet.skip(1)
    if size == EOF_SIZE:
        found = End(packet.integer(2), packet.integer(2))
    else:
        packet.length()
        packet.length()
        status = packet.integer(2)
        found = End(packet.integer(2), status)
    if found.status & _MORE_RESULTS:
        raise CorruptResult("the server announces a second result set; a SELECT has one")
    return found


def check_column(number: int, expected: Column, found: ColumnDefinition) -> None:
    """Raise SourceError unless the result set's column is the expected one."""
    where = f"column {number} of the result set"
    if found.name != expected.name:
        raise SourceError(
            f"{where} is {found.name!r}, expected {expected.name!r}; read the table's columns again"
        )
    kind = expected.type.kind
    fault = _fault(expected.type, found)
    if fault:
        raise SourceError(
            f"{where}, {found.name!r}, {fault}, expected {'unsigned ' * expected.type.unsigned}{kind.value}; "
            "read the table's columns again"
        )


def _fault(expected: ColumnType, found: ColumnDefinition) -> str:
    kind = expected.kind
    if found.code not in _TYPE_CODES[kind]:
        return f"has type code {found.code}"
    if kind.value.endswith("int") and bool(found.flags & _UNSIGNED) != expected.unsigned:
        return "is unsigned" if found.flags & _UNSIGNED else "is signed"
    label = Kind.ENUM if found.flags & _ENUM else Kind.SET if found.flags & _SET else None
    if label is not (kind if kind in (Kind.ENUM, Kind.SET) else None):
        return f"is {'no ENUM or SET' if label is None else label.value}"
    if kind in (Kind.BINARY, Kind.BLOB, Kind.GEOMETRY):
        return "" if found.collation == _BINARY_COLLATION else "is text"
    if kind in (Kind.TEXT, Kind.ENUM, Kind.SET, Kind.UUID, Kind.INET4, Kind.INET6):
        charset = charsets.of_collation(found.collation)
        return "" if charset == "utf8mb4" else f"comes in {charset} (character_set_results must be utf8mb4)"
    return ""
