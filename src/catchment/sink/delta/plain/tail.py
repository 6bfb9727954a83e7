"""What waits in the tail: changes and chunks of epochs that the plain table does not have yet."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable

from catchment.model.epoch import Part
from catchment.sink.delta.commit import file_lists, open_table
from catchment.sink.delta.layout import EPOCH, PART
from catchment.sink.delta.plain.net import NetChanges, Pinned, load_net, plain_size

_NEWEST = f"max.{EPOCH}"


class Limits(msgspec.Struct, frozen=True):
    """Changes that one settle holds in memory: rows, and bytes that are not compressed. One epoch goes in any case."""

    rows: int = 4_000_000
    bytes: int = 384 * 1024 * 1024


class Waiting(msgspec.Struct, frozen=True):
    """Whole epochs of the tail, up to `epoch`: chunks that were copied, and the net of all changes."""

    epoch: int
    chunks: tuple[str, ...]
    net: NetChanges


def waiting(
    directory: Path, identity: tuple[str, ...], *, since: int, until: int, limits: Limits
) -> Waiting | None:
    """The oldest epochs behind `since` that the limits admit, up to `until`; None when there is none.

    Raises SinkError.
    """
    table = open_table(directory)
    if table is None:
        return None
    files = [f for part in file_lists(table).values() for f in part if since < f[_NEWEST] <= until]
    if not files:
        return None
    epoch, chosen = _chosen(directory, files, limits)
    changes = [f for f in chosen if _is_change(f)]
    net = load_net(Pinned(directory, _schema(table), identity), changes)
    whole = len(chosen) == len(files)
    return Waiting(until if whole else epoch, tuple(f["path"] for f in chosen if not _is_change(f)), net)


def _chosen(
    directory: Path, files: Sequence[dict[str, Any]], limits: Limits
) -> tuple[int, list[dict[str, Any]]]:
    """The files of the oldest epochs until a limit is reached, and the last of these epochs."""
    chosen: list[dict[str, Any]] = []
    rows = size = epoch = 0
    for number, group in groupby(sorted(files, key=lambda f: f[_NEWEST]), key=lambda f: f[_NEWEST]):
        of_epoch = list(group)
        changes = [f for f in of_epoch if _is_change(f)]
        rows += sum(f["num_records"] for f in changes)
        size += sum(plain_size(directory, f) for f in changes)
        if chosen and (rows > limits.rows or size > limits.bytes):
            break
        chosen += of_epoch
        epoch = number
    return epoch, chosen


def _is_change(file: dict[str, Any]) -> bool:
    return bool(file[f"partition.{PART}"] == Part.CHANGES.value)


def _schema(table: DeltaTable) -> pa.Schema:
    """The table's own columns: it may have more than a shape of an earlier epoch."""
    return pa.schema([f for f in pa.schema(table.schema().to_arrow()) if f.name != PART])
