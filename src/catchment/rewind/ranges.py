"""Which keys a chunk or a copy covers, compared as encoded bytes."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catchment.model.chunk import Bound, ChunkKey
from catchment.model.errors import Unsupported
from catchment.model.shard import Copy
from catchment.model.table import INTEGERS, Column, Kind
from catchment.wire.cells.types import arrow_type
from catchment.wire.keys import keys

_DATES = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)
Mask = npt.NDArray[np.bool_]


def date_of(text: str) -> datetime.date | None:
    """The date with which a DATE, DATETIME or TIMESTAMP begins; None for one that does not exist."""
    try:
        return datetime.date.fromisoformat(text[:10])
    except ValueError:
        return None


def encoded(key: ChunkKey, bound: Bound) -> bytes:
    """A bound in the encoding of `wire.keys`; it may be a prefix of the key."""
    columns = key.columns[: len(bound)]
    arrays = [_array(column, value) for column, value in zip(columns, bound, strict=True)]
    names = [column.name for column in columns]
    return bytes(keys.encode(pa.table(arrays, names=names), names)[0])


def value_of(column: Column, value: int | str) -> Any:
    """A value of a bound as Python has it: bytes, an int, a Decimal, a date or a datetime."""
    return _array(column, value)[0].as_py()


def _array(column: Column, value: int | str) -> pa.Array:
    wanted = arrow_type(column.type)
    if column.type.kind in (Kind.BINARY, Kind.BLOB):
        return pa.array([bytes.fromhex(str(value))], wanted)
    if column.type.kind in INTEGERS or column.type.kind is Kind.YEAR:
        return pa.array([value], pa.decimal128(20, 0) if pa.types.is_decimal(wanted) else wanted)
    text = pa.array([str(value)])
    if column.type.kind in _DATES and date_of(str(value)) is None:
        raise Unsupported(
            f"key column {column.name!r} holds {value}, which no calendar has: it is NULL in the lake, and a key must "
            "not be; correct the row on the server or exclude the table"
        )
    return text.cast(pa.timestamp("us")).cast(wanted) if pa.types.is_timestamp(wanted) else text.cast(wanted)


def follows_log(images: pa.Table, key: ChunkKey, copy: Copy) -> Mask | None:
    """Rows whose changes are applied: copied before this epoch, or born after the copy began. None means all.

    Keys that we cannot order as the server does are always applied (DESIGN 4).
    """
    if copy.done or not key.ordered:
        return None
    mask = np.zeros(images.num_rows, dtype=bool)
    rows = keys.encode(images, [c.name for c in key.columns])
    if copy.copied is not None:
        mask |= np.asarray(keys.at_or_below(rows, encoded(key, copy.copied)))
    if copy.born_after is not None:
        mask |= ~np.asarray(keys.at_or_below(rows, encoded(key, copy.born_after)))
    return mask


def covered(
    rows: pa.Table, key: ChunkKey, ranges: Sequence[tuple[Bound | None, Bound | None]]
) -> Mask | None:
    """Rows within any of the ranges `(lo, hi]`. None means all: the server's order is unknown to us."""
    if not key.ordered:
        return None
    found = np.zeros(rows.num_rows, dtype=bool)
    if rows.num_rows == 0:
        return found
    at = keys.encode(rows, [c.name for c in key.columns])
    for lo, hi in ranges:
        inside = np.ones(rows.num_rows, dtype=bool)
        if lo is not None:
            inside &= ~np.asarray(keys.at_or_below(at, encoded(key, lo)))
        if hi is not None:
            inside &= np.asarray(keys.at_or_below(at, encoded(key, hi)))
        found |= inside
    return found
