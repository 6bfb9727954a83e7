"""The changes that a fold takes up, reduced to the last one of each (shard, key) and put in order of key."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catchment.sink.delta.files import lake_file
from catchment.sink.delta.layout import DELETED, EPOCH
from catchment.wire.keys.keys import Keys, encode
from catchment.wire.keys.order import last_in_order

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Pinned(msgspec.Struct, frozen=True):
    """A lake table at the version that a fold starts from: all its columns, and those of (shard, key)."""

    directory: Path
    schema: pa.Schema
    identity: tuple[str, ...]


class NetChanges(msgspec.Struct, frozen=True):
    """The newest change of every (shard, key), ordered by key; `deleted` says which of them are deletes."""

    rows: pa.Table
    keys: Keys
    deleted: Mask

    def __len__(self) -> int:
        return len(self.keys)

    def between(self, low: bytes, high: bytes) -> tuple[int, int]:
        """Half-open range of the changes with `low <= key` and `key <= high`, as far as `high` goes."""
        bounds = [low, above(high)]
        found = pc.search_sorted(self.keys.to_binary(), pa.array(bounds, pa.large_binary()))
        start, end = found.to_pylist()
        return start, max(start, end)

    def slice_keys(self, start: int, end: int) -> Keys:
        """Keys of a range of the changes."""
        return slice_keys(self.keys, start, end)


def slice_keys(keys: Keys, start: int, end: int) -> Keys:
    """Keys of a range of rows; nothing is copied."""
    if keys.offsets is None:
        return Keys(keys.data[start * keys.width : end * keys.width], None, keys.width, end - start)
    return Keys(keys.data, keys.offsets[start : end + 1], 0, end - start)


def plain_size(directory: Path, file: dict[str, Any]) -> int:
    """Bytes of a data file's values, not compressed: about what they take in memory."""
    path = directory / file["path"]
    with lake_file(path):
        footer = pq.read_metadata(path)
    return sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))


def choose(
    files: Sequence[dict[str, Any]], rows_max: int, bytes_max: int, size_of: Callable[[dict[str, Any]], int]
) -> list[dict[str, Any]]:
    """The oldest changes files that fit, at least one; every change left out is at least as new as every change taken.

    `size_of`: bytes of a file in memory. So folding them is right: a change that stays is at least as new as any
    that was folded.
    """
    ordered = sorted(files, key=lambda f: (f[f"min.{EPOCH}"], f[f"max.{EPOCH}"]))
    chosen: list[dict[str, Any]] = []
    newest = rows = size = 0
    for file in ordered:
        own = size_of(file)
        full = rows + file["num_records"] > rows_max or size + own > bytes_max
        if chosen and full and file[f"min.{EPOCH}"] >= newest:
            break
        chosen.append(file)
        newest = max(newest, file[f"max.{EPOCH}"])
        rows += file["num_records"]
        size += own
    return chosen


def load_net(pinned: Pinned, files: Sequence[dict[str, Any]]) -> NetChanges:
    """Read changes files and keep the newest change of each (shard, key)."""
    schema = pinned.schema
    tables = [schema.empty_table()]
    for file in files:
        path = pinned.directory / file["path"]
        with lake_file(path):
            tables.append(conform(pq.read_table(path, partitioning=None), schema))
    rows = pa.concat_tables(tables)
    epochs = rows[EPOCH].to_numpy()
    if np.any(epochs[1:] < epochs[:-1]):
        rows = rows.take(pa.array(np.argsort(epochs, kind="stable")))
    keys = encode(rows, pinned.identity)
    net = rows.take(pa.array(last_in_order(keys))).combine_chunks()
    deleted = net[DELETED].to_numpy() if len(net) else np.empty(0, np.bool_)
    return NetChanges(net, encode(net, pinned.identity), deleted)


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of `schema`, those that a file is too old to have as nulls."""
    held = set(table.column_names)
    columns = [
        table[field.name] if field.name in held else pa.nulls(table.num_rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def above(prefix: bytes) -> bytes:
    """The least bytes above every key that starts with `prefix`."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\xff" * (len(prefix) + 1)
