"""Base files of a lake table as a fold sees them: their key ranges, and which of their rows have changed."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catchment.sink.delta.files import FIRST_KEY, LAST_KEY, lake_file
from catchment.sink.delta.fold.net import NetChanges, Pinned, Rows, above
from catchment.wire.keys.keys import KeySet, encode


class BaseFile(msgspec.Struct, frozen=True):
    """A file and bounds of its keys: `low <= key`, and `key <= high` as far as `high` goes.

    `ordered`: its footer says that the rows are in order of key; if not, they may still be.
    """

    path: str
    size: int
    rows: int
    low: bytes
    high: bytes
    ordered: bool


class Reach(msgspec.Struct, frozen=True):
    """A file in order of key whose range no other file shares: the changes `start` to `end` are all its own."""

    file: BaseFile
    start: int
    end: int


class Touch(msgspec.Struct, frozen=True):
    """What the changes `start` to `end` mean for a file: its row `rows[i]` is replaced by change
    `changes[i]`.

    `ordered`: the file is in order of key, and change `start + i` belongs before its row `positions[i]`.
    """

    file: BaseFile
    start: int
    end: int
    rows: Rows
    changes: Rows
    ordered: bool
    positions: Rows


def describe(pinned: Pinned, file: dict[str, Any]) -> BaseFile:
    """Bounds of a file: exact ones where a fold wrote them, else from the statistics of its columns."""
    path = pinned.directory / file["path"]
    with lake_file(path):
        footer = pq.read_metadata(path)
    notes = footer.metadata or {}
    ordered = FIRST_KEY.encode() in notes
    if ordered:
        low = bytes.fromhex(notes[FIRST_KEY.encode()].decode())
        high = bytes.fromhex(notes[LAST_KEY.encode()].decode())
    else:
        low, high = _column_bounds(footer, pinned)
    return BaseFile(file["path"], file["size_bytes"], footer.num_rows, low, high, ordered)


def apart(files: Sequence[BaseFile]) -> set[str]:
    """Paths of the files in order of key whose range overlaps with that of no other file."""
    ordered = sorted(files, key=lambda file: file.low)
    found = set()
    ends = b""
    for number, file in enumerate(ordered):
        following = ordered[number + 1].low if number + 1 < len(ordered) else None
        end = above(file.high)
        if file.ordered and ends <= file.low and (following is None or end <= following):
            found.add(file.path)
        ends = max(ends, end)
    return found


def touch(pinned: Pinned, file: BaseFile, net: NetChanges, alone: bool) -> Touch | Reach | None:
    """What changes in a file; None when no change is in its range. `alone`: it is one of those `apart`, and
    need not be read to know.
    """
    start, end = net.between(file.low, file.high)
    if start == end or file.rows == 0:
        return None
    if alone:
        return Reach(file, start, end)
    columns = list(pinned.identity)
    path = pinned.directory / file.path
    with lake_file(path):
        held = pq.read_table(path, columns=columns, partitioning=None)
    keys = encode(held, columns)
    asked = net.slice_keys(start, end)
    found = KeySet(asked).find(keys)
    rows = np.flatnonzero(found >= 0)
    binary = keys.to_binary()
    ordered = bool(pc.all(pc.less_equal(binary[:-1], binary[1:])).as_py() is not False)
    positions = np.empty(0, np.int64)
    if ordered:
        positions = pc.search_sorted(binary, asked.to_binary()).to_numpy().astype(np.int64)
    return Touch(file, start, end, rows, found[rows] + start, ordered, positions)


def _column_bounds(footer: pq.FileMetaData, pinned: Pinned) -> tuple[bytes, bytes]:
    """Bounds as the columns' least and greatest values tell them: up to the first column that varies."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    at = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    for name in pinned.identity:
        groups = [footer.row_group(g).column(at[name]).statistics for g in range(footer.num_row_groups)]
        if not groups or not all(s is not None and s.has_min_max for s in groups):
            break
        low[name], high[name] = min(s.min for s in groups), max(s.max for s in groups)
        if low[name] != high[name]:
            break
    return _encoded(low, pinned.schema), _encoded(high, pinned.schema)


def _encoded(values: dict[str, Any], schema: pa.Schema) -> bytes:
    if not values:
        return b""
    arrays = [pa.array([value], schema.field(name).type) for name, value in values.items()]
    return encode(pa.table(arrays, names=list(values)), list(values))[0]
