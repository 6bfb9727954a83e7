"""Asking a server which keys lie in a range: only it knows the order of collated text."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catchment.model.chunk import Bound, chunk_key
from catchment.model.table import Column, Kind, Table
from catchment.source.bounds import MARK, exact, quoted, source_name, where
from catchment.source.session import Session

_KEYS_PER_QUERY = 500
_COLLATIONS = """
SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""


def inside(
    session: Session,
    table: Table,
    rows: pa.Table,
    ranges: Iterable[tuple[Bound | None, Bound | None]],
) -> npt.NDArray[np.bool_]:
    """Which rows have a key within any of the ranges `(lo, hi]`, by the conditions by which chunks are read.

    Raises SourceError.
    """
    found = np.zeros(rows.num_rows, dtype=bool)
    key = chunk_key(table)
    collations = collations_of(session, table)
    keys = [
        tuple(_parameter(column, row[column.name]) for column in key.columns)
        for row in rows.select([column.name for column in key.columns]).to_pylist()
    ]
    wanted = list(ranges)
    for first in range(0, len(keys), _KEYS_PER_QUERY):
        some = keys[first : first + _KEYS_PER_QUERY]
        for lo, hi in wanted:
            condition, bounds = where(key, lo, hi)
            sql, values = _query(table, collations, some)
            sql = (sql + condition).replace("%", "%%").replace(MARK, "%s")
            found[[first + int(row[0]) for row in session.rows(sql, (*values, *bounds))]] = True
    return found


def collations_of(session: Session, table: Table) -> dict[str, str]:
    """Collations of the table's columns of text, by name."""
    rows = session.rows(_COLLATIONS, (table.id.schema, table.id.name))
    return {name: collation for name, collation in rows if collation is not None}


def _query(
    table: Table, collations: dict[str, str], keys: Sequence[tuple[Any, ...]]
) -> tuple[str, list[Any]]:
    """The keys as a table of their own, whose columns have types and collations of the real one's."""
    columns = chunk_key(table).columns
    names = ", ".join(f"{exact(column)} AS {quoted(column.name)}" for column in columns)
    row = ", ".join([MARK, *(_typed(column, collations.get(column.name)) for column in columns)])
    literals = " UNION ALL ".join([f"SELECT {row}"] * len(keys))
    number = quoted(_unused(table))
    real = f"SELECT 0 AS {number}, {names} FROM {source_name(table.id)} WHERE FALSE"
    values = [value for n, key in enumerate(keys) for value in (n, *key)]
    return f"SELECT {number} FROM ({real} UNION ALL {literals}) AS touched", values


def _typed(column: Column, collation: str | None) -> str:
    """A value's place; with a text in it, these kinds would be compared as text, or through DOUBLE, and text in
    the session's collation."""
    kind = column.type
    if kind.kind is Kind.TEXT and collation is not None:
        return f"CONVERT({MARK} USING {kind.charset}) COLLATE {collation}"
    if kind.kind is Kind.TIME:
        return f"CAST({MARK} AS TIME(6))"
    if kind.kind is Kind.DECIMAL:
        return f"CAST({MARK} AS DECIMAL({kind.length},{kind.scale}))"
    if kind.kind in (Kind.DATETIME, Kind.TIMESTAMP):
        return f"CAST({MARK} AS DATETIME({kind.scale}))"
    if kind.kind in (Kind.UUID, Kind.INET4, Kind.INET6):
        return f"CAST({MARK} AS {kind.kind.value.upper()})"
    return MARK


def _unused(table: Table) -> str:
    return "n" + "_" * max(len(column.name) for column in table.columns)


def _parameter(column: Column, value: Any) -> Any:
    """A key's value as the bounds have it: ENUM and SET by their numbers."""
    labels = column.type.labels
    if column.type.kind is Kind.ENUM:
        return labels.index(value) + 1 if value else 0
    if column.type.kind is Kind.SET:
        return sum(1 << labels.index(label) for label in value.split(",") if label)
    if column.type.kind is Kind.TIME:
        sign, span = ("-" if value < 0 else ""), timedelta(microseconds=abs(value))
        seconds, fraction = divmod(span // timedelta(microseconds=1), 1_000_000)
        return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
    return value
