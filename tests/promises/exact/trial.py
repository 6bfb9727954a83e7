"""One run of a feed under random transactions, from tables with rows in them to the verdict."""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.demo.workload import load
from catchment.demo.writers import Session, Writer, Writers
from catchment.model.location import Location
from tests.promises.exact.feedrun import Beside, FeedRun, make_feed
from tests.promises.exact.verdict import Court, Rest, ServerOrder, Verdict
from tests.world.judge import source_rows
from tests.world.new_log_file import begin_new_file
from tests.world.oracle import Oracle
from tests.world.prepared import roll_back_prepared
from tests.world.workload import (
    KEYS,
    XaTransactions,
    create_random_tables,
    random_writers,
)

_KEYS = 100  # of random transactions; loaded rows go beyond them
SHARES = [pytest.param(0.6, marks=pytest.mark.wide), pytest.param(1.0, marks=pytest.mark.long)]
"""How much of its epochs a trial takes in the wide part, and in the long runs."""


class Alter(NamedTuple):
    """What is done to one shard after a number of epochs."""

    epochs: int
    shard: str
    sql: str


class Trial:
    """Tables, writers, feed, settles and readers of one exactness test."""

    def __init__(
        self,
        servers: Mapping[str, PrivateServer],
        schema: str,
        directory: Path,
        *,
        seed: int,
        chunk_rows: int = 3,
        loaded_rows: int = 100,
        rate: float = 4.0,
        lake: Location | None = None,
        copying: Mapping[str, Any] = MappingProxyType({}),
        engine: str = "spark",
    ) -> None:
        self.servers = servers
        self.seed = seed
        self.schema = schema
        self.keys = {f"{schema}.{table}": key for table, key in KEYS.items()}
        create_random_tables(list(servers.values()), schema)
        for index, server in enumerate(servers.values()):
            load(server, schema, loaded_rows, index=index, count=len(servers))
        self.feed = make_feed(
            directory, servers, schema, chunk_rows=chunk_rows, lake=lake, copying=copying, engine=engine
        )
        self.beside = Beside(self.feed)
        self.writers = random_writers(list(servers.values()), schema, seed=seed, rate=rate, keys=_KEYS)
        self.fillers = Writers([])
        self.xa = [XaTransactions(self._xa_session(server), _KEYS) for server in servers.values()]
        self.xa_writers = Writers(
            [
                Writer([self._connector(server)], transact, seed=seed + 500 + number, rate=rate)
                for number, (server, transact) in enumerate(zip(servers.values(), self.xa, strict=True))
            ]
        )
        self.rests: list[Rest] = []
        self.files = Path(str(self.feed.sink.path))  # where the judge finds those of the lake

    def fill(self, table: str, column: str, rate: float = 2.0) -> None:
        """Write values into a column on every shard while it is there."""
        transact = _filler(table, column)
        self.fillers = Writers(
            [
                Writer([self._connector(server)], transact, seed=self.seed + number, rate=rate)
                for number, server in enumerate(self.servers.values())
            ]
        )

    def run(
        self, *, epochs: int, rest_every: int, alters: Sequence[Alter] = (), share: float = 1.0, met: int = 0
    ) -> Verdict:
        """Run the feed for at least this share of the epochs and until all is copied; judge them all. Rests and alters
        come in the same order, whatever the share. `met`: go on until so many settles, readings of each table and XA
        transactions of each shard have happened, too, however fast this machine is."""
        if met:
            self.beside.pause_seconds = 0.3
        steps: list[tuple[float, Alter | None]] = [(share * alter.epochs, alter) for alter in alters]
        steps += [(share * count, None) for count in range(rest_every, epochs + 1, rest_every)]
        steps.sort(key=lambda step: step[0])
        oracles = {name: Oracle.from_rest(s.login(), self.keys) for name, s in self.servers.items()}
        with ExitStack() as stack:
            for server in self.servers.values():
                stack.callback(roll_back_prepared, server)
            stack.enter_context(self.writers)
            stack.enter_context(self.fillers)
            for server in self.servers.values():
                begin_new_file(server)
            run = stack.enter_context(FeedRun(self.feed))
            run.wait_for_epochs(1)  # the first cut waits until nothing is prepared
            stack.enter_context(self.xa_writers)
            stack.enter_context(self.beside)
            for count, alter in steps:
                # Not two rests at one epoch, when waits for locks have let the feed run ahead of the steps.
                run.wait_for_epochs(ceil(count) if alter else max(ceil(count), len(run.epochs) + 2))
                if alter is None:
                    self._rest(run)
                else:
                    self.servers[alter.shard].sql(alter.sql, database=self.schema)
            run.wait("all is copied", lambda done: done[-1].cut.copied and not done[-1].stale)
            run.wait("settles, readers and XA transactions", lambda done: self._has_met(met))
            self._rest(run)
        order = ServerOrder(next(iter(self.servers.values())), "utf8mb4_unicode_ci", 60)
        return Court(self.feed, self.files, self.keys, oracles, order).judge(self.rests, self.beside.readings)

    def _has_met(self, times: int) -> bool:
        read = len(self.beside.readings) >= times * len(self.keys)
        ended = all(min(xa.committed, 4 * xa.rolled_back) >= times for xa in self.xa)
        return self.beside.settles >= times and read and ended

    def _rest(self, run: FeedRun) -> None:
        """Stop the writers, wait for an epoch that holds all that they wrote, SELECT everything."""
        with self.writers.paused(), self.fillers.paused(), self.xa_writers.paused():
            epoch = run.wait_for_log(self.servers).epoch
            rows = {table: source_rows(self.servers, table, key) for table, key in self.keys.items()}
        self.rests.append(Rest(epoch, rows))

    def _connector(self, server: PrivateServer) -> Callable[[], Session]:
        return lambda: server.connect(database=self.schema, init_command="SET innodb_lock_wait_timeout = 1")

    def _xa_session(self, server: PrivateServer) -> Callable[[], Session]:
        # An ALTER waits for what is prepared, and everything else for the ALTER.
        waits = "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"
        return lambda: server.connect(database=self.schema, init_command=waits)


def _filler(table: str, column: str) -> Callable[[Sequence[Session], random.Random], int]:
    """A transaction that sets the column in a few rows; none while the shard has no such column."""
    key = KEYS[table][0]

    def transact(sessions: Sequence[Session], rng: random.Random) -> int:
        with sessions[0].cursor() as cursor:
            low, value = rng.randint(1, _KEYS), rng.choice((None, "1", str(rng.randrange(10**6))))
            try:
                return cursor.execute(
                    f"UPDATE {table} SET {column} = %s WHERE {key} BETWEEN %s AND %s", (value, low, low + 10)
                )
            except pymysql.err.OperationalError as error:
                if error.args[0] != pymysql.constants.ER.BAD_FIELD_ERROR:
                    raise
                return 0

    return transact
