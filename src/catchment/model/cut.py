"""Ticks, and cuts: the state of every shard at one place of its log (DESIGN 3).

A cut's JSON is the same in a manifest and in the offset of a stream.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

import msgspec
from msgspec.structs import replace

from catchment.model.position import LogOffset, Position
from catchment.model.shard import Copy, ShardState
from catchment.model.table import ShardTable, TableId


class Tick(msgspec.Struct, frozen=True):
    """One reading of the positions of all shards that answered. `time_us` is the clock's time in microseconds since
    1970; `window_us` the time between the first and the last position read."""

    number: int
    time_us: int
    window_us: int
    offsets: dict[str, LogOffset]


class Cut(msgspec.Struct, frozen=True):
    """Everything up to here is delivered. `epoch` and `time_us` are those of its tick.

    A shard of which nothing has changed keeps its state, the same object: so cuts are compared at a glance.
    """

    epoch: int
    time_us: int
    shards: dict[str, ShardState]

    @property
    def positions(self) -> dict[str, Position]:
        """Where each shard's log is read to."""
        return {shard: state.position for shard, state in self.shards.items()}

    @property
    def floors(self) -> dict[str, LogOffset]:
        """What is proven sealed, of the shards of which something is."""
        return {shard: state.sealed for shard, state in self.shards.items() if state.sealed is not None}

    @property
    def copies(self) -> Iterator[Copy]:
        """Those of all shards."""
        return chain.from_iterable(state.copies for state in self.shards.values())

    @property
    def tick(self) -> Tick:
        """A tick that shows every shard's log where it stands here."""
        offsets = {shard: state.position.at for shard, state in self.shards.items()}
        return Tick(self.epoch, self.time_us, 0, offsets)

    @property
    def copied(self) -> bool:
        """Whether no row is left to copy."""
        return all(state.copied for state in self.shards.values())

    @property
    def idle(self) -> bool:
        """Whether no row is to be copied now."""
        return all(state.idle for state in self.shards.values())

    @property
    def copying(self) -> frozenset[ShardTable]:
        """The tables of which rows are to be copied now."""
        return frozenset(
            ShardTable(shard, copy.table)
            for shard, state in self.shards.items()
            for copy in state.copying.values()
            if not copy.paused
        )

    def without(self, tables: Collection[TableId]) -> "Cut":
        """The same without the copies of these tables."""
        if not tables:
            return self
        return replace(self, shards={shard: state.without(tables) for shard, state in self.shards.items()})

    def moved(self, positions: Mapping[str, Position]) -> "Cut":
        """The same where the logs of these shards go on in other files, where seals are proven again."""
        states = {
            shard: replace(self.shards[shard], position=position, sealed=None)
            for shard, position in positions.items()
            if position != self.shards[shard].position
        }
        return replace(self, shards={**self.shards, **states}) if states else self

    def stood_at(self, tick: Tick) -> bool:
        """Whether every shard's log still stood here when `tick` was taken; not where one is absent there."""
        return all(tick.offsets.get(shard) == state.position.at for shard, state in self.shards.items())

    def copied_as(self, other: "Cut") -> bool:
        """Whether the same rows are copied as at another cut."""
        return self.shards.keys() == other.shards.keys() and all(
            state.copies is other.shards[shard].copies or state.copies == other.shards[shard].copies
            for shard, state in self.shards.items()
        )
