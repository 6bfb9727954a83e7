"""One run of a feed under random transactions, from tables with rows in them to the verdict."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from catchment.demo.server import PrivateServer
from catchment.demo.workload import load
from tests.exact.feedrun import Beside, FeedRun, make_feed
from tests.exact.verdict import Court, Rest, ServerOrder, Verdict
from tests.judge import source_rows
from tests.oracle import Oracle
from tests.workload import KEYS, create_random_tables, random_writers

_LOADED_ROWS = 120
_WRITE_FIRST_SECONDS = 1.0


class Trial:
    """Tables, writers, feed, folds and readers of one exactness test."""

    def __init__(
        self,
        servers: Mapping[str, PrivateServer],
        schema: str,
        directory: Path,
        *,
        seed: int,
        chunk_rows: int = 8,
        rate: float = 20.0,
    ) -> None:
        self.servers = servers
        self.seed = seed
        self.schema = schema
        self.keys = {f"{schema}.{table}": key for table, key in KEYS.items()}
        create_random_tables(list(servers.values()), schema)
        for index, server in enumerate(servers.values()):
            load(server, schema, _LOADED_ROWS, index=index, count=len(servers))
        self.feed = make_feed(directory, servers, schema, chunk_rows=chunk_rows)
        self.beside = Beside(self.feed)
        self.writers = random_writers(list(servers.values()), schema, seed=seed, rate=rate)
        self.rests: list[Rest] = []

    def run(self, *, epochs: int, rest_every: int) -> Verdict:
        """Run the feed for at least so many epochs and until all is copied; judge them all."""
        oracles = {name: Oracle.from_rest(s.login(), self.keys) for name, s in self.servers.items()}
        with ExitStack() as stack:
            stack.enter_context(self.writers)
            time.sleep(_WRITE_FIRST_SECONDS)
            run = stack.enter_context(FeedRun(self.feed))
            stack.enter_context(self.beside)
            for count in range(rest_every, epochs + 1, rest_every):
                run.wait_for_epochs(count)
                self._rest(run)
            run.wait("all is copied", lambda done: all(p.done for p in done[-1].progress))
            self._rest(run)
        order = ServerOrder(next(iter(self.servers.values())), "utf8mb4_unicode_ci", 60)
        return Court(self.feed, self.keys, oracles, order).judge(self.rests, self.beside.readings)

    def _rest(self, run: FeedRun) -> None:
        """Stop the writers, wait for an epoch that holds all that they wrote, SELECT everything."""
        with self.writers.paused():
            epoch = run.wait_for_log(self.servers).epoch
            rows = {table: source_rows(self.servers, table, key) for table, key in self.keys.items()}
        self.rests.append(Rest(epoch, rows))
