"""Manifests as records of versions 1 and 2 hold them: the state of a shard in four places, by shard or in one tuple.

They are read and never written. A change of version 2 builds on a whole record of version 2. So both keep their own
form until the manifest is made.
"""

import hashlib

import msgspec

from catchment.model.chunk import Bound
from catchment.model.cut import Cut
from catchment.model.definition import Definition
from catchment.model.differences import merged, restored
from catchment.model.epoch import Manifest, Outside, TableDelta, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.position import LogOffset, Position, Resets
from catchment.model.shard import Copy, ShardState
from catchment.model.table import TableId

VERSION_MAX = 2


class ProgressBefore(msgspec.Struct, frozen=True):
    """A copy, with its shard."""

    shard: str
    table: TableId
    copied: Bound | None = None
    born_after: Bound | None = None
    done: bool = False
    rows: int = 0
    rows_expected: int = 0


class OutsideBefore(msgspec.Struct, frozen=True):
    """A table that the feed did not carry."""

    table: TableId
    epoch: int
    reason: str = ""


class ManifestBefore(msgspec.Struct, frozen=True):
    """A manifest. The order of the fields does not count, their names and defaults do (`content_digest`)."""

    feed: str
    epoch: int
    previous: int
    time_us: int
    window_us: int
    cut: dict[str, Position]
    sealed: dict[str, LogOffset]
    progress: tuple[ProgressBefore, ...]
    shapes: tuple[TableShape, ...]
    deltas: tuple[TableDelta, ...]
    definitions: dict[str, tuple[Definition, ...]] = {}
    changes: int = 0
    log_bytes: int = 0
    chunk_bytes: int = 0
    outside: tuple[OutsideBefore, ...] = ()
    absent: dict[str, int] = {}


class ManifestChangeBefore(msgspec.Struct, frozen=True):
    """What is not as in the base: entries by shard, or by place in its tuple; None: there is none any more. `resets`:
    of shards whose position is the same but for them."""

    epoch: int
    previous: int
    time_us: int
    window_us: int
    cut: dict[str, Position] = {}
    resets: dict[str, Resets | None] = {}
    sealed: dict[str, LogOffset | None] = {}
    progress: dict[int, ProgressBefore] = {}
    shapes: dict[int, TableShape] = {}
    deltas: tuple[TableDelta, ...] = ()
    definitions: dict[str, tuple[Definition, ...] | None] = {}
    changes: int = 0
    log_bytes: int = 0
    chunk_bytes: int = 0
    outside: tuple[OutsideBefore, ...] | None = None
    absent: dict[str, int] = {}


def manifest_of(before: ManifestBefore) -> Manifest:
    """The manifest as it is now. Raises ValueError for one that speaks of shards or tables that it does not have."""
    copies: dict[str, list[Copy]] = {shard: [] for shard in before.cut}
    for what, named in (
        ("sealed positions", before.sealed.keys()),
        ("definitions", before.definitions.keys()),
        ("progress", {progress.shard for progress in before.progress}),
    ):
        if not named <= before.cut.keys():
            unknown = ", ".join(sorted(named - before.cut.keys()))
            raise ValueError(f"epoch {epoch_text(before.epoch)}: {what} of {unknown}, which it does not have")
    for one in before.progress:
        copies[one.shard].append(
            Copy(one.table, one.copied, one.born_after, one.done, one.rows, one.rows_expected)
        )
    shards = {
        shard: ShardState(
            position, before.sealed.get(shard), tuple(copies[shard]), before.definitions.get(shard, ())
        )
        for shard, position in before.cut.items()
    }
    return Manifest(
        feed=before.feed,
        previous=before.previous,
        window_us=before.window_us,
        cut=Cut(before.epoch, before.time_us, shards),
        shapes=before.shapes,
        deltas=before.deltas,
        changes=before.changes,
        log_bytes=before.log_bytes,
        chunk_bytes=before.chunk_bytes,
        outside=tuple(Outside(one.table, one.epoch, one.reason) for one in before.outside),
        absent=before.absent,
    )


def changed_before(change: ManifestChangeBefore, base: ManifestBefore) -> ManifestBefore:
    """The manifest of a change and its base. Raises ValueError where they do not fit."""
    unknown = (change.cut.keys() | change.resets.keys()) - base.cut.keys()
    if unknown:
        raise ValueError(f"names shards that its base does not have: {', '.join(sorted(unknown))}")
    asked = {
        shard: msgspec.structs.replace(base.cut[shard], resets=resets)
        for shard, resets in change.resets.items()
    }
    return ManifestBefore(
        feed=base.feed,
        epoch=change.epoch,
        previous=change.previous,
        time_us=change.time_us,
        window_us=change.window_us,
        cut={**base.cut, **asked, **change.cut},
        sealed=merged(base.sealed, change.sealed),
        progress=restored(base.progress, change.progress),
        shapes=restored(base.shapes, change.shapes),
        deltas=change.deltas,
        definitions=merged(base.definitions, change.definitions),
        changes=change.changes,
        log_bytes=change.log_bytes,
        chunk_bytes=change.chunk_bytes,
        outside=base.outside if change.outside is None else change.outside,
        absent=change.absent,
    )


def content_digest(manifest: ManifestBefore) -> str:
    """SHA-256 of the content, hexadecimal, as commits of version 1 name it."""
    return hashlib.sha256(msgspec.json.encode(manifest, order="deterministic")).hexdigest()
