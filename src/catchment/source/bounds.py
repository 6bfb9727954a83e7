"""Bounds of chunks: as SQL conditions, and read from the index.

Keys of several columns are written as OR terms: a row constructor read 50,104 rows for 100 (DESIGN 4).
"""

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from catchment.model.chunk import Bound, Chunk, ChunkKey
from catchment.model.table import INTEGERS, Column, Kind, TableId
from catchment.source.session import Session

Condition = tuple[str, list[int | str | bytes]]

# Stands for a value in a condition: no identifier can hold a zero byte (MariaDB manual: Identifier Names).
MARK = "\0"

NUMBERED = (Kind.ENUM, Kind.SET, Kind.BIT)
REALS = (Kind.FLOAT, Kind.DOUBLE)
# Values of an ENUM or SET of which those beyond a bound are listed in a condition: all that a SET of ten labels has.
LISTED_MAX = 1024


def quoted(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def source_name(table: TableId) -> str:
    """`schema`.`name`."""
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def exact(column: Column) -> str:
    """SQL expression that the text protocol gives whole: that protocol rounds a FLOAT to six digits. ENUM, SET and BIT
    come as the number by which they are indexed; `+ 0` rounds a SET of more than 53 labels."""
    if column.type.kind in REALS:
        return f"{quoted(column.name)} + 0e0"
    return f"CAST({quoted(column.name)} AS UNSIGNED)" if column.type.kind in NUMBERED else quoted(column.name)


def is_ranged(key: ChunkKey) -> bool:
    """Whether the server reads the rows of a chunk alone: by a range of the key's index."""
    column = key.columns[0]
    return column.type.kind not in (Kind.ENUM, Kind.SET) or _is_listed(column)


def _is_listed(column: Column) -> bool:
    return column.type.kind in (Kind.ENUM, Kind.SET) and _values(column) <= LISTED_MAX


def _values(column: Column) -> int:
    """How many values an ENUM, with 0 for what is none of its labels, or a SET can have."""
    labels = len(column.type.labels)
    return labels + 1 if column.type.kind is Kind.ENUM else 2**labels


def _parameter(column: Column, value: int | str) -> tuple[str, int | str | bytes]:
    """SQL text and value of one bound: decimals and times are cast, since a comparison with text goes through
    DOUBLE.
    """
    kind = column.type.kind
    if kind is Kind.DECIMAL:
        return f"CAST({MARK} AS DECIMAL({column.type.length},{column.type.scale}))", value
    if kind is Kind.TIME:
        return f"CAST({MARK} AS TIME({column.type.scale}))", value
    if kind in (Kind.DATETIME, Kind.TIMESTAMP):
        return f"CAST({MARK} AS DATETIME({column.type.scale}))", value
    if kind in (Kind.BINARY, Kind.BLOB):
        return MARK, bytes.fromhex(str(value))
    return MARK, value


def compared(column: Column, operator: str, value: int | str) -> Condition:
    """`column operator value`, in the order of the index.

    ENUM and SET are indexed by their numbers; compared with text, labels are. Of comparisons with a number only
    equality reads a range of the index, on MariaDB and MySQL (docs/decisions/2026-11-21-what-types-cost.md).
    """
    if _is_listed(column):
        at = int(value)
        matching = {
            "=": range(at, at + 1),
            ">": range(at + 1, _values(column)),
            "<": range(at),
            "<=": range(at + 1),
        }
        listed = ", ".join(map(str, matching[operator]))
        return (f"{quoted(column.name)} IN ({listed})" if listed else "FALSE"), []
    text, parameter = _parameter(column, value)
    compared = exact(column) if column.type.kind in (Kind.ENUM, Kind.SET) else quoted(column.name)
    return f"{compared} {operator} {text}", [parameter]


def _beyond(columns: tuple[Column, ...], bound: Bound, last: str, earlier: str) -> Condition:
    terms: list[str] = []
    values: list[int | str | bytes] = []
    for index in range(len(bound)):
        operators = ["="] * index + [last if index == len(bound) - 1 else earlier]
        parts = [compared(*part) for part in zip(columns, operators, bound, strict=False)]
        terms.append("(" + " AND ".join(text for text, _ in parts) + ")")
        values += [value for _, parameters in parts for value in parameters]
    return "(" + " OR ".join(terms) + ")", values


def above(key: ChunkKey, bound: Bound | None) -> Condition:
    """Condition `key > bound`; empty when unbounded."""
    return ("", []) if bound is None else _beyond(key.columns, bound, ">", ">")


def up_to(key: ChunkKey, bound: Bound | None) -> Condition:
    """Condition `key <= bound`; empty when unbounded."""
    return ("", []) if bound is None else _beyond(key.columns, bound, "<=", "<")


def where(key: ChunkKey, lo: Bound | None, hi: Bound | None) -> Condition:
    """`WHERE lo < key AND key <= hi`, with MARK for each value."""
    conditions = [c for c in (above(key, lo), up_to(key, hi)) if c[0]]
    if not conditions:
        return "", []
    return " WHERE " + " AND ".join(c[0] for c in conditions), [v for c in conditions for v in c[1]]


def bound_of(key: ChunkKey, row: tuple[Any, ...]) -> Bound:
    """Values that PyMySQL returned for the key columns, as a bound."""
    return tuple(portable(column, value) for column, value in zip(key.columns, row, strict=True))


def portable(column: Column, value: Any) -> int | str:
    """A value of Python as bounds have it."""
    if column.type.kind in (*INTEGERS, *NUMBERED, Kind.YEAR):
        return int(value)
    if isinstance(value, datetime.timedelta):
        return _clock_text(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "microseconds")
    return str(value)


def _clock_text(value: datetime.timedelta) -> str:
    """A TIME as the server writes it: hours up to 838, a sign, microseconds."""
    sign, size = ("-", -value) if value < datetime.timedelta() else ("", value)
    minutes, seconds = divmod(size.days * 86_400 + size.seconds, 60)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{size.microseconds:06}"


def newest_key(session: Session, table: TableId, key: ChunkKey) -> Bound | None:
    """The largest key that a new SELECT sees; None for an empty table."""
    return _one(session, table, key, ("", []), descending=True, skip=0)


def oldest_key(session: Session, table: TableId, key: ChunkKey) -> Bound | None:
    """The smallest key that a new SELECT sees; None for an empty table."""
    return _one(session, table, key, ("", []), descending=False, skip=0)


def key_after(
    session: Session,
    table: TableId,
    key: ChunkKey,
    lo: Bound | None,
    hi: Bound | None,
    rows: int,
) -> Bound | None:
    """The `rows`-th key above `lo` up to `hi`, walking the index; None when fewer are left."""
    return _one(session, table, key, where(key, lo, hi), descending=False, skip=rows - 1)


def key_before(session: Session, table: TableId, key: ChunkKey, bound: Bound) -> Bound | None:
    """The largest key below `bound` that a new SELECT sees; None where there is none."""
    text, values = _beyond(key.columns, bound, "<", "<")
    return _one(session, table, key, (f" WHERE {text}", values), descending=True, skip=0)


def has_row(session: Session, chunk: Chunk, key: ChunkKey, condition: str) -> bool:
    """Whether a new SELECT sees a row of a chunk for which a condition of SQL is true. Raises SourceError also for what
    is no condition."""
    text, values = where(key, chunk.lo, chunk.hi)
    sql = (
        f"SELECT 1 FROM {source_name(chunk.table)}{text}{' AND' if text else ' WHERE'} ({condition}) LIMIT 1"
    )
    return session.row(*_asking(sql, values)) is not None


@dataclass(frozen=True)
class TableSize:
    """The server's estimates of a table's rows, and of the bytes of a row."""

    rows: int
    row_bytes: int


def table_size(session: Session, table: TableId) -> TableSize:
    """A table's size, as of the newest statistics; nothing of a table that is not there."""
    row = session.row(
        "SELECT TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES "
        "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        (table.schema, table.name),
    )
    return TableSize(0, 0) if row is None else TableSize(int(row[0] or 0), int(row[1] or 0))


def rows_between(
    session: Session,
    table: TableId,
    key: ChunkKey,
    lo: Bound | None,
    hi: Bound | None,
) -> int:
    """The optimizer's estimate of the rows in `(lo, hi]`, from two dives into the index. It is never more than half of
    the rows that the optimizer believes the table to have (InnoDB: btr_estimate_n_rows_in_range).
    """
    text, values = where(key, lo, hi)
    # MySQL 9 explains as a tree if not told otherwise.
    columns = ", ".join(quoted(c.name) for c in key.columns)
    sql = f"EXPLAIN FORMAT=TRADITIONAL SELECT {columns} FROM {source_name(table)}{text}"
    row = session.named_row(*_asking(sql, values))
    return 0 if row is None else int(row["rows"] or 0)


def _one(
    session: Session,
    table: TableId,
    key: ChunkKey,
    condition: Condition,
    *,
    descending: bool,
    skip: int,
) -> Bound | None:
    names = [quoted(c.name) for c in key.columns]
    order = ", ".join(f"{name} DESC" if descending else name for name in names)
    text, values = condition
    sql = f"SELECT {', '.join(map(exact, key.columns))} FROM {source_name(table)}{text} ORDER BY {order} LIMIT 1"
    if skip:
        sql += f" OFFSET {skip}"
    row = session.row(*_asking(sql, values))
    return None if row is None else bound_of(key, row)


def _asking(sql: str, values: list[int | str | bytes]) -> tuple[str, tuple[int | str | bytes, ...] | None]:
    """A statement with MARK for each value, as PyMySQL takes it: it looks for `%s` only where there are values."""
    return (sql.replace("%", "%%").replace(MARK, "%s"), tuple(values)) if values else (sql, None)
