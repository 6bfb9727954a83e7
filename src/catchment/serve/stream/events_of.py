"""A turn as events: transactions in the order of each shard's log, then what was copied, then the vgtid."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa

from catchment.model.table import Table, TableId
from catchment.rewind.change_types import DELETE, INSERT, PREIMAGE
from catchment.serve.stream.advance import Altered, Told
from catchment.serve.stream.chunks import CopiedRows
from catchment.serve.stream.events import (
    Begin,
    Commit,
    Event,
    Field,
    LastPk,
    Row,
)
from catchment.serve.stream.kept_images import Changed, chains
from catchment.serve.stream.source import ShardName
from catchment.serve.stream.told import completed, ddl_of, restarts, vgtid_of
from catchment.serve.stream.turn import ShardTurn, Turn

# So many rows are Python objects at once.
_ROWS = 1024

_R_co = TypeVar("_R_co", covariant=True)


class RowMaker(Protocol[_R_co]):
    """What a row is for those who are told of it."""

    def sides(self, table: Table, rows: pa.Table) -> Iterable[Any]:
        """Of each of some rows of a table, in order, what `row` takes as one side."""
        ...

    def row(self, name: ShardName, table: TableId, before: Any, after: Any) -> _R_co:
        """A row; `before` None for one that came, `after` None for one that went."""
        ...

    def came(self, name: ShardName, table: Table, rows: pa.Table) -> Iterable[_R_co]:
        """Some rows of a table that came, in order."""
        ...


class PlainRows:
    """Rows with their values by the names of columns."""

    def sides(self, table: Table, rows: pa.Table) -> Iterable[Any]:
        """The values of each row."""
        return rows.to_pylist()  # type: ignore[no-any-return]

    def row(self, name: ShardName, table: TableId, before: Any, after: Any) -> Row:
        """A Row."""
        return Row(*name, table, before, after)

    def came(self, name: ShardName, table: Table, rows: pa.Table) -> Iterable[Row]:
        """Rows without `before`."""
        return (self.row(name, table.id, None, side) for side in self.sides(table, rows))


class RowTeller(Generic[_R_co]):
    """Tells turns as events, with rows as `maker` makes them. `told`: the columns that were told of each table, by
    `keyspace/shard` and table."""

    def __init__(self, maker: RowMaker[_R_co]) -> None:
        self.told: Mapping[tuple[str, TableId], Table] = {}
        self._maker = maker

    def events(self, turn: Turn) -> Iterator[Event | _R_co]:
        """The events of a turn; the last one is its vgtid."""
        for shard in turn.shards:
            yield from restarts(ShardName.parse(shard.shard), shard.again)
        for _, events in self._transactions(turn):
            yield from events
        for shard in turn.shards:
            yield from self._behind_log(shard)
        yield from vgtid_of(turn)

    def catch_up(self, told: Mapping[tuple[str, TableId], Table]) -> Iterator[Event]:
        """The columns that another one has told, and this one has not."""
        for (shard, _), table in sorted(told.items()):
            yield from self._field(ShardName.parse(shard), table)

    def _transactions(self, turn: Turn) -> Iterator["_Timed[_R_co]"]:
        """Those of one shard behind those of the other, or as they were written: the oldest that is left comes next."""
        ahead = turn.ahead
        logs = [
            self._of_log(ShardName.parse(shard.shard), shard.told, ahead[shard.shard] if ahead else 0.0)
            for shard in turn.shards
            if shard.told is not None
        ]
        return chain.from_iterable(logs) if ahead is None else heapq.merge(*logs, key=itemgetter(0))

    def _behind_log(self, turn: ShardTurn) -> Iterator[Event | _R_co]:
        name = ShardName.parse(turn.shard)
        if turn.told is not None:
            yield from restarts(name, turn.told.voids)
        for copied in turn.copied:
            yield from self._of_chunks(name, copied)

    def _of_log(self, name: ShardName, told: Told, ahead: float) -> Iterator["_Timed[_R_co]"]:
        groups, last = told.groups, _Last()
        streams: list[Iterator[_Statement | _Row]] = [_statements(told)]
        streams += [
            chain.from_iterable(map(partial(_rows, self._maker), run)) for run in chains(told.changed)
        ]
        for group, inside in groupby(heapq.merge(*streams, key=_place), attrgetter("group")):
            gtid, time = groups.of(group)
            yield time - ahead, self._transaction(name, gtid, time, inside, last)

    def _transaction(
        self, name: ShardName, gtid: str, time: int, inside: Iterator["_Statement | _Row"], last: "_Last"
    ) -> Iterator[Event | _R_co]:
        yield Begin(*name, gtid, time)
        for item in inside:
            if isinstance(item, _Statement):
                yield ddl_of(name, item.altered)
                continue
            if item.table is not last.table:
                yield from self._field(name, item.table)
                last.table = item.table
            yield self._maker.row(name, item.table.id, item.before, item.after)
        yield Commit(*name, gtid, time)

    def _of_chunks(self, name: ShardName, copied: CopiedRows) -> Iterator[Event | _R_co]:
        table = copied.table
        yield Begin(*name, copied=True)
        yield from self._field(name, table)
        for part in _parts(copied.rows):
            yield from self._maker.came(name, table, part)
        yield LastPk(*name, table.id, copied.last)
        yield Commit(*name)
        yield from completed(name, copied)

    def _field(self, name: ShardName, table: Table) -> Iterator[Event]:
        place = (str(name), table.id)
        if self.told.get(place) != table:
            # Another mapping: clients that share a reader hold those of before.
            self.told = {**self.told, place: table}
            yield Field(*name, table.id, table.columns, table.key)


class Teller(RowTeller[Row]):
    """Tells turns as events of the stream."""

    def __init__(self) -> None:
        super().__init__(PlainRows())


_Timed = tuple[float, Iterator[Event | _R_co]]
"""When a transaction was written, in seconds since 1970 by the stream's clock, and its events. Take them before the
next one comes."""


@dataclass
class _Last:
    """The table of the row that was told last of a log."""

    table: Table | None = None


class _Statement(msgspec.Struct, frozen=True):
    group: int
    number: int
    altered: Altered


class _Row(msgspec.Struct, frozen=True):
    group: int
    number: int
    table: Table
    before: Any
    after: Any


_place = attrgetter("group", "number")


def _statements(told: Told) -> Iterator[_Statement | _Row]:
    yield from (_Statement(one.group, -1, one) for one in told.altered)


def _rows(maker: RowMaker[Any], changed: Changed) -> Iterator[_Statement | _Row]:
    """The rows of images; the two sides of an update are one."""
    before: Any = None
    for part in changed.parts(_ROWS):
        for kind, group, number, side in zip(
            part.kinds, part.groups, part.numbers, maker.sides(changed.table, part.shown), strict=True
        ):
            if kind == PREIMAGE:
                before = side
            elif kind == DELETE:
                yield _Row(group, number, changed.table, side, None)
            else:
                yield _Row(group, number, changed.table, None if kind == INSERT else before, side)


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, _ROWS):
        yield rows[start : start + _ROWS]
