"""Days of epochs of a lake in seconds: two tables that change at random, under a clock of the test's own."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from catchment import world
from catchment.model.epoch import Part, TableShape
from catchment.model.epoch_number import epoch_number, gci_of
from catchment.sink.delta.upkeep import versions
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.world.real import Real
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import INT, ORDERS, TEXT, delta, shape, write
from tests.world.settled import carry_out

ITEMS = shape("items", {"id": INT, "sig": TEXT}, ("id",))
TABLES = (ORDERS, ITEMS)
SHARDS = ("s/0", "s/1")
HOUR = 3600
Rows = list[tuple[Any, ...]]
State = dict[tuple[str, int], tuple[int, str]]


class Clock(Real):
    """A clock that the test sets. It begins at the next one o'clock in the afternoon: files that are written lie in the
    past of all later moments. Which epochs are the last of their hour and day must not depend on when the test runs."""

    def __init__(self) -> None:
        day, afternoon = 24 * HOUR, 13 * HOUR
        self.seconds = (Real().now_us() / 1e6 - afternoon) // day * day + day + afternoon

    def now_us(self) -> int:
        return int(self.seconds * 1e6)

    def steady_seconds(self) -> float:
        return self.seconds


class LongRun:
    """A feed of two tables. `states`: the rows of each table as of each epoch. `settled`: epochs up to which all was
    settled; `touched`: epochs that brought something."""

    def __init__(self, root: Path, clock: Clock, rng: random.Random, order: UpkeepOrder) -> None:
        self.root, self.clock, self.rng, self.order = root, clock, rng, order
        self.feeder = Feeder(root)
        self.now: dict[str, State] = {str(table.table): {} for table in TABLES}
        self.states: dict[int, dict[str, State]] = {}
        self.touched: list[int] = []
        self.settled: list[int] = []

    def epoch(self, *changed: TableShape) -> int:
        """Commit an epoch that changes some tables."""
        feeder, rng = self.feeder, self.rng
        feeder.epoch = max(feeder.epoch + 1, epoch_number(int(self.clock.seconds)))
        feeder.time_us = self.clock.now_us()
        deltas = []
        for table in changed:
            rows, state = [], self.now[str(table.table)]
            for shard, key in rng.sample([(s, k) for s in SHARDS for k in range(30)], rng.randint(1, 6)):
                dies = rng.random() < 0.3 and (shard, key) in state
                rows.append((shard, feeder.epoch, dies, (key, f"{rng.random()}")))
                state.pop((shard, key), None)
                if not dies:
                    state[shard, key] = (feeder.epoch, rows[-1][3][1])
            file = write(self.root, table, Part.CHANGES, f"{feeder.epoch}-a-0", rows)
            deltas.append(delta(table, file))
        feeder.commit(TABLES, *deltas)
        self.states[feeder.epoch] = {name: dict(state) for name, state in self.now.items()}
        if deltas:
            self.touched.append(feeder.epoch)
        return feeder.epoch

    def keep_up(self) -> None:
        """Settle all and clean, as every ten minutes of a run."""
        carry_out(self.order)
        self.settled.append(self.feeder.epoch)

    def turn(self, seconds: float) -> None:
        """Let time pass, with an epoch of changes, an epoch without, or none; then settle, or not."""
        self.clock.seconds += seconds
        if self.rng.random() < 0.9:
            changed = [table for table in TABLES if self.rng.random() < 0.6]
            self.epoch(*(changed if self.states else TABLES))
        if self.rng.random() < 0.7:
            self.keep_up()

    def rows(self, epoch: int, table: TableShape) -> Rows:
        """What a table has as of an epoch."""
        state = self.states[epoch][str(table.table)]
        return sorted((shard, e, key, sig) for (shard, key), (e, sig) in state.items())

    def whole(self) -> list[int]:
        """Epochs as of which plain tables had all that had come."""
        found = []
        for epoch in self.states:
            come = max((e for e in self.touched if e <= epoch), default=0)
            if any(come <= until <= epoch for until in self.settled):
                found.append(epoch)
        return found

    def kept(self) -> list[int]:
        """What the order's past has to hold by now: of each hour and each day the last epoch that was whole."""
        past, found = self.order.past, set()
        for size, seconds in ((HOUR, past.hourly_seconds), (24 * HOUR, past.daily_seconds)):
            for epoch in self.whole():
                later = [e for e in self.whole() if gci_of(e) // size == gci_of(epoch) // size and e > epoch]
                if not later and seconds and self.clock.seconds - gci_of(epoch) <= seconds:
                    found.add(epoch)
        return sorted(found)


@contextmanager
def own_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock of the test's own for all of the lake. Versions that are no kept epochs are told for six hours."""
    clock = Clock()
    monkeypatch.setattr(versions, "_KEEP_SECONDS", 6 * HOUR)
    with world.instead(clock):
        yield clock
