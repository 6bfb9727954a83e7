"""State stores in memory, one for each URL. They outlive the simulated processes that open them."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event

from catchment.model.errors import StateAway
from catchment.state import database
from tests.world.sim.scheduler import SimWorld

Transaction = Callable[[database.Database], AbstractContextManager[Connection]]
# A restart of a server, a failover, and longer than a lease lasts.
_AWAY_SECONDS = (0.3, 2.0, 12.0, 40.0)


class Stores:
    """Stands in the place of `catchment.state.database._engine`."""

    def __init__(self) -> None:
        self._engines: dict[str, Engine] = {}

    def engine(self, url: object) -> Engine:
        """The store of a URL, which is empty at first."""
        name = str(url)
        if name not in self._engines:
            engine = create_engine(
                "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
            )
            engine.dispose = lambda close=True: None  # type: ignore[method-assign]
            event.listen(engine, "connect", _begins_nothing)
            event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
            self._engines[name] = engine
        return self._engines[name]

    def lose(self, file: str) -> None:
        """Remove what the store of a file holds."""
        (engine,) = [one for url, one in self._engines.items() if url.endswith(f"/{file}")]
        with engine.begin() as connection:
            for table in database.metadata.tables:
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")

    def close(self) -> None:
        """Give all connections back."""
        for engine in self._engines.values():
            engine.pool.dispose()


class Outages:
    """Times in which runs get no answer from their stores, in some seeds. One that begins while a transaction commits
    loses the answer alone. It draws from a sequence of its own, so that all else in a seed stays as it was."""

    def __init__(self, world: SimWorld, seed: int) -> None:
        self._world = world
        self._rng = random.Random(f"state stores of {seed}")
        self.are_there = self._rng.random() < 0.3
        self._until = 0.0
        self.count = 0

    def come(self, dangerous: Callable[[], bool]) -> None:
        """Let them come and go for as long as it is dangerous."""
        while dangerous():
            self._world.sleep(self._rng.expovariate(1 / 4.0))
            away = self._rng.choice(_AWAY_SECONDS)
            self._until = self._world.now + away
            self.count += 1
            self._world.sleep(away)
        self._until = 0.0

    def over(self) -> None:
        """The last one ends."""
        self._until = 0.0

    def around(self, transaction: Transaction) -> Transaction:
        """A transaction that may get no answer."""

        @contextmanager
        def broken(of: database.Database) -> Iterator[Connection]:
            self._must_answer()
            with transaction(of) as connection:
                yield connection
            self._must_answer()

        return broken

    def _must_answer(self) -> None:
        if self._world.now < self._until and self._world.process.name.startswith("run"):
            raise StateAway("the simulated store does not answer")


def _begins_nothing(connection: Any, record: Any) -> None:
    """The driver would leave SELECTs outside of transactions."""
    connection.isolation_level = None
