"""How far back a lake can be read."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from catchment.model.epoch import EpochRow, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.files import exists
from catchment.sink.delta.layout import Tail, epoch_app, generation_app
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.reading.history import oldest_version
from catchment.sink.delta.tail.older import places


class _Reach(msgspec.Struct, frozen=True):
    """How far back a copy of a lake table can be read: its tail from version `floor` on, its plain table from
    `plain_floor` on. Their newest versions serve for every epoch since the newest that has come to the copy, `carried`,
    unless the copy is `earlier` than that in the plain table. `whole`: no erasure took files that the newest version of
    its tail names.
    """

    plain: DeltaLog
    tail: DeltaLog
    app: str
    floor: int
    carried: int
    plain_floor: int
    generation: int
    earlier: bool
    whole: bool

    def holds(self, version: int | None, epoch: int) -> bool:
        if version is None or not self.whole:
            return False
        is_newest = self.carried <= epoch
        if not is_newest and version < self.floor:
            last = self.tail.carrying(self.app, epoch)
            if last is None or last.version < self.floor:
                return False
        if is_newest and not self.earlier:
            return True
        plain = self.plain.carrying(self.app, epoch)
        if plain is None or plain.transactions.get(generation_app(self.app), 0) < self.generation:
            return True
        return plain.version >= self.plain_floor


class _Seen(NamedTuple):
    """What readers of an epoch see of a table: a copy of it as of `epoch`, at that version of its tail."""

    copy: Tail
    version: int | None
    epoch: int


def readable(root: Location, feed: str, rows: Sequence[EpochRow]) -> list[bool]:
    """Of each epoch, whether every table can be read as of it and as of all later ones."""
    known = _Known(root, feed)
    seen = [known.seen(row) for row in rows]
    asked: dict[Tail, int] = {}
    for copy, version, _ in (one for tables in seen for one in tables or ()):
        asked[copy] = min(version or 0, asked.get(copy, version or 0))
    reaches = {copy: _reach(root, feed, copy, version) for copy, version in asked.items()}
    return [
        tables is not None and all(reaches[one.copy].holds(one.version, one.epoch) for one in tables)
        for tables in seen
    ]


def readable_since(root: Location, feed: str, tables: Iterable[TableId]) -> str:
    """For messages: from which epoch on every one of the tables can be read, and up to which."""
    known, asked = _Known(root, feed), set(tables)
    numbers = known.table.numbers()
    reaches: dict[Tail, _Reach] = {}

    def can_be_read(number: int) -> bool:
        row = known.table.at(number)
        seen = known.seen(row) if row is not None and asked <= row.manifest.tables else None
        if seen is None:
            return False
        mine = [one for one in seen if one.copy.table in asked]
        for one in mine:
            reaches[one.copy] = reaches.get(one.copy) or _reach(root, feed, one.copy, 0)
        return all(reaches[one.copy].holds(one.version, one.epoch) for one in mine)

    first = bisect_left(numbers, True, key=can_be_read)
    if first == len(numbers):
        return f"no epoch can be read but the newest, {epoch_text(numbers[-1])}"
    return f"epochs from {epoch_text(numbers[first])} to {epoch_text(numbers[-1])} can be read"


class _Known:
    """The epochs of a feed, of which those that stale tables stand at are kept."""

    def __init__(self, root: Location, feed: str) -> None:
        self.table = EpochsTable(root, feed)
        self._rows: dict[int, EpochRow | None] = {}

    def seen(self, row: EpochRow) -> list[_Seen] | None:
        """What readers of an epoch see of every table; None where a stale one is as of an epoch that is gone."""
        stale = {one.table: one.epoch for one in row.manifest.stale}
        found = [_of(row, shape) for shape in row.manifest.shapes if shape.table not in stale]
        for table, epoch in stale.items():
            if epoch not in self._rows:
                self._rows[epoch] = self.table.at(epoch)
            then = self._rows[epoch]
            if then is None:
                return None
            found += [_of(then, shape) for shape in then.manifest.shapes if shape.table == table]
        return found


def _of(row: EpochRow, shape: TableShape) -> _Seen:
    return _Seen(Tail.of(shape), row.commit.versions.get(str(shape.table)), row.commit.epoch)


def _reach(root: Location, feed: str, copy: Tail, asked: int) -> _Reach:
    table = copy.table
    at, app = places(root, table, copy.generation), epoch_app(feed, table)
    directory = at.tail
    tail = DeltaLog(directory)
    newest = tail.newest()
    if newest is None:
        raise SinkError(f"{table}: the lake has no Delta table at {directory}, but an epoch names it")
    carried = newest.transactions.get(app, 0)
    floor = oldest_version(directory, newest.version, asked)
    log = DeltaLog(at.plain)
    plain = log.newest()
    plain_floor = 0 if plain is None else oldest_version(log.directory, plain.version)
    earlier = plain is not None and plain.transactions.get(generation_app(app), 0) > copy.generation
    whole = not earlier or all(exists(directory / name) for name in newest.files)
    return _Reach(log, tail, app, floor, carried, plain_floor, copy.generation, earlier, whole)
