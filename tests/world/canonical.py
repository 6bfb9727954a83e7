"""One form for values and rows from a log, from SELECT and from the lake, so that `==` compares them."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any, TypeAlias

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = dict[str, Any]


def canonical(value: Any) -> Any:
    """The comparable form of a Python value from PyMySQL, mysql-replication, pyarrow or DuckDB.

    NULL is None. Integers, DECIMAL, FLOAT and DOUBLE compare as numbers (`Decimal("1.20") == Decimal("1.2")`;
    BIGINT UNSIGNED may be int or Decimal). DATE is `date`; DATETIME and TIMESTAMP are `datetime` without
    zone, in UTC; TIME is `timedelta`. Text is `str`, exact to the character, trailing blanks included; binary
    is `bytes`; a Python set (a SET column read from the log) is its members sorted and joined by commas.
    """
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, time):
        return timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        )
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, set | frozenset):
        return ",".join(sorted(value))
    return value


def canonical_row(row: Mapping[str, Any]) -> Row:
    """The row with canonical values; columns whose names begin with `_` (the lake's own) are left out."""
    return {name: canonical(value) for name, value in row.items() if not name.startswith("_")}


def key_of(row: Mapping[str, Any], key: tuple[str, ...]) -> Key:
    """Canonical values of the key columns, in key order."""
    return tuple(canonical(row[name]) for name in key)
