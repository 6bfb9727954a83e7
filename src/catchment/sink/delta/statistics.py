"""What the log says of a file's values, from the Parquet footer: bounds by which readers pass over files.

A bound may be too wide and never too narrow (Delta protocol: Per-file Statistics). Only types whose bounds every reader
takes exactly have some.
"""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec
import pyarrow.parquet as pq

from catchment.sink.delta.layout import EPOCH, SHARD

# A column takes about 100 bytes of a line that names a file. A settle writes a line for each file of which rows died.
OTHERS_BYTES = 8 * 1024
_TEXT_CHARS = 32
_COLUMNS = ("minValues", "maxValues", "nullCount")
_encode = msgspec.json.Encoder().encode


def unbounded(stats: str | None) -> str | None:
    """Statistics of an Add action without the bounds and nulls of columns, but for those of shard and epoch, which the
    table's upkeep reads."""
    if stats is None:
        return None
    told = msgspec.json.decode(stats)
    left = told | {
        name: {k: v for k, v in told.get(name, {}).items() if k in (SHARD, EPOCH)} for name in _COLUMNS
    }
    return stats if left == told else _encode(left).decode()


class _Bounds(msgspec.Struct, frozen=True):
    """The bounds of a column as JSON has them; None for what there is none of."""

    least: Any = None
    largest: Any = None


class _Column(msgspec.Struct, frozen=True):
    """What a footer tells of a column."""

    nulls: int
    bounds: _Bounds

    def prunes(self, rows: int) -> bool:
        """Whether a reader can pass over a file by it."""
        return self.bounds != _Bounds() or self.nulls == rows

    def size(self, name: str) -> int:
        """Its bytes in the log, about."""
        return len(_encode(self)) + 3 * len(name.encode())


def delta_stats(footer: pq.FileMetaData, first: Sequence[str], others: Sequence[str] = ()) -> str:
    """Statistics of an Add action: rows of the file, and bounds and nulls of the `first` columns. Of the `others` come
    those by which readers pass over files, as many as `OTHERS_BYTES` take."""
    places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}
    found = {name: told for name in first if (told := _told(footer, places[name])) is not None}
    left = OTHERS_BYTES
    for name in others:
        told = _told(footer, places[name]) if name not in found else None
        if told is not None and told.prunes(footer.num_rows) and told.size(name) <= left:
            found[name] = told
            left -= told.size(name)
    stats = {
        "numRecords": footer.num_rows,
        "minValues": {n: c.bounds.least for n, c in found.items() if c.bounds.least is not None},
        "maxValues": {n: c.bounds.largest for n, c in found.items() if c.bounds.largest is not None},
        "nullCount": {name: column.nulls for name, column in found.items()},
    }
    return _encode(stats).decode()


def _told(footer: pq.FileMetaData, place: int) -> _Column | None:
    """What a footer tells of a column; None where it does not count nulls."""
    groups = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
    if not all(group is not None and group.has_null_count for group in groups):
        return None
    return _Column(sum(group.null_count for group in groups), _bounds([g for g in groups if g.num_values]))


def _bounds(groups: Sequence[Any]) -> _Bounds:
    """Those of row groups that have values. Parquet leaves out the bounds of very long texts."""
    if not groups or not all(group.has_min_max for group in groups):
        return _Bounds()
    try:
        return _as_json(min(group.min for group in groups), max(group.max for group in groups))
    except (OverflowError, ValueError):  # a moment that Python does not know
        return _Bounds()


def _as_json(least: Any, largest: Any) -> _Bounds:
    match least:
        case int() if not isinstance(least, bool):
            return _Bounds(least, largest)
        case float() if isfinite(least) and isfinite(largest):
            return _Bounds(least, largest)
        case Decimal():
            return _Bounds(_digits(least), _digits(largest))
        case str():
            return _Bounds(least[:_TEXT_CHARS], _text_above(largest))
        case dt.date():
            return _of_times(least, largest)
    return _Bounds()


def _of_times(least: dt.date, largest: dt.date) -> _Bounds:
    if isinstance(least, dt.datetime) and isinstance(largest, dt.datetime):
        return _Bounds(_in_ms(least), _ms_above(largest))
    return _Bounds(least.isoformat(), largest.isoformat())


def _digits(value: Decimal) -> msgspec.Raw:
    """A number of all its digits: many a reader's number would round it."""
    return msgspec.Raw(format(value, "f").encode())


def _in_ms(moment: dt.datetime) -> str:
    """A time in UTC, its milliseconds alone: Delta's times have no more."""
    zone = "" if moment.tzinfo is None else "Z"
    naive = moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)
    return naive.isoformat(timespec="milliseconds") + zone


def _ms_above(moment: dt.datetime) -> str | None:
    """The first millisecond that is not before a time; None where Python knows none."""
    rest = dt.timedelta(microseconds=-moment.microsecond % 1000)
    last = moment.replace(tzinfo=None) > dt.datetime.max - rest
    return None if last else _in_ms(moment + rest)


def _text_above(largest: str) -> str | None:
    """The text, or a short one after every text with the same first characters; None if there is none."""
    if len(largest) <= _TEXT_CHARS:
        return largest
    for length in range(_TEXT_CHARS, 0, -1):
        following = ord(largest[length - 1]) + 1
        if following == 0xD800:  # surrogates are no characters
            following = 0xE000
        if following <= 0x10FFFF:
            return largest[: length - 1] + chr(following)
    return None
