"""Where a portion of a table lies at a shard: between which keys, and in which chunks."""

import datetime
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from catchment.model.choice import Portion
from catchment.model.chunk import Bound, Chunk, ChunkKey
from catchment.model.errors import ConfigError, ConnectionLost, SourceError
from catchment.model.table import INTEGERS, Column, Kind, TableId
from catchment.source.bounds import MARK, bound_of, has_row, key_before
from catchment.source.session import Session

_PARSERS: Final[dict[Kind, Callable[[str], Any]]] = {
    **dict.fromkeys((*INTEGERS, Kind.YEAR), int),
    Kind.DATE: datetime.date.fromisoformat,
    Kind.DATETIME: datetime.datetime.fromisoformat,
    Kind.TIMESTAMP: datetime.datetime.fromisoformat,
    Kind.DECIMAL: Decimal,
    Kind.BINARY: bytes.fromhex,
    Kind.BLOB: bytes.fromhex,
}


def bound_from(table: TableId, key: ChunkKey, text: str) -> Bound:
    """The bound that a person writes as values of the key's first columns, with commas between: `42`, `7,2026-01-31`.
    Bytes are in hexadecimal. Raises ConfigError for what is none, and where only the server can order the keys."""
    names = ", ".join(column.name for column in key.columns)
    if not key.ordered:
        raise ConfigError(
            f"keys: only the server can order the keys of {table} ({names}): choose the whole table"
        )
    parts = text.split(",")
    if len(parts) > len(key.columns):
        raise ConfigError(f"keys: {table} is cut by ({names}), and {text} has {len(parts)} values")
    columns = key.columns[: len(parts)]
    row = tuple(_value(table, column, part.strip()) for column, part in zip(columns, parts, strict=True))
    return bound_of(ChunkKey(columns, key.ordered), row)


def limits(session: Session, key: ChunkKey, portion: Portion) -> tuple[Bound | None, Bound | None]:
    """The bounds `lo < key <= hi` of a portion: `lo` is the key in front of its first one, at the source now. Raises
    ConfigError as `bound_from` does, SourceError."""
    first = bound_from(portion.table, key, portion.first) if portion.first else None
    last = bound_from(portion.table, key, portion.last) if portion.last else None
    return key_before(session, portion.table, key, first) if first is not None else None, last


def must_be_condition(session: Session, key: ChunkKey, portion: Portion) -> None:
    """Raise ConfigError for a condition that the server does not take. Raises ConnectionLost."""
    if MARK in portion.where or not _is_one(portion.where):
        raise ConfigError(f"where: expected one condition of SQL, got {portion.where!r}")
    nothing = Chunk("", portion.table, None, None)
    try:
        has_row(session, nothing, key, f"FALSE AND ({portion.where})")
    except ConnectionLost:
        raise
    except SourceError as fault:
        raise ConfigError(f"where: {fault}") from None


def _is_one(condition: str) -> bool:
    """Whether it is one expression, so that it says the same between parentheses."""
    import sqlglot  # only a portion by a condition needs a parser
    import sqlglot.errors

    try:
        return len(sqlglot.parse(f"SELECT 1 WHERE {condition}", dialect="mysql")) == 1
    except sqlglot.errors.SqlglotError:
        return False


def _value(table: TableId, column: Column, text: str) -> Any:
    try:
        return _PARSERS[column.type.kind](text)
    except (ValueError, InvalidOperation):
        raise ConfigError(
            f"keys: {text!r} is no value of {table}.{column.name} ({column.type.kind.value}); bytes are written in "
            "hexadecimal, times as 2026-01-31T12:00:00"
        ) from None
