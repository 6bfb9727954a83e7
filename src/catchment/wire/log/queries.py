"""Query events: the statement, what it does to the group it stands in, and names in it."""

import re
import zlib
from enum import Enum
from typing import Final

import msgspec

from catchment.model.errors import CorruptLog
from catchment.model.position import Xid
from catchment.wire.cells import charsets

UNPACKED_MAX: Final = 1 << 30  # max_allowed_packet cannot be larger, so no event unpacks to more


class Verb(Enum):
    """What a statement means for the group it stands in."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to"
    RELEASE = "release"
    XA = "xa start or end"
    OTHER = "other"


class Query(msgspec.Struct, frozen=True):
    """A statement; `schema` is the default schema of its session, `sql_mode` its mode as a number.

    `is_ddl`: MySQL logged it as DDL that the engine commits (false for ALTER of other engines, GRANT and others).
    It is true, too, for the first part of a CREATE TABLE ... SELECT, whose rows follow in the same group. `failed`: it
    ended with an error.
    """

    schema: str
    sql: str
    sql_mode: int
    is_ddl: bool = False
    failed: bool = False


_NAME: Final = r"(`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|[^\s`\";]+)\s*;?\s*"
_NAMED: Final = (
    (Verb.SAVEPOINT, re.compile(r"\s*SAVEPOINT\s+" + _NAME, re.I)),
    (Verb.ROLLBACK_TO, re.compile(r"\s*ROLLBACK\s+(?:WORK\s+)?TO\s+(?:SAVEPOINT\s+)?" + _NAME, re.I)),
    (Verb.RELEASE, re.compile(r"\s*RELEASE\s+SAVEPOINT\s+" + _NAME, re.I)),
)
_PLAIN: Final = {"BEGIN": Verb.BEGIN, "COMMIT": Verb.COMMIT, "ROLLBACK": Verb.ROLLBACK}
_XA: Final = re.compile(r"\s*XA\s+(?:START|BEGIN|END)\s", re.I)
# Options of the table and partitions may stand behind these words (seen on MySQL 9.7), so the event's flags alone do
# not tell such a statement from one of a transaction.
_CREATES: Final = re.compile(r"\s*CREATE\s+TABLE\s", re.I)
_WITH_ROWS: Final = ") START TRANSACTION"
_XA_COMMIT: Final = re.compile(r"\s*XA\s+COMMIT\s", re.I)
# MySQL writes the name in hexadecimal digits.
_XA_ENDED: Final = re.compile(
    r"\s*XA\s+(?:COMMIT|ROLLBACK)\s+X'((?:[0-9A-F]{2})*)',X'((?:[0-9A-F]{2})*)',(\d{1,10})", re.I
)


def classify(sql: str) -> tuple[Verb, str]:
    """The verb and, for savepoints, the name."""
    plain = _PLAIN.get(sql.strip().upper())
    if plain is not None:
        return plain, ""
    for verb, pattern in _NAMED:
        match = pattern.fullmatch(sql)
        if match is not None:
            return verb, _unquoted(match[1])
    return (Verb.XA if _XA.match(sql) else Verb.OTHER), ""


def commits_xa(sql: str) -> bool:
    """Whether the end of an XA transaction is its commit."""
    return _XA_COMMIT.match(sql) is not None


def ended_xa(sql: str) -> Xid | None:
    """The XA transaction that a statement of MySQL's log commits or rolls back; None for other statements."""
    match = _XA_ENDED.match(sql)
    if match is None:
        return None
    return Xid(int(match[3]), bytes.fromhex(match[1]), bytes.fromhex(match[2]))


def _unquoted(name: str) -> str:
    if name[0] in '`"':
        return name[1:-1].replace(name[0] * 2, name[0])
    return name


# Length of status variables by code (MariaDB manual: QUERY_EVENT; MySQL: statement_events.h, from 7 on).
_FIXED: Final = {
    0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1,
    128: 3, 129: 8,
}  # fmt: skip
_SQL_MODE, _CHARSET, _DDL = 1, 4, 17
# Strings with their length in front: how many, and bytes behind them. Old catalog, time zone, catalog, invoker.
_STRINGS: Final = {2: (1, 1), 5: (1, 0), 6: (1, 0), 11: (2, 0)}
_SCHEMAS, _MANY_SCHEMAS = 12, 254  # names of schemas changed, each with a zero byte behind it; or too many


def read(body: bytes, packed: bool) -> Query:
    """Read the body behind the event header; `packed` for QUERY_COMPRESSED. Raises CorruptLog."""
    if len(body) < 13:
        raise CorruptLog("the statement event ends too early")
    schema_size = body[8]
    status_end = 13 + int.from_bytes(body[11:13], "little")
    schema_end = status_end + schema_size
    if len(body) < schema_end + 1:
        raise CorruptLog("the statement event ends too early")
    status = _status(body[13:status_end])
    sql = body[schema_end + 1 :]
    if packed:
        sql = unpack(sql)
    schema = body[status_end:schema_end].decode(errors="replace")
    text = _decoded(sql, status.charset)
    is_ddl = status.is_ddl or (_WITH_ROWS in text and _CREATES.match(text) is not None)
    return Query(schema, text, status.sql_mode, is_ddl, failed=body[9:11] != b"\0\0")


def loaded(body: bytes) -> Query:
    """Read EXECUTE_LOAD_QUERY: a statement event with 13 more bytes behind its fixed part."""
    return read(body[:13] + body[26:], packed=False)


class _Status(msgspec.Struct, frozen=True):
    """What we need of the session that wrote a statement."""

    sql_mode: int = 0
    charset: str = "utf8mb4"
    is_ddl: bool = False


def _status(raw: bytes) -> _Status:
    """Reading ends at the first variable of an unknown kind, as servers do."""
    values: dict[int, bytes] = {}
    at = 0
    while at < len(raw):
        code = raw[at]
        start = at + 1
        at = _variable_end(raw, code, start)
        if at < 0 or at > len(raw):
            break
        values[code] = raw[start:at]
    charset = values.get(_CHARSET)
    return _Status(
        int.from_bytes(values.get(_SQL_MODE, b""), "little"),
        "utf8mb4" if charset is None else charsets.of_collation(int.from_bytes(charset[:2], "little")),
        _DDL in values,
    )


def _variable_end(raw: bytes, code: int, at: int) -> int:
    """Where the value of a status variable that begins at `at` ends; -1 when that cannot be told."""
    if code in _FIXED:
        return at + _FIXED[code]
    if code in _STRINGS:
        count, behind = _STRINGS[code]
        for _ in range(count):
            if at >= len(raw):
                return -1
            at += 1 + raw[at]
        return at + behind
    if code == _SCHEMAS and at < len(raw):
        count = 0 if raw[at] == _MANY_SCHEMAS else raw[at]
        at += 1
        for _ in range(count):
            at = raw.find(b"\0", at) + 1
            if at == 0:
                return -1
        return at
    return -1


def _decoded(sql: bytes, charset: str) -> str:
    """Text of a statement, with U+FFFD for bytes that are none of its character set. Which bytes belong together the
    set alone says: a quote or a backslash may be the second one of a character."""
    if not charsets.carried(charset):
        return sql.decode(errors="replace")
    return charsets.decoded(charset, sql, "replace")


def unpack(packed: bytes) -> bytes:
    """Unpack MariaDB's compressed form: a head byte, the length highest byte first, a zlib stream.

    Raises CorruptLog; never makes more than the length that the head announces, or than a server can send.
    """
    if not packed or not packed[0] & 0x80 or packed[0] & 0x70:
        raise CorruptLog("a compressed event has an unknown head")
    width = packed[0] & 0x07
    size = int.from_bytes(packed[1 : 1 + width], "big")
    if not 1 <= width <= 4 or size > UNPACKED_MAX:
        raise CorruptLog("a compressed event announces an impossible length")
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(packed[1 + width :], max(size, 1))
    except zlib.error as failed:
        raise CorruptLog(f"a compressed event cannot be unpacked: {failed}") from None
    if len(plain) != size:
        raise CorruptLog(f"a compressed event unpacks to {len(plain)} bytes, not to {size}")
    return plain


def unpacked_rows(body: bytes, update: bool) -> bytes:
    """A compressed row event's body, from the number of columns on, with its rows unpacked."""
    width, first = {0xFC: 3, 0xFD: 4}.get(body[0], 1) if body else 1, body[:1]
    columns = int.from_bytes(body[1:width] if width > 1 else first, "little")
    head = width + (columns + 7) // 8 * (2 if update else 1)
    if head >= len(body):
        raise CorruptLog("the compressed row event ends too early")
    return body[:head] + unpack(body[head:])
