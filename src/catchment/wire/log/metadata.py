"""The table map event: what it says about a table (MariaDB manual: TABLE_MAP_EVENT, optional metadata).

Read once per definition, not per event, so plain Python is fast enough.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from catchment.model.definition import UNKNOWN, Definition, hidden_name, is_hidden
from catchment.model.errors import AlteredUnseen, CorruptLog, Undescribed, Unsupported
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.wire.cells import types
from catchment.wire.log import declared
from catchment.wire.log.map_bytes import TableMapBytes

# Bytes of metadata per type code; all others have none.
_META_BYTES: Final = {
    types.FLOAT: 1,
    types.DOUBLE: 1,
    types.BLOB: 1,
    types.BLOB_COMPRESSED: 1,
    types.GEOMETRY: 1,
    types.VECTOR: 1,
    types.TIMESTAMP2: 1,
    types.DATETIME2: 1,
    types.TIME2: 1,
    types.JSON: 1,
    types.VARCHAR: 2,
    types.VARCHAR_COMPRESSED: 2,
    types.VAR_STRING: 2,
    types.STRING: 2,
    types.BIT: 2,
    types.NEWDECIMAL: 2,
    types.ENUM: 2,
    types.SET: 2,
}

# Types that have a bit in SIGNEDNESS, and those counted in the lists of character sets. Seen on MariaDB
# 10.11: YEAR has a bit, BIT has none; spatial, INET and UUID columns are counted as binary strings.
_NUMERIC: Final = (
    0,
    types.TINY,
    types.SHORT,
    types.INT24,
    types.LONG,
    types.LONGLONG,
    types.FLOAT,
    types.DOUBLE,
)
_SIGNED: Final = frozenset((*_NUMERIC, types.NEWDECIMAL))
# MySQL gives YEAR a bit since some version after 8.0.15 (seen there: none; seen in 9.7: one). The versions that
# write the visibility of columns, from 8.0.23 on, have the code for it.
_YEAR_HAS_NONE, _YEAR_HAS_ONE = 80015, 80023
# The column that MySQL keeps for an index over an expression is named by a hash. Seen on 8.0.15: table maps have it,
# row images lack it whatever binlog_row_image says. On 9.7 the log does not show it.
_EXPRESSION: Final = re.compile(r"[0-9a-f]{32}")
_EXPRESSIONS_SHOWN: Final = range(80013, 80100)
# MariaDB, sql/sql_table.cc: make_unique_invisible_field_name, add_hash_field.
_HASH_NAME: Final = re.compile(r"DB_ROW_HASH_\d+")
_HASH: Final = ColumnType(Kind.BIGINT, unsigned=True)
_CHARACTER: Final = frozenset(
    (
        types.STRING,
        types.VARCHAR,
        types.VAR_STRING,
        types.BLOB,
        types.BLOB_COMPRESSED,
        types.VARCHAR_COMPRESSED,
        types.GEOMETRY,
    )
)

# Kinds of optional metadata.
_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _NAMES, _SET_LABELS, _ENUM_LABELS = 1, 2, 3, 4, 5, 6
_KEY, _PREFIX_KEY, _LABEL_DEFAULT_CHARSET, _LABEL_COLUMN_CHARSET = 8, 9, 10, 11


Kinds = Mapping[str, Kind]
# Table maps that are remembered, of all logs that a process reads.
_KNOWN_MAX: Final = 4096


def mysql_version(name: bytes) -> int:
    """The version that the format event of a MySQL gives as text: 80015 for 8.0.15."""
    found = re.match(rb"(\d{1,3})\.(\d{1,2})\.(\d{1,2})(?!\d)", name)
    if found is None:
        return _YEAR_HAS_NONE + 1
    major, minor, patch = (int(part) for part in found.groups())
    return major * 10000 + minor * 100 + patch


def of_expression(name: str, mysql: int) -> bool:
    """Whether a column of that name is taken for one that MySQL keeps for an index over an expression."""
    return mysql in _EXPRESSIONS_SHOWN and _EXPRESSION.fullmatch(name) is not None


def of_hash(name: str, kind: ColumnType, mysql: int) -> bool:
    """Whether such a column is taken for one that MariaDB keeps for a UNIQUE key of long columns."""
    return not mysql and kind == _HASH and _HASH_NAME.fullmatch(name) is not None


class Described(msgspec.Struct, frozen=True):
    """A table as a table map declares it; `cells` are (real type code, metadata) of each column."""

    table: Table
    cells: tuple[tuple[int, int], ...]


def table_id(body: bytes) -> TableId:
    """Schema and name, from the event's body behind table number and flags."""
    return _identity(TableMapBytes(body))


def _identity(data: TableMapBytes) -> TableId:
    names = []
    for _ in range(2):
        names.append(_text(data.take(data.take(1)[0])))
        data.take(1)  # the names end in a zero byte too
    return TableId(*names)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CorruptLog(f"{raw!r} is not a name in UTF-8") from None


def describe(
    body: bytes,
    keys: Mapping[TableId, tuple[str, ...]],
    kinds: Mapping[TableId, Kinds],
    mysql: int = 0,
    definition: Definition | None = None,
) -> Described:
    """Everything about the table, from the event's body behind table number and flags.

    `keys` gives key columns, which count more than those that the event tells. Of a table without a primary key
    the event tells a unique key, and after another one was added perhaps that one. `kinds`: what the log
    declares as BINARY and is something else (types.logged_as_binary). `mysql` is the version of a MySQL that
    wrote the event, e.g. 80015, and 0 for MariaDB. `definition` tells what an event without full metadata does
    not.

    Raises CorruptLog; Unsupported for a type that is not carried; Undescribed for an event without full
    metadata where there is no definition. Raises AlteredUnseen when event and definition contradict one another.
    """
    identity = table_id(body)
    key, known = keys.get(identity, ()), kinds.get(identity)
    if definition is None and not known:
        return _by_itself(body, key, mysql)
    return _described(body, key, known or {}, mysql, definition)


@lru_cache(_KNOWN_MAX)
def _by_itself(body: bytes, key: tuple[str, ...], mysql: int) -> Described:
    """The event tells all, the same as before: each segment of a log meets it once more."""
    return _described(body, key, {}, mysql, None)


def _described(
    body: bytes, key: tuple[str, ...], kinds: Kinds, mysql: int, definition: Definition | None
) -> Described:
    data = TableMapBytes(body)
    identity = _identity(data)
    count = data.number()
    codes = data.take(count)
    meta = TableMapBytes(data.take(data.number()))
    read = []
    for code in codes:
        value = int.from_bytes(meta.take(_META_BYTES.get(code, 0)), "little")
        read.append(_real(code, value))
    cells = tuple(read)
    nullable = data.take((count + 7) // 8)
    fields: dict[int, bytes] = {}
    while data.rest():
        kind = data.take(1)[0]
        fields[kind] = data.take(data.number())
    if definition is not None and definition.is_unknown:
        if _NAMES not in fields:
            raise AlteredUnseen(f"{identity}: {UNKNOWN}")
        definition = None
    if _NAMES not in fields and definition is None:
        raise Undescribed(
            f"{identity}: the table map has no column names; set binlog_row_metadata=FULL on the server"
        )
    if not all(_possible(code, value) for code, value in cells):
        raise CorruptLog(f"{identity}: the table map declares an impossible column: {cells}")
    if _NAMES not in fields and definition is not None:
        columns = _defined(definition, cells, nullable, fields, mysql)
        fields = {}
    else:
        columns = tuple(types.told(c, kinds.get(c.name)) for c in _columns(identity, cells, fields, mysql))
        _must_agree(definition, columns)
    key = key or (definition.key if definition is not None else ())
    if not key or not {c.name for c in columns}.issuperset(key):
        key = _key(fields, columns)
    return Described(Table(identity, columns, key), cells)


def _defined(
    definition: Definition,
    cells: tuple[tuple[int, int], ...],
    nullable: bytes,
    fields: dict[int, bytes],
    mysql: int,
) -> tuple[Column, ...]:
    """The columns of the definition, which what the table map says must fit."""
    unsigned = None
    codes = [code for code, _ in cells]
    if _SIGNEDNESS in fields:
        unsigned = _signedness(definition.table, codes, fields[_SIGNEDNESS], mysql)
    fault = declared.misfit(definition, cells, nullable, unsigned)
    if mysql in _EXPRESSIONS_SHOWN and len(cells) > len(definition.columns):
        fault += " (or it has an index over an expression, whose column MySQL 8.0 logs: set binlog_row_metadata=FULL)"
    if not fault and (_DEFAULT_CHARSET in fields or _COLUMN_CHARSET in fields):
        character = _character(codes, mysql)
        told = _collations(character, fields.get(_DEFAULT_CHARSET), fields.get(_COLUMN_CHARSET))
        fault = declared.charset_misfit(definition, told)
    if fault:
        raise AlteredUnseen(_contradiction(definition, fault))
    return declared.table_of(definition).columns


def _must_agree(definition: Definition | None, columns: tuple[Column, ...]) -> None:
    """Raise AlteredUnseen when a table map that describes itself says other columns than the definition."""
    if definition is None:
        return
    said = [c for c in columns if not is_hidden(c.name)]
    known = [c for c in declared.table_of(definition).columns if not is_hidden(c.name)]
    if said != known:
        names = ", ".join(c.name for c in said if c not in known) or "the order of columns"
        raise AlteredUnseen(_contradiction(definition, f"the log describes {names} otherwise"))


def _contradiction(definition: Definition, fault: str) -> str:
    names = ", ".join(c.name for c in definition.columns)
    return (
        f"{definition.table}: a row of the log does not fit the definition ({names}): {fault}; the table was altered "
        "unseen (sql_log_bin=0, or a statement that did not reach this log)"
    )


def _possible(code: int, meta: int) -> bool:
    """Whether the metadata of a column lie in the limits of its type."""
    low, high = meta & 0xFF, meta >> 8
    if code == types.NEWDECIMAL:
        return 1 <= low <= 65 and high <= min(low, 38)
    if code in (types.TIMESTAMP2, types.DATETIME2, types.TIME2):
        return low <= 6
    if code == types.BIT:
        return low < 8 and 1 <= low + 8 * high <= 64
    if code in (types.BLOB, types.JSON, types.BLOB_COMPRESSED, types.GEOMETRY, types.VECTOR):
        return 1 <= low <= 4
    if code == types.ENUM:
        return 1 <= meta <= 2
    return code != types.SET or 1 <= meta <= 8


def _real(code: int, meta: int) -> tuple[int, int]:
    """ENUM, SET and CHAR share the code STRING; see `types.string_meta`."""
    if code != types.STRING:
        return code, meta
    real, length = types.string_meta(meta)
    return (real, length) if real in (types.ENUM, types.SET) else (code, meta)


def _columns(
    identity: TableId, cells: tuple[tuple[int, int], ...], fields: dict[int, bytes], mysql: int
) -> tuple[Column, ...]:
    names = _names(fields[_NAMES])
    codes = [code for code, _ in cells]
    if len(names) != len(codes) or not codes:
        raise CorruptLog(f"{identity}: the table map names {len(names)} columns of {len(codes)}")
    unsigned = _signedness(identity, codes, fields.get(_SIGNEDNESS, b""), mysql)
    character = _character(codes, mysql)
    labelled = [i for i, code in enumerate(codes) if code in (types.ENUM, types.SET)]
    collations = _collations(character, fields.get(_DEFAULT_CHARSET), fields.get(_COLUMN_CHARSET))
    collations |= _collations(labelled, fields.get(_LABEL_DEFAULT_CHARSET), fields.get(_LABEL_COLUMN_CHARSET))
    labels = _labels([i for i in labelled if codes[i] == types.ENUM], fields.get(_ENUM_LABELS, b""))
    labels |= _labels([i for i in labelled if codes[i] == types.SET], fields.get(_SET_LABELS, b""))
    columns = []
    for i, (code, meta) in enumerate(cells):
        if i in character + labelled and i not in collations:
            raise CorruptLog(f"{identity}.{names[i]}: the table map does not tell its character set")
        column_type = _type(
            identity, names[i], (code, meta, i in unsigned, collations.get(i, 0), labels.get(i, ()))
        )
        hidden = of_expression(names[i], mysql) or of_hash(names[i], column_type, mysql)
        columns.append(Column(hidden_name(names[i]) if hidden else names[i], column_type))
    return tuple(columns)


def _type(identity: TableId, name: str, facts: tuple[int, int, bool, int, tuple[bytes, ...]]) -> ColumnType:
    try:
        return types.from_log(*facts)
    except Unsupported as refused:
        raise Unsupported(f"{identity}.{name}: {refused}; leave the table or the column out") from None


def _character(codes: list[int], mysql: int) -> list[int]:
    """Columns that the lists of character sets count. Seen: MariaDB counts spatial ones, MySQL does not; MySQL
    counts vectors (9.7), which are VARBINARY in the log of MariaDB."""
    text = (_CHARACTER - {types.GEOMETRY}) | {types.VECTOR} if mysql else _CHARACTER
    return [i for i, code in enumerate(codes) if code in text]


def _names(raw: bytes) -> list[str]:
    """Names of the columns. Raises CorruptLog for one that no server takes and that may be one of model.image."""
    data = TableMapBytes(raw)
    names = []
    while data.rest():
        names.append(_text(data.take(data.number())))
        if names[-1].endswith(" ") or "\0" in names[-1]:
            raise CorruptLog(f"the table map names a column {names[-1]!r}: no server takes such a name")
    return names


def _signedness(identity: TableId, codes: list[int], bits: bytes, mysql: int) -> set[int]:
    """Columns that are unsigned: one bit per numeric column, highest bit first."""
    signed = _SIGNED | {types.YEAR} if not 0 < mysql <= _YEAR_HAS_NONE else _SIGNED
    numeric = [i for i, code in enumerate(codes) if code in signed]
    if (
        _YEAR_HAS_NONE < mysql < _YEAR_HAS_ONE
        and types.YEAR in codes[: max((i for i in numeric if codes[i] != types.YEAR), default=0)]
    ):
        raise Unsupported(
            f"{identity}: in the log of this MySQL (8.0.16 to 8.0.22) the sign of columns behind a YEAR is not "
            "certain; upgrade the server to a later 8.0, or leave the table out"
        )
    if len(bits) * 8 < len(numeric):
        raise CorruptLog("the table map tells the sign of too few columns")
    return {i for n, i in enumerate(numeric) if bits[n // 8] << n % 8 & 0x80}


def _collations(columns: list[int], default: bytes | None, each: bytes | None) -> dict[int, int]:
    """Collation number per column: a default with exceptions by ordinal, or one number for each."""
    if each is not None:
        data = TableMapBytes(each)
        return {i: data.number() for i in columns}
    if default is None:
        return {}
    data = TableMapBytes(default)
    found = dict.fromkeys(columns, data.number())
    while data.rest():
        ordinal, collation = data.number(), data.number()
        if ordinal >= len(columns):
            raise CorruptLog("the table map gives a character set to a column that does not exist")
        found[columns[ordinal]] = collation
    return found


def _labels(columns: list[int], raw: bytes) -> dict[int, tuple[bytes, ...]]:
    data = TableMapBytes(raw)
    found = {}
    for i in columns:
        count = data.number()
        if count > len(raw):
            raise CorruptLog("the table map announces more labels than it holds")
        found[i] = tuple(data.take(data.number()) for _ in range(count))
    return found


def _key(fields: dict[int, bytes], columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Names of the primary key's columns in key order. A prefix of a column counts as the column: if the
    prefixes are unique, so are the whole values."""
    simple = _KEY in fields
    data = TableMapBytes(fields.get(_KEY if simple else _PREFIX_KEY, b""))
    names = []
    while data.rest():
        index = data.number()
        if not simple:
            data.number()
        if index >= len(columns):
            raise CorruptLog("the table map puts a column into the key that does not exist")
        names.append(columns[index].name)
    return tuple(names)
