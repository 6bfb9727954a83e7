"""How far back a lake can be read."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from catchment.model.epoch import EpochRow, epoch_text
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.sink.delta.commit import open_table
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.layout import epoch_app, tail_dir
from catchment.sink.delta.reading.history import oldest_version


class _Reach(msgspec.Struct, frozen=True):
    """How far back a lake table can be read: from version `floor` on. Its newest version, whose newest epoch is
    `carried`, serves for every epoch since."""

    floor: int
    carried: int

    def holds(self, version: int | None, epoch: int) -> bool:
        return version is not None and (version >= self.floor or self.carried <= epoch)


def readable(root: Path, feed: str, rows: Sequence[EpochRow]) -> list[bool]:
    """Of each epoch, whether every table can be read as of it and as of all later ones."""
    tables = {shape.table for row in rows for shape in row.manifest.shapes}
    asked = {t: min(row.commit.versions.get(str(t), 0) for row in rows) for t in tables}
    reaches = {t: _reach(root, feed, t, asked[t]) for t in tables}
    return [
        _readable(row, {shape.table: reaches[shape.table] for shape in row.manifest.shapes}) for row in rows
    ]


def readable_since(root: Path, feed: str, tables: Iterable[TableId]) -> str:
    """For messages: from which epoch on every one of the tables can be read, and up to which."""
    table = EpochsTable(root, feed)
    numbers = table.numbers()
    reaches = {t: _reach(root, feed, t, 0) for t in tables}

    def can_be_read(number: int) -> bool:
        row = table.at(number)
        return row is not None and _readable(row, reaches)

    first = bisect_left(numbers, True, key=can_be_read)
    if first == len(numbers):
        return f"no epoch can be read but the newest, {epoch_text(numbers[-1])}"
    return f"epochs from {epoch_text(numbers[first])} to {epoch_text(numbers[-1])} can be read"


def _readable(row: EpochRow, reaches: Mapping[TableId, _Reach]) -> bool:
    versions = row.commit.versions
    return all(reach.holds(versions.get(str(t)), row.commit.epoch) for t, reach in reaches.items())


def _reach(root: Path, feed: str, table: TableId, asked: int) -> _Reach:
    directory = tail_dir(root, table)
    newest = open_table(directory)
    if newest is None:
        raise SinkError(f"{table}: the lake has no Delta table at {directory}, but an epoch names it")
    carried = newest.transaction_version(epoch_app(feed, table)) or 0
    return _Reach(oldest_version(directory, newest.version(), asked), carried)
