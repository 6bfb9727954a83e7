"""How far back a lake can be read."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from catchment.model.epoch import EpochRow
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import Tail, epoch_app, generation_app
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.reading.history import oldest_version
from catchment.sink.delta.tail.older import places


class _Reach(msgspec.Struct, frozen=True):
    """How far back a lake table can be read: its tail from version `floor` on, its plain table from `plain_floor` on.
    Their newest versions serve for every epoch since the newest that has come to the table, `carried`.
    """

    plain: DeltaLog
    tail: DeltaLog
    app: str
    floor: int
    carried: int
    plain_floor: int
    generation: int

    def holds(self, version: int | None, epoch: int) -> bool:
        if version is None or self.carried <= epoch:
            return version is not None
        if version < self.floor:
            last = self.tail.carrying(self.app, epoch)
            if last is None or last.version < self.floor:
                return False
        plain = self.plain.carrying(self.app, epoch)
        if plain is None or plain.transactions.get(generation_app(self.app), 0) < self.generation:
            return True
        return plain.version >= self.plain_floor


def readable(root: Location, feed: str, rows: Sequence[EpochRow]) -> list[bool]:
    """Of each epoch, whether every table can be read as of it and as of all later ones."""
    asked: dict[Tail, int] = {}
    for row in rows:
        for copy in _copies(row):
            version = row.commit.versions.get(str(copy.table), 0)
            asked[copy] = min(version, asked.get(copy, version))
    reaches = {copy: _reach(root, feed, copy, version) for copy, version in asked.items()}
    return [_readable(row, {copy.table: reaches[copy] for copy in _copies(row)}) for row in rows]


def readable_since(root: Location, feed: str, tables: Iterable[TableId]) -> str:
    """For messages: from which epoch on every one of the tables can be read, and up to which."""
    table, asked = EpochsTable(root, feed), set(tables)
    numbers = table.numbers()
    reaches: dict[Tail, _Reach] = {}

    def can_be_read(number: int) -> bool:
        row = table.at(number)
        if row is None or not asked <= row.manifest.tables:
            return False
        mine = [copy for copy in _copies(row) if copy.table in asked]
        for copy in mine:
            reaches[copy] = reaches.get(copy) or _reach(root, feed, copy, 0)
        return _readable(row, {copy.table: reaches[copy] for copy in mine})

    first = bisect_left(numbers, True, key=can_be_read)
    if first == len(numbers):
        return f"no epoch can be read but the newest, {epoch_text(numbers[-1])}"
    return f"epochs from {epoch_text(numbers[first])} to {epoch_text(numbers[-1])} can be read"


def _copies(row: EpochRow) -> list[Tail]:
    """The copies that readers of an epoch see; stale tables are read as of another one."""
    stale = {one.table for one in row.manifest.stale}
    return [Tail.of(s) for s in row.manifest.shapes if s.table not in stale]


def _readable(row: EpochRow, reaches: Mapping[TableId, _Reach]) -> bool:
    versions = row.commit.versions
    return all(reach.holds(versions.get(str(t)), row.commit.epoch) for t, reach in reaches.items())


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
    if plain is None:
        return _Reach(log, tail, app, floor, carried, 0, copy.generation)
    plain_floor = oldest_version(log.directory, plain.version)
    return _Reach(log, tail, app, floor, carried, plain_floor, copy.generation)
