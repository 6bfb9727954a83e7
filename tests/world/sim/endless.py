"""A feed that nothing disturbs, epoch after epoch: what its run remembers, and what its state store holds."""

import gc
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import catchment
from catchment import world as door
from catchment.model.order import Action, Order
from catchment.model.table import TableId
from catchment.source import stored_at
from catchment.state import database, orders
from catchment.state.store import Store
from tests.world.sim import scheduler
from tests.world.sim.scheduler import Process
from tests.world.sim.server import SCHEMA, Server
from tests.world.sim.simulation import Attempt, Simulation

_PACKAGE = str(Path(catchment.__file__).parent / "*")
# How many epochs of the past the sink and the servers of the simulation keep, which are no part of the run.
_KEPT = 300
# Epochs between two of these.
_ROTATIONS, _TRUNCATES, _COPIES, _MISTAKEN = 40, 97, 211, 31


@dataclass(frozen=True)
class Remembered:
    """Bytes that were allocated in the package's own lines, and rows and bytes of the state store by table."""

    nbytes: int
    rows: dict[str, int]
    stored: int


@dataclass
class Endless(Simulation):
    """Shards whose clients write all the time, rotate, purge and truncate, while tables are copied again by order.
    `at` is called with the number of each epoch."""

    at: Callable[[int], None] = lambda epoch: None
    done: int = 0

    def run_for(self, epochs: int) -> None:
        """Let the feed commit so many epochs."""
        stored_at.forget()
        self.nemesis.dangerous = False
        outside = Process("world")
        with pytest.MonkeyPatch.context() as patch, door.instead(self.world), self._surroundings():
            patch.setattr(scheduler, "_SECONDS_MAX", 1e12)
            self._begin()
            (attempt,) = self.attempts
            attempt.storage.on_epoch = lambda manifest: self._committed(attempt, manifest)
            for server in self.servers:
                server.kills_dumps = False
                self.world.spawn(outside, f"clients of {server.name}", partial(self._write, server))
            process = Process("run 0")
            job = self._started(process, attempt, until_caught_up=False)

            def operate() -> None:
                self.world.wait(lambda: job.over or self.done >= epochs, None)
                if job.error is not None:
                    raise job.error
                self.world.kill(process)
                self.world.wait(lambda: job.over, None)

            self.world.run(self.world.spawn(outside, "operator", operate))

    def remembered(self) -> Remembered:
        """As of now."""
        gc.collect()
        taken = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, _PACKAGE)])
        nbytes = sum(one.size for one in taken.statistics("filename"))
        engine = self._stores.engine(self.attempts[0].feed.state.get_secret_value())
        with engine.connect() as connection:
            names = [table.name for table in database.metadata.sorted_tables]
            rows = {n: connection.execute(text(f"SELECT COUNT(*) FROM {n}")).scalar_one() for n in names}
            stored = connection.execute(
                text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            )
            return Remembered(nbytes, rows, int(stored.scalar_one()))

    def _write(self, server: Server) -> None:
        rng, turn = self.world.rng, 0
        while True:
            self.world.sleep(rng.expovariate(1.0))
            turn += 1
            table, key = rng.choice(("t", "u")), rng.randrange(60)
            dies = key in server.tables[table].logged and rng.random() < 0.4
            server.commit(((table, key, None if dies else self._row(server, table, key)),), hold=0.0)
            server.settle_all()
            if turn % _ROTATIONS == 0:
                server.rotate()
                server.purge(server.files[-1].number - 1)
                del server.history.groups[:-_KEPT]
            if turn % _TRUNCATES == 0:
                server.truncate("u", parts=turn % (2 * _TRUNCATES) == 0)
                server.commit((("t", key, self._row(server, "t", key)),), hold=0.0)
                server.settle_all()

    def _row(self, server: Server, table: str, key: int) -> tuple[int | None, ...]:
        return key, *(self.world.rng.randrange(1000) for _ in server.tables[table].columns[1:])

    def _committed(self, attempt: Attempt, manifest: Any) -> None:
        self.done += 1
        storage = attempt.storage
        del storage.epochs[:-_KEPT]
        del attempt.checker.planned[:-_KEPT]
        storage.files.clear()
        for copy, held in list(storage.tables.items()):
            if len(held.versions) > _KEPT:
                held.versions[-_KEPT] = {}
            if copy[1] not in {shape.generation for shape in manifest.followed}:
                del storage.tables[copy]
        if self.done % _COPIES == 0:
            self._order(attempt, Action.START, TableId(SCHEMA, "t"))
        if self.done % _MISTAKEN == 0:
            self._order(attempt, Action.START, TableId(SCHEMA, f"no_{self.done}"))
        for one in manifest.stale:
            if one.waits and not one.asked:
                self._order(attempt, Action.START, one.table)
        self.at(self.done)

    def _order(self, attempt: Attempt, action: Action, table: TableId) -> None:
        with closing(Store.open(attempt.feed.state.get_secret_value(), attempt.feed.name)) as store:
            orders.give(store, Order(action, "operator", self.world.now_us(), table))
