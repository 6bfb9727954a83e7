"""Fold recent changes into the base of a lake table: one commit that changes files and no row (DESIGN 10).

A fold is prepared on a pinned version and committed on the newest. Epochs that were applied in between stay: their
changes are newer than all that is folded. Runs in a process of its own, never in the epoch path.
"""

import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from catchment.model.epoch import DataFile, Part, TableShape
from catchment.sink.delta.commit import (
    LakeTable,
    check_fence,
    commit_properties,
    file_lists,
    gone,
    open_table,
    sync_version,
)
from catchment.sink.delta.files import write_file
from catchment.sink.delta.fold.base_file import apart, describe, touch
from catchment.sink.delta.fold.due import small_run
from catchment.sink.delta.fold.net import NetChanges, Pinned, choose, load_net, plain_size
from catchment.sink.delta.fold.rewrite import FileSize, Unit, cut, items, new_rows, units
from catchment.sink.delta.fold.weave import slices
from catchment.sink.delta.layout import FOLD_PREFIX, PART, SHARD, identity_columns, tail_dir


class FoldOptions(msgspec.Struct, frozen=True):
    """Limits of one fold: changes held in memory at a time (bytes not compressed), threads, and the size of
    base files."""

    changes_rows_max: int = 4_000_000
    changes_bytes_max: int = 384 * 1024 * 1024
    threads: int = 2
    target: FileSize = FileSize()


class PreparedFold(msgspec.Struct, frozen=True):
    """A fold whose files are written and not committed. `since_ms`: since when its changes wait to be folded into
    the base, in milliseconds since 1970; 0 when none does any more."""

    shape: TableShape
    pinned: int
    removed: tuple[dict[str, Any], ...]
    added: tuple[DataFile, ...]
    changes: int
    since_ms: int = 0


class FoldReport(msgspec.Struct, frozen=True):
    """A committed fold: table version, changes folded, files removed and added, bytes written."""

    version: int
    changes: int
    removed: int
    added: int
    bytes: int


def fold(
    root: str | Path, shape: TableShape, feed: str, fence: int, options: FoldOptions | None = None
) -> FoldReport | None:
    """Fold the oldest changes that `options` admits; None when there is nothing to do.

    Raises LeaseLost when a later runner wrote the table, SinkError when the lake refuses.
    """
    options = options or FoldOptions()
    divided = prepare_division(root, shape, options)
    if divided is not None:
        commit(root, divided, feed, fence)
    prepared = prepare(root, shape, options)
    return None if prepared is None else commit(root, prepared, feed, fence)


def prepare(root: str | Path, shape: TableShape, options: FoldOptions) -> PreparedFold | None:
    """Write the files of a fold of the newest version; nothing is visible yet."""
    directory = tail_dir(root, shape.table)
    table = open_table(directory)
    if table is None:
        return None
    lists = file_lists(table)
    changes = choose(
        lists[Part.CHANGES],
        options.changes_rows_max,
        options.changes_bytes_max,
        partial(plain_size, directory),
    )
    pinned = _pinned(table, directory, shape)
    net = load_net(pinned, changes)
    work = _plan(pinned, lists[Part.BASE], net, options)
    if not changes and not work:
        return None
    added = _write(pinned, work, net, options)
    rewritten = {item.file.path for unit in work for item in unit if item.file}
    removed = [*changes, *(f for f in lists[Part.BASE] if f["path"] in rewritten)]
    count = sum(f["num_records"] for f in changes)
    return PreparedFold(shape, table.version(), tuple(removed), tuple(added), count)


def prepare_division(root: str | Path, shape: TableShape, options: FoldOptions) -> PreparedFold | None:
    """Write files of changes that are too large for one fold as several each; nothing is visible yet.

    Such a file is of one epoch, so its keys are distinct and the parts may be folded one after another.
    """
    directory = tail_dir(root, shape.table)
    table = open_table(directory)
    if table is None:
        return None
    limit = options.changes_bytes_max
    large = [f for f in file_lists(table)[Part.CHANGES] if plain_size(directory, f) > limit]
    pinned = _pinned(table, directory, shape)
    name = f"{FOLD_PREFIX}{uuid.uuid4().hex}"
    keys = [column for column in pinned.identity if column != SHARD]
    added = [
        write_file(directory, Part.CHANGES, f"{name}-{n}-{m}", rows, pinned.schema, keys)
        for n, file in enumerate(large)
        for m, rows in enumerate(slices(pinned, file["path"], limit))
    ]
    if len(added) <= len(large):
        return None
    return PreparedFold(shape, table.version(), tuple(large), tuple(added), 0, _since_ms(large))


def prepare_gathering(root: str | Path, shape: TableShape, options: FoldOptions) -> PreparedFold | None:
    """Write the net of small files of changes as one file of changes; nothing is visible yet.

    Each change keeps its epoch, so whatever other files hold, the newest change of a key stays the newest.
    """
    directory = tail_dir(root, shape.table)
    table = open_table(directory)
    if table is None:
        return None
    run = small_run(file_lists(table)[Part.CHANGES])
    rows_max, bytes_max = options.changes_rows_max, options.changes_bytes_max
    small = choose(run, rows_max, bytes_max, partial(plain_size, directory))
    if len(small) < 2:
        return None
    pinned = _pinned(table, directory, shape)
    net = load_net(pinned, small)
    keys = [name for name in pinned.identity if name != SHARD]
    name = f"{FOLD_PREFIX}{uuid.uuid4().hex}"
    file = write_file(directory, Part.CHANGES, name, [net.rows], pinned.schema, keys, True)
    count = sum(f["num_records"] for f in small)
    return PreparedFold(shape, table.version(), tuple(small), (file,), count, _since_ms(small))


def _since_ms(changes: Sequence[dict[str, Any]]) -> int:
    return min(int(f["modification_time"]) for f in changes)


def _pinned(table: DeltaTable, directory: Path, shape: TableShape) -> Pinned:
    """The version that a handle has; with the table's own columns: it may have more than the shape, which is
    as of a committed epoch."""
    schema = pa.schema([f for f in pa.schema(table.schema().to_arrow()) if f.name != PART])
    return Pinned(directory, schema, identity_columns(shape))


def commit(root: str | Path, prepared: PreparedFold, feed: str, fence: int) -> FoldReport | None:
    """Commit a prepared fold on the newest version; None when another was faster: the cleaner removes its files.

    They are not deleted here: a commit that failed may stand, and versions that readers have open may name them.
    """
    directory = tail_dir(root, prepared.shape.table)
    name = str(prepared.shape.table)

    def attempt(table: DeltaTable) -> int:
        check_fence(table, feed, fence, name)
        present = {f["path"] for files in file_lists(table).values() for f in files}
        if any(f.path in present for f in prepared.added):
            newest: int = table.version()  # an attempt that failed after its commit: at the checkpoint, say
            return newest
        if any(f["path"] not in present for f in prepared.removed):
            return -1
        return _commit(directory, table, prepared, feed, fence)

    version = LakeTable(name, directory).commit(attempt, lambda: gone(name, directory))
    if version < 0:
        return None
    size = sum(f.size for f in prepared.added)
    return FoldReport(version, prepared.changes, len(prepared.removed), len(prepared.added), size)


def _plan(
    pinned: Pinned, base: Sequence[dict[str, Any]], net: NetChanges, options: FoldOptions
) -> list[Unit]:
    with ThreadPoolExecutor(options.threads) as pool:
        files = list(pool.map(lambda f: describe(pinned, f), base))
        alone = apart(files)
        touches = list(pool.map(lambda f: touch(pinned, f, net, f.path in alone), files))
    return units(items(files, [t for t in touches if t is not None], net), options.target)


def _write(pinned: Pinned, work: Sequence[Unit], net: NetChanges, options: FoldOptions) -> list[DataFile]:
    attempt = f"{FOLD_PREFIX}{uuid.uuid4().hex}"
    keys = [name for name in pinned.identity if name != SHARD]

    def write(numbered: tuple[int, Unit]) -> list[DataFile]:
        number, unit = numbered
        ordered, batches = new_rows(pinned, unit, net, options.target)
        rows, size = sum(i.rows for i in unit), sum(i.size for i in unit)
        share = -(-rows // options.target.files(rows, size))
        return [
            write_file(
                pinned.directory, Part.BASE, f"{attempt}-{number}-{n}", part, pinned.schema, keys, ordered
            )
            for n, part in enumerate(cut(batches, max(share, 1)))
        ]

    with ThreadPoolExecutor(options.threads) as pool:
        return [file for files in pool.map(write, enumerate(work)) for file in files]


def _commit(directory: Path, table: DeltaTable, prepared: PreparedFold, feed: str, fence: int) -> int:
    now_ms = time.time_ns() // 1_000_000
    adds = [
        AddAction(f.path, f.size, {PART: f.part.value}, prepared.since_ms or now_ms, False, f.stats)
        for f in prepared.added
        if f.rows
    ]
    removes = [
        RemoveAction(f["path"], False, now_ms, f["size_bytes"], {PART: f[f"partition.{PART}"]})
        for f in prepared.removed
    ]
    version: int = table.version() + 1
    table.create_write_transaction(
        [*adds, *removes],
        "append",
        table.schema(),
        [PART],
        commit_properties=commit_properties(feed, fence, **{"catchment.folded": str(prepared.changes)}),
    )
    sync_version(directory, version)
    return version
