"""The one table of type facts: what a column is in the log, in the catalog and in Arrow.

Both decoders (wire/log, packets/results.py) take their Arrow types from here. So a value read from the log equals the
value read by SELECT, bit by bit (DESIGN section 6).
"""

import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from catchment.model.errors import Unsupported
from catchment.model.table import DECIMAL_DIGITS_MAX, Column, ColumnType, Kind, Table
from catchment.wire.cells import charsets

_INTEGERS: Final = {
    Kind.TINYINT: (pa.int8(), pa.int16()),
    Kind.SMALLINT: (pa.int16(), pa.int32()),
    Kind.MEDIUMINT: (pa.int32(), pa.int32()),
    Kind.INT: (pa.int32(), pa.int64()),
    Kind.BIGINT: (pa.int64(), pa.decimal128(20, 0)),
}

_OTHERS: Final = {
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.YEAR: pa.int16(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.int64(),
    Kind.DATETIME: pa.timestamp("us"),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.TEXT: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.BLOB: pa.binary(),
    Kind.ENUM: pa.string(),
    Kind.SET: pa.string(),
    Kind.JSON: pa.string(),
    Kind.UUID: pa.string(),
    Kind.INET4: pa.string(),
    Kind.INET6: pa.string(),
    Kind.GEOMETRY: pa.binary(),
}

# Types that the log of MariaDB declares as BINARY of so many bytes: only the catalog tells them apart.
LOGGED_AS_BINARY: Final = {Kind.UUID: 16, Kind.INET4: 4, Kind.INET6: 16}


def arrow_type(column: ColumnType) -> pa.DataType:
    """Arrow type of a column. TIME is signed microseconds; BIGINT UNSIGNED and BIT(64) are decimal(20,0)."""
    if column.kind in _INTEGERS:
        return _INTEGERS[column.kind][column.unsigned]
    if column.kind is Kind.DECIMAL:
        if column.length > DECIMAL_DIGITS_MAX:
            return pa.string()
        return pa.decimal128(column.length, column.scale)
    if column.kind is Kind.BIT:
        return pa.int64() if column.length < 64 else pa.decimal128(20, 0)
    return _OTHERS[column.kind]


def scalar_of(text: str, kind: pa.DataType) -> pa.Scalar:
    """A value that is written down, as its Arrow type has it: bytes as hexadecimal digits. Raises ValueError for one
    that it does not have."""
    return pa.scalar(bytes.fromhex(text), kind) if pa.types.is_binary(kind) else pa.scalar(text).cast(kind)


def arrow_schema(table: Table) -> pa.Schema:
    """Arrow schema of a table's own columns, all nullable (a zero date is null whatever the catalog says)."""
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in table.columns])


# Type codes of the table map event (MariaDB manual: TABLE_MAP_EVENT, "column types").
TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24 = 1, 2, 3, 4, 5, 8, 9
DATE, YEAR, NEWDATE, VARCHAR, BIT = 10, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2 = 17, 18, 19
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
VECTOR, JSON = 242, 245
NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 246, 247, 248, 252, 253, 254, 255

_PLAIN: Final = {
    TINY: Kind.TINYINT,
    SHORT: Kind.SMALLINT,
    LONG: Kind.INT,
    LONGLONG: Kind.BIGINT,
    INT24: Kind.MEDIUMINT,
    FLOAT: Kind.FLOAT,
    DOUBLE: Kind.DOUBLE,
    DATE: Kind.DATE,
    NEWDATE: Kind.DATE,
    YEAR: Kind.YEAR,
    JSON: Kind.JSON,
}
_FRACTIONAL: Final = {TIMESTAMP2: Kind.TIMESTAMP, DATETIME2: Kind.DATETIME, TIME2: Kind.TIME}
_REFUSED: Final = {
    0: "a DECIMAL of a server before 5.0",
    7: "a TIMESTAMP in the format of servers before 10.1 (ALTER TABLE ... FORCE rewrites it)",
    11: "a TIME in the format of servers before 10.1 (ALTER TABLE ... FORCE rewrites it)",
    12: "a DATETIME in the format of servers before 10.1 (ALTER TABLE ... FORCE rewrites it)",
}


def string_meta(meta: int) -> tuple[int, int]:
    """Real type code and length in bytes of a STRING column, whose two metadata bytes share the length."""
    code, low = meta & 0xFF, meta >> 8
    if code & 0x30 == 0x30:
        return code, low
    return code | 0x30, low | ((code & 0x30) ^ 0x30) << 4


def from_log(  # noqa: PLR0911
    code: int, meta: int, unsigned: bool, collation: int, labels: tuple[bytes, ...]
) -> ColumnType:
    """Column type from the table map: type code, metadata (first byte lowest), signedness, collation, labels.

    Raises Unsupported for a type that is not carried; the caller adds table and column.
    """
    if code == STRING:
        code, meta = string_meta(meta)
    if code in _PLAIN:
        kind = _PLAIN[code]
        return ColumnType(kind, unsigned=unsigned and kind is not Kind.YEAR)
    if code in _FRACTIONAL:
        return ColumnType(_FRACTIONAL[code], scale=meta & 0xFF)
    if code == NEWDECIMAL:
        return ColumnType(Kind.DECIMAL, unsigned=unsigned, length=meta & 0xFF, scale=meta >> 8)
    if code == BIT:
        return ColumnType(Kind.BIT, length=(meta & 0xFF) + 8 * (meta >> 8))
    if code == GEOMETRY:
        return ColumnType(Kind.GEOMETRY)
    if code == VECTOR:
        return ColumnType(Kind.BLOB)
    if code in (STRING, VARCHAR, VAR_STRING, BLOB, BLOB_COMPRESSED, VARCHAR_COMPRESSED):
        charset = charsets.of_collation(collation)
        if charset == "binary":
            return ColumnType(Kind.BINARY, length=meta) if code == STRING else ColumnType(Kind.BLOB)
        return _with_charset(Kind.TEXT, charset, ())
    if code in (ENUM, SET):
        charset = charsets.of_collation(collation)
        kind = Kind.ENUM if code == ENUM else Kind.SET
        return _with_charset(kind, charset, tuple(_label(label, charset) for label in labels))
    raise Unsupported(f"{_REFUSED.get(code, f'type code {code}')} is not carried")


def _with_charset(kind: Kind, charset: str, labels: tuple[str, ...]) -> ColumnType:
    if not charsets.carried(charset):
        raise Unsupported(f"character set {charset} is not carried")
    return ColumnType(kind, charset=charset, labels=labels)


def _label(label: bytes, charset: str) -> str:
    if not charsets.carried(charset):
        return ""
    try:
        return charsets.decoded(charset, label)
    except UnicodeDecodeError:
        raise Unsupported(f"label {label!r} is not valid {charset}") from None


def logged_as_binary(columns: Iterable[Column]) -> dict[str, Kind]:
    """Kinds of the columns that the log declares as BINARY, by name: what a LogDecoder has to be told."""
    return {column.name: column.type.kind for column in columns if column.type.kind in LOGGED_AS_BINARY}


def told(column: Column, kind: Kind | None) -> Column:
    """A column of the table map with the kind that the catalog gives it; only a BINARY of that size has one."""
    if kind is None or column.type != ColumnType(Kind.BINARY, length=LOGGED_AS_BINARY[kind]):
        return column
    return Column(column.name, ColumnType(kind))


_CATALOG: Final = {
    "tinyint": Kind.TINYINT,
    "smallint": Kind.SMALLINT,
    "mediumint": Kind.MEDIUMINT,
    "int": Kind.INT,
    "bigint": Kind.BIGINT,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "decimal": Kind.DECIMAL,
    "bit": Kind.BIT,
    "year": Kind.YEAR,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "datetime": Kind.DATETIME,
    "timestamp": Kind.TIMESTAMP,
    "binary": Kind.BINARY,
    "varbinary": Kind.BLOB,
    "tinyblob": Kind.BLOB,
    "blob": Kind.BLOB,
    "mediumblob": Kind.BLOB,
    "longblob": Kind.BLOB,
    "char": Kind.TEXT,
    "varchar": Kind.TEXT,
    "tinytext": Kind.TEXT,
    "text": Kind.TEXT,
    "mediumtext": Kind.TEXT,
    "longtext": Kind.TEXT,
    "enum": Kind.ENUM,
    "set": Kind.SET,
    "json": Kind.JSON,
    "uuid": Kind.UUID,
    "inet4": Kind.INET4,
    "inet6": Kind.INET6,
    "vector": Kind.BLOB,
    **dict.fromkeys(
        (
            "geometry",
            "point",
            "linestring",
            "polygon",
            "multipoint",
            "multilinestring",
            "multipolygon",
            "geometrycollection",
            "geomcollection",
        ),
        Kind.GEOMETRY,
    ),
}
_ARGUMENTS: Final = re.compile(r"\w+\((\d+)(?:,(\d+))?\)")
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")


def from_catalog(data_type: str, column_type: str, charset: str | None) -> ColumnType:
    """Column type from DATA_TYPE, COLUMN_TYPE and CHARACTER_SET_NAME of information_schema.COLUMNS.

    Gives the same value as `from_log` for the same column. Raises Unsupported for a type that is not carried.
    """
    kind = _CATALOG.get(data_type.lower())
    charset = (
        "utf8mb3" if charset == "utf8" else charset
    )  # as MySQL before 8.0.28 and MariaDB before 10.6 say
    if kind is None:
        raise Unsupported(f"type {column_type} is not carried")
    if kind is Kind.TEXT:
        return _with_charset(kind, charset or "binary", ())
    if kind in (Kind.ENUM, Kind.SET):
        labels = tuple(_unescaped(m[1]) for m in _LABEL.finditer(column_type))
        return _with_charset(kind, charset or "binary", labels)
    unsigned = " unsigned" in column_type
    arguments = _ARGUMENTS.match(column_type)
    first = int(arguments[1]) if arguments else 0
    second = int(arguments[2] or 0) if arguments else 0
    if kind is Kind.DECIMAL:
        return ColumnType(kind, unsigned=unsigned, length=first, scale=second)
    if kind in (Kind.BIT, Kind.BINARY):
        return ColumnType(kind, length=first)
    if kind in (Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP):
        return ColumnType(kind, scale=first)
    return ColumnType(kind, unsigned=unsigned)


def _unescaped(label: str) -> str:
    """A label as it stands in COLUMN_TYPE: quotes are doubled, some characters have a backslash."""
    plain = label.replace("''", "'")
    return re.sub(r"\\(.)", lambda m: {"0": "\0", "n": "\n", "r": "\r"}.get(m[1], m[1]), plain)
