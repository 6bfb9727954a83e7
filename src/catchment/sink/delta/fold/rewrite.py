"""Which base files a fold writes anew, and their new rows.

An item is a base file with the new keys that fall into its range, or a run of new keys between files. Small
items side by side become one unit. A unit is read and written by itself. A file streams through in batches. Only a file
out of order, and small files brought together, are sorted in memory.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.sink.delta.fold.base_file import BaseFile, Reach, Touch
from catchment.sink.delta.fold.net import NetChanges, Pinned, Rows, above
from catchment.sink.delta.fold.weave import NONE, batches, replaced, streamed, taken, woven
from catchment.wire.keys.keys import encode
from catchment.wire.keys.order import last_in_order

_SMALL_FILES_MAX = 8  # untouched small files side by side are left until there are so many


class FileSize(msgspec.Struct, frozen=True):
    """Size that base files should have."""

    rows: int = 4_000_000
    bytes: int = 128 * 1024 * 1024

    def files(self, rows: int, size: int) -> int:
        """How many files that much should be."""
        share = max(rows / self.rows, size / self.bytes)
        return 1 if share <= 1.5 else round(share)

    def small(self, rows: int, size: int) -> bool:
        """True below half of the target."""
        return rows * 2 < self.rows and size * 2 < self.bytes

    def fits(self, rows: int, size: int) -> bool:
        """True up to the target."""
        return rows <= self.rows and size <= self.bytes


class Item(msgspec.Struct, frozen=True):
    """A base file or None, what changes in it, and the new rows (numbers of changes) that go with it."""

    low: bytes
    file: BaseFile | None
    touch: Touch | Reach | None
    inserts: Rows

    @property
    def changed(self) -> bool:
        """Whether the item has to be written."""
        if isinstance(self.touch, Reach) or len(self.inserts):
            return True
        return self.touch is not None and len(self.touch.rows) > 0

    @property
    def rows(self) -> int:
        """About how many rows it will have; new ones within a reach count when they are written."""
        return (self.file.rows if self.file else 0) + len(self.inserts)

    @property
    def size(self) -> int:
        """About how many bytes it will have; new rows of a run count when they are written."""
        return self.file.size if self.file else 0


Unit = tuple[Item, ...]


def items(files: Sequence[BaseFile], touches: Sequence[Touch | Reach], net: NetChanges) -> list[Item]:
    """All base files and runs of new keys, in order of key."""
    known = np.zeros(len(net), np.bool_)
    for found in touches:
        known[slice(found.start, found.end) if isinstance(found, Reach) else found.changes] = True
    free = ~known & ~net.deleted
    by_path = {found.file.path: found for found in touches}
    inserts: dict[str, Rows] = {}
    # The narrowest range first: it is the better place when ranges overlap.
    for found in sorted(touches, key=lambda t: t.end - t.start):
        taken = np.flatnonzero(free[found.start : found.end]) + found.start
        free[taken] = False
        inserts[found.file.path] = taken
    held = [Item(f.low, f, by_path.get(f.path), inserts.get(f.path, NONE)) for f in files]
    return sorted([*held, *_runs(files, np.flatnonzero(free), net)], key=lambda item: item.low)


def _runs(files: Sequence[BaseFile], free: Rows, net: NetChanges) -> list[Item]:
    """New keys in no file's range, cut where a file lies between them."""
    if not len(free):
        return []
    keys = net.keys.to_binary().take(pa.array(free))
    lows = pa.array(sorted(f.low for f in files), pa.large_binary())
    gap = pc.search_sorted(lows, keys, side="right").to_numpy()
    runs = np.split(free, np.flatnonzero(np.diff(gap)) + 1)
    return [Item(net.keys[int(run[0])], None, None, run) for run in runs]


def units(ordered: Sequence[Item], target: FileSize) -> list[Unit]:
    """Groups of items that are written anew together."""
    groups: list[list[Item]] = []
    rows = size = 0
    for item in ordered:
        small = target.small(item.rows, item.size)
        if groups and small and rows and target.fits(rows + item.rows, size + item.size):
            groups[-1].append(item)
            rows, size = rows + item.rows, size + item.size
        else:
            groups.append([item])
            rows, size = (item.rows, item.size) if small else (0, 0)
    return [tuple(g) for g in groups if any(i.changed for i in g) or len(g) >= _SMALL_FILES_MAX]


def new_rows(
    pinned: Pinned, unit: Unit, net: NetChanges, target: FileSize
) -> tuple[bool, Iterator[pa.Table]]:
    """The rows of a unit after the fold, and whether they come in order of key."""
    if _in_order(unit, net):
        return True, (batch for item in unit for batch in _merged(pinned, item, net))
    alone = unit[0] if len(unit) == 1 else None
    if alone is not None and not target.fits(alone.rows // 2, alone.size // 2):
        return False, _streamed(pinned, alone, net)
    return True, iter([_sorted(pinned, unit, net)])


def _in_order(unit: Unit, net: NetChanges) -> bool:
    """Whether each item is in order of key and ends before the next one begins."""
    ends = b""
    for item in unit:
        if item.low < ends:
            return False
        if item.file is None:
            ends = net.keys[int(item.inserts[-1])]
            continue
        ordered = item.touch.ordered if isinstance(item.touch, Touch) else item.file.ordered
        if not ordered:
            return False
        ends = above(item.file.high)
    return True


def cut(batches: Iterator[pa.Table], rows: int) -> Iterator[Iterator[pa.Table]]:
    """Deal batches to files of about `rows` rows; each file is to be read up before the next."""
    held = next(batches, None)

    def one_file() -> Iterator[pa.Table]:
        nonlocal held
        written = 0
        while held is not None and written < rows:
            part = held.slice(0, rows - written)
            rest = held.slice(part.num_rows)
            held = rest if rest.num_rows else next(batches, None)
            written += part.num_rows
            yield part

    while held is not None:
        yield one_file()


def _merged(pinned: Pinned, item: Item, net: NetChanges) -> Iterator[pa.Table]:
    """An item in order of key: a file with its new keys where they belong, or a run."""
    found, behind = item.touch, item.inserts
    if isinstance(found, Reach):
        yield from woven(pinned, found, net)
    elif item.file is not None and found is None:
        yield from (batch for _, batch in batches(pinned, item.file))
    elif found is not None:
        places = found.positions[item.inserts - found.start]
        for start, batch in batches(pinned, found.file):
            first, last = np.searchsorted(places, [start, start + batch.num_rows])
            inserts = (item.inserts[first:last], places[first:last] - start)
            yield replaced(batch, start, found, net, inserts)
        behind = item.inserts[np.searchsorted(places, found.file.rows) :]
    if len(behind):
        yield taken(net, behind)


def _streamed(pinned: Pinned, item: Item, net: NetChanges) -> Iterator[pa.Table]:
    """The rows of an item in whatever order: new keys go behind those of the file."""
    assert item.file is not None
    if isinstance(item.touch, Reach):
        yield from woven(pinned, item.touch, net)
    else:
        yield from streamed(pinned, item.file, item.touch, net)
    if len(item.inserts):
        yield taken(net, item.inserts)


def _sorted(pinned: Pinned, unit: Unit, net: NetChanges) -> pa.Table:
    parts = [batch for item in unit if item.file for batch in _streamed(pinned, item, net)]
    parts += [taken(net, item.inserts) for item in unit if item.file is None]
    rows = pa.concat_tables([pinned.schema.empty_table(), *parts])
    return rows.take(pa.array(last_in_order(encode(rows, pinned.identity))))
