"""A turn as events: transactions in the order of each shard's log, then what was copied, then the vgtid."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa

from catchment.model.image import CHANGE, GROUP, INTERNAL, SEQ
from catchment.model.table import Table, TableId
from catchment.rewind.change_types import DELETE, INSERT, PREIMAGE
from catchment.serve.changes.rows import GTID, TIMESTAMP
from catchment.serve.stream.advance import Altered, Told
from catchment.serve.stream.chunks import CopiedRows
from catchment.serve.stream.epochs import ShardTurn, Turn
from catchment.serve.stream.events import (
    Begin,
    Commit,
    Event,
    Field,
    LastPk,
    Row,
    Values,
)
from catchment.serve.stream.kept_images import Changed, chains
from catchment.serve.stream.source import ShardName
from catchment.serve.stream.told import completed, ddl_of, restarts, vgtid_of

# So many rows are Python objects at once.
_ROWS = 1024


@dataclass
class Teller:
    """Tells turns as events. `told`: the columns that were told of each table, by `keyspace/shard` and table."""

    told: Mapping[tuple[str, TableId], Table] = field(default_factory=dict)

    def events(self, turn: Turn) -> Iterator[Event]:
        """The events of a turn; the last one is its vgtid."""
        for shard in turn.shards:
            yield from self._of_shard(shard)
        yield from vgtid_of(turn)

    def catch_up(self, told: Mapping[tuple[str, TableId], Table]) -> Iterator[Event]:
        """The columns that another one has told, and this one has not."""
        for (shard, _), table in sorted(told.items()):
            yield from self._field(ShardName.parse(shard), table)

    def _of_shard(self, turn: ShardTurn) -> Iterator[Event]:
        name = ShardName.parse(turn.shard)
        yield from restarts(name, turn.again)
        if turn.told is not None:
            yield from self._of_log(name, turn.told)
            yield from restarts(name, turn.told.voids)
        for copied in turn.copied:
            yield from self._of_chunks(name, copied)

    def _of_log(self, name: ShardName, told: Told) -> Iterator[Event]:
        group: int | None = None
        groups = _Groups(told.groups)
        streams: list[Iterator[_Statement | _Row]] = [_statements(told)]
        streams += [chain.from_iterable(map(_rows, run)) for run in chains(told.changed)]
        for item in heapq.merge(*streams, key=_place):
            if item.group != group:
                if group is not None:
                    yield Commit(*name, *groups.of(group))
                group = item.group
                yield Begin(*name, *groups.of(group))
            if isinstance(item, _Statement):
                yield ddl_of(name, item.altered)
                continue
            yield from self._field(name, item.table)
            yield Row(*name, item.table.id, item.before, item.after)
        if group is not None:
            yield Commit(*name, *groups.of(group))

    def _of_chunks(self, name: ShardName, copied: CopiedRows) -> Iterator[Event]:
        table = copied.table
        yield Begin(*name, copied=True)
        yield from self._field(name, table)
        for values in _values(copied.rows):
            yield Row(*name, table.id, None, values)
        yield LastPk(*name, table.id, copied.last)
        yield Commit(*name)
        yield from completed(name, copied)

    def _field(self, name: ShardName, table: Table) -> Iterator[Event]:
        place = (str(name), table.id)
        if self.told.get(place) != table:
            # Another mapping: clients that share a reader hold those of before.
            self.told = {**self.told, place: table}
            yield Field(*name, table.id, table.columns, table.key)


@dataclass(frozen=True, slots=True)
class _Statement:
    group: int
    number: int
    altered: Altered


@dataclass(frozen=True, slots=True)
class _Row:
    group: int
    number: int
    table: Table
    before: Values | None
    after: Values | None


def _place(item: _Statement | _Row) -> tuple[int, int]:
    return item.group, item.number


def _statements(told: Told) -> Iterator[_Statement | _Row]:
    yield from (_Statement(one.group, -1, one) for one in told.altered)


def _rows(changed: Changed) -> Iterator[_Statement | _Row]:
    """The rows of images; the two sides of an update are one."""
    rows = changed.rows
    kinds, groups = rows.column(CHANGE), rows.column(GROUP)
    numbers = rows.column(SEQ)
    shown = rows.select([name for name in rows.schema.names if name not in {*INTERNAL, CHANGE}])
    before: Values | None = None
    for start in range(0, rows.num_rows, _ROWS):
        part = slice(start, start + _ROWS)
        for kind, group, number, values in zip(
            kinds[part].to_pylist(),
            groups[part].to_pylist(),
            numbers[part].to_pylist(),
            shown[part].to_pylist(),
            strict=True,
        ):
            if kind == PREIMAGE:
                before = values
            elif kind == DELETE:
                yield _Row(group, number, changed.table, values, None)
            else:
                yield _Row(group, number, changed.table, None if kind == INSERT else before, values)


def _values(rows: pa.Table) -> Iterator[Values]:
    for start in range(0, rows.num_rows, _ROWS):
        yield from rows[start : start + _ROWS].to_pylist()


class _Groups:
    """GTID and time of transactions, by ordinal."""

    def __init__(self, groups: pa.Table) -> None:
        self._of: dict[int, tuple[str, int]] = {}
        self._groups = groups

    def of(self, ordinal: int) -> tuple[str, int]:
        """GTID, empty without one, and seconds since 1970."""
        if not self._of:
            times = self._groups.column(TIMESTAMP).cast(pa.int64()).to_pylist()
            gtids = self._groups.column(GTID).to_pylist()
            ordinals = self._groups.column("ordinal").to_pylist()
            self._of = {
                number: (gtid or "", time // 1_000_000)
                for number, gtid, time in zip(ordinals, gtids, times, strict=True)
            }
        return self._of[ordinal]
