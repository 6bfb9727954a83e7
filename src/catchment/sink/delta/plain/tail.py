"""What waits in the tail: changes and chunks of epochs that the plain table does not have yet."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
import pyarrow as pa

from catchment.model.epoch import Part
from catchment.sink.delta.layout import PART
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile, Snapshot
from catchment.sink.delta.log.schemas import arrow_of
from catchment.sink.delta.plain.net import (
    NetChanges,
    Pinned,
    Share,
    all_changes,
    load_net,
    load_share,
    plain_size,
)
from catchment.sink.delta.tail.dated import with_epochs


class Limits(msgspec.Struct, frozen=True):
    """Changes that a settle holds in memory at a time: rows, and bytes that are not compressed."""

    rows: int = 4_000_000
    bytes: int = 384 * 1024 * 1024


class Waiting(msgspec.Struct, frozen=True):
    """Whole epochs of the tail, up to `epoch`: chunks that were copied, and changes, in shares that memory holds."""

    epoch: int
    chunks: tuple[str, ...]
    changes: tuple[str, ...]
    pinned: Pinned
    shares: int

    def nets(self, *, with_lost: bool) -> Iterator[NetChanges]:
        """The net of all changes, a share at a time; the whole of a small one."""
        for number in range(self.shares if self.changes else 0):
            yield load_net(self.pinned, self.changes, Share(number, self.shares), with_lost=with_lost)

    def rows(self) -> Iterator[pa.Table]:
        """All changes, the oldest epoch first."""
        return all_changes(self.pinned, self.changes)

    def whole_shares(self) -> Iterator[pa.Table]:
        """The same, all of a share of keys at a time."""
        for number in range(self.shares if self.changes else 0):
            yield load_share(self.pinned, self.changes, Share(number, self.shares))


def waiting(
    log: DeltaLog, identity: tuple[str, ...], *, since: int, until: int, limits: Limits, whole: bool = False
) -> Waiting | None:
    """The oldest epochs behind `since` that the limits admit, up to `until`, or all of them (`whole`); None when there
    is none.

    Raises SinkError.
    """
    tail = log.newest()
    if tail is None:
        return None
    dated = [(epoch, f) for epoch, f in with_epochs(log.directory, tail) if since < epoch <= until]
    if not dated:
        return None
    sizes = {f.path: plain_size(log.directory, f.path) for _, f in dated if _is_change(f)}
    epoch, chosen = (until, [f for _, f in dated]) if whole else _chosen(dated, sizes, limits)
    changes = [f for f in chosen if _is_change(f)]
    rows, size = sum(f.rows for f in changes), sum(sizes[f.path] for f in changes)
    return Waiting(
        until if len(chosen) == len(dated) else epoch,
        tuple(f.path for f in chosen if not _is_change(f)),
        tuple(f.path for f in changes),
        Pinned(log.directory, _schema(tail), identity),
        max(1, math.ceil(rows / limits.rows), math.ceil(size / limits.bytes)),  # one epoch may be beyond them
    )


def _chosen(
    dated: Sequence[tuple[int, LakeFile]], sizes: dict[str, int], limits: Limits
) -> tuple[int, list[LakeFile]]:
    """The files of the oldest epochs until a limit is reached, and the last of these epochs."""
    chosen: list[LakeFile] = []
    rows = size = epoch = 0
    for number, group in groupby(sorted(dated, key=lambda one: one[0]), key=lambda one: one[0]):
        of_epoch = [file for _, file in group]
        rows += sum(f.rows for f in of_epoch if _is_change(f))
        size += sum(sizes[f.path] for f in of_epoch if _is_change(f))
        if chosen and (rows > limits.rows or size > limits.bytes):
            break
        chosen += of_epoch
        epoch = number
    return epoch, chosen


def _is_change(file: LakeFile) -> bool:
    return file.add.partition_values[PART] == Part.CHANGES.value


def _schema(tail: Snapshot) -> pa.Schema:
    """The table's own columns: it may have more than a shape of an earlier epoch."""
    schema = arrow_of(tail.metadata.schema_string)
    return pa.schema([f for f in schema if f.name != PART])
