"""Rows of chosen keys: which keys a SELECT can name, and how.

Keys come from the lake. So only kinds are named of which a lake has the very value that the server compares with.
"""

import datetime
from typing import Any, Final

import pyarrow as pa

from catchment.model.errors import SourceError
from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, Column, ColumnType, Kind, Table
from catchment.source.bounds import Condition, compared, portable

_NAMED: Final = (
    *INTEGERS,
    Kind.YEAR,
    Kind.DECIMAL,
    Kind.DATE,
    Kind.DATETIME,
    Kind.TIMESTAMP,
    Kind.BINARY,
    Kind.BLOB,
)
# Character sets of which each text comes back as it was from utf8mb4, in which a SELECT names it.
_CHARSETS: Final = ("utf8mb4", "utf8mb3", "utf8", "latin1", "ascii")


def can_be_named(table: Table) -> bool:
    """Whether a SELECT can name the keys of a table."""
    return all(_is_named(column.type) for column in table.key_columns)


def _is_named(kind: ColumnType) -> bool:
    if kind.kind is Kind.TEXT:
        return kind.charset in _CHARSETS
    return kind.kind in _NAMED and (kind.kind is not Kind.DECIMAL or kind.length <= DECIMAL_DIGITS_MAX)


def among(table: Table, keys: pa.Table) -> Condition:
    """The condition that a row has one of the keys, in the eyes of the server: it may take several texts for one.

    Each key is a term of its own. Servers read a row constructor (`(a, b) IN ...`) by no index where types differ.
    Raises SourceError where the table has another key now.
    """
    if tuple(keys.schema.names) != table.key:
        asked = ", ".join(keys.schema.names)
        raise SourceError(f"{table.id}: its key is ({', '.join(table.key)}), and rows are asked by ({asked})")
    return with_values(table, keys)


def with_values(table: Table, wanted: pa.Table) -> Condition:
    """The condition that a row has the values of one of these rows in their columns. Raises SourceError where the
    table lacks one of these."""
    known = {column.name: column for column in table.columns}
    if lacking := [name for name in wanted.schema.names if name not in known]:
        raise SourceError(f"{table.id}: it has no column {', '.join(lacking)}, by which rows are asked")
    columns = [known[name] for name in wanted.schema.names]
    rows = zip(*(wanted[column.name].to_pylist() for column in columns), strict=True)
    terms: list[str] = []
    values: list[int | str | bytes] = []
    for row in rows:
        parts = [
            compared(column, "=", _written(column, value)) for column, value in zip(columns, row, strict=True)
        ]
        terms.append(" AND ".join(text for text, _ in parts))
        values += [value for _, parameters in parts for value in parameters]
    return "(" + ") OR (".join(terms) + ")", values


def _written(column: Column, value: Any) -> int | str:
    """A value of Arrow as bounds have it. A TIMESTAMP has a zone there, UTC, which is the session's."""
    if isinstance(value, datetime.datetime):
        return portable(column, value.replace(tzinfo=None))
    return portable(column, value)
