"""A storm: a feed under load, and DDL of every kind on its shards, until so many epochs are there to judge.

A kind comes again when all have been. A statement often reaches the second shard some epochs behind the first.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

import pymysql
import yaml

from catchment.config import load
from catchment.demo.server import PrivateServer
from catchment.model.epoch import Manifest
from catchment.model.table import TableId
from tests.promises.exact.feedrun import Beside, FeedRun, make_feed
from tests.promises.exact.verdict import Court, Rest, ServerOrder, Verdict
from tests.promises.storm import tables
from tests.promises.storm.indexes import broken_index, rebuilding
from tests.promises.storm.kinds import ALTERS, Kind, swapped
from tests.promises.storm.load import Load
from tests.promises.storm.replay import Marked, Replay
from tests.promises.storm.sight import Sight, see
from tests.promises.storm.swaps import Swap
from tests.world.judge import Rows, source_rows
from tests.world.prepared import roll_back_prepared
from tests.world.servers.chosen import on_mysql

_REST_EVERY = 6
_FIRST = ("add_null", "add_two", "add_index")  # others change or drop what these add
Deed = Callable[[], bool]
"""Does something to a table of every shard; False where no table is such that it can be done."""


def _exact(manifest: Manifest, standing: set[TableId]) -> bool:
    return manifest.cut.copied and not manifest.stale and manifest.tables == standing


class Storm:
    """The tables, the load, the feed and what was done to them. `swaps`: the tools that swap tables."""

    def __init__(
        self,
        servers: Mapping[str, PrivateServer],
        schema: str,
        directory: Path,
        swaps: Mapping[str, Swap],
        seed: int,
    ) -> None:
        self.servers, self.schema, self.seed = servers, schema, seed
        tables.make_tables(servers, schema)
        make_feed(directory, servers, schema, chunk_rows=40, interval="600ms")
        file = directory / "feed.yaml"
        described = yaml.safe_load(file.read_text())
        described |= {"tables": [f"{schema}.*", f"!{schema}._*"], "new_tables": "carry", "engine": "local"}
        file.write_text(yaml.safe_dump(described))
        self.feed = load(file)
        self.done: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._beside = Beside(self.feed)
        self._load = Load(servers, schema, tables.WRITTEN, seed)
        self._marked = Marked(tables.replayed(schema))
        self._rests: list[Rest] = []
        self.deeds: dict[str, Deed] = {
            **{name: self._altering(kind) for name, kind in ALTERS.items()},
            **{name: self._swapping(name, swap) for name, swap in swaps.items()},
            "drop_and_create": self._drop_and_create,
            "rename_and_back": self._rename_and_back,
            "exchange_partition": self._exchange_partition,
            "create": self._create,
            "drop": self._drop,
            "view": self._view,
        }
        if not on_mysql():
            self.deeds["create_or_replace"] = self._create_or_replace

    def blow(self, epochs: int, kinds: Collection[str]) -> Verdict:
        """Let these kinds blow for so many epochs, and until each was done; judge all epochs."""
        print(f"a storm of seed {self.seed}")
        oracles = {shard: self._replay(server) for shard, server in self.servers.items()}
        with ExitStack() as stack:
            for server in self.servers.values():
                stack.callback(roll_back_prepared, server)
            stack.enter_context(self._load.blowing())
            self._run = stack.enter_context(FeedRun(self.feed))
            self._wait(1)
            stack.enter_context(self._load.xa())
            stack.enter_context(self._beside)
            while not self._blown(epochs, kinds):
                self._round(kinds, lambda: self._blown(epochs, kinds))
            standing = self._standing()
            self._run.wait(f"{standing} are copied", lambda done: _exact(done[-1], standing))
            self._rest()
        order = ServerOrder(next(iter(self.servers.values())), "utf8mb4_unicode_ci", 60)
        court = Court(self.feed, Path(str(self.feed.sink.path)), tables.judged(self.schema), oracles, order)
        return court.judge(self._rests, self._beside.readings)

    def _standing(self) -> set[TableId]:
        """The tables that the feed has to have when nothing is altered any more: then each stands on all shards."""
        first = next(iter(self.servers.values()))
        found = (TableId.parse(table) for table in tables.judged(self.schema))
        return {table for table in found if see(first, self.schema, table.name)}

    def _blown(self, epochs: int, kinds: Collection[str]) -> bool:
        return len(self._run.epochs) >= epochs and self.done.keys() >= set(kinds)

    def _round(self, kinds: Collection[str], enough: Callable[[], bool]) -> None:
        """Every one of these kinds once, as far as there are tables for it; first those that have been done least, so
        that a kind for which there was no table comes first in the next round."""
        names = sorted(kinds, key=lambda name: (self.done[name], name not in _FIRST, self._rng.random()))
        for number, name in enumerate(names, 1):
            self.done[name] += self.deeds[name]()
            self.done = +self.done
            self._wait(self._rng.randint(0, 1))
            if self._rng.random() < 0.5:  # else mistakes about a table hide behind the one that made it stale
                self._run.wait("nothing is stale", lambda done: not done[-1].stale)
            if number % _REST_EVERY == 0:
                self._rest()
            if enough():
                return

    def _rest(self) -> None:
        """Hold the load, wait for an epoch that holds all that was written, SELECT everything."""
        with self._load.paused():
            epoch = self._run.wait_for_log(self.servers).epoch
            rows = {table: self._rows(table, key) for table, key in tables.judged(self.schema).items()}
        self._rests.append(Rest(epoch, rows))

    def _rows(self, table: str, key: tuple[str, ...]) -> Rows:
        name = table.split(".")[1]
        there = {shard: one for shard, one in self.servers.items() if see(one, self.schema, name)}
        return source_rows(there, table, key)

    def _replay(self, server: PrivateServer) -> Replay:
        keys = tables.replayed(self.schema)
        there = {table: key for table, key in keys.items() if see(server, self.schema, table.split(".")[1])}
        replay = Replay.from_rest(server.login(), there)
        assert isinstance(replay, Replay)
        replay.follow(keys, self._marked)
        return replay

    def _wait(self, epochs: int) -> None:
        self._run.wait_for_epochs(len(self._run.epochs) + epochs)

    def _everywhere(self, what: str, *deeds: Callable[[PrivateServer], None]) -> None:
        """Do it on every shard. Of several deeds, all on one shard after the other, or one after the other on all."""
        shards = self._rng.sample(list(self.servers), len(self.servers))
        steps = [(shard, deed) for deed in deeds for shard in shards]
        if self._rng.random() < 0.5:
            steps.sort(key=lambda step: shards.index(step[0]))
        for shard, deed in steps:
            print(f"{len(self._run.epochs)} {shard}: {what}")
            deed(self.servers[shard])
            self._wait(self._rng.choice((0, 0, 1, 2)))

    def _tables(self, *without: str) -> list[Sight]:
        """The tables that are there, in any order."""
        names = [name for name in tables.KEYS if name not in without]
        first = next(iter(self.servers.values()))
        seen = (see(first, self.schema, name) for name in self._rng.sample(names, len(names)))
        return [one for one in seen if one is not None]

    def _altering(self, kind: Kind) -> Deed:
        def alter() -> bool:
            for seen in self._tables():
                statement = kind(seen, self._rng)
                if statement is not None:
                    self._everywhere(statement, self._marking(seen, statement))
                    return True
            return False

        return alter

    def _marking(self, seen: Sight, statement: str, *beside: str) -> Callable[[PrivateServer], None]:
        table = f"{self.schema}.{seen.name}"

        def run(server: PrivateServer) -> None:
            try:
                self._marked.run(server, table, statement, beside)
            except pymysql.err.OperationalError as error:
                if (broken := broken_index(error)) is None:
                    raise
                print(f"the server's own index {broken} of {table} is broken: it is built again")
                for rebuild in rebuilding(broken, seen):
                    self._marked.run(server, table, rebuild)
                self._marked.run(server, table, statement, beside)

        return run

    def _sql(self, *statements: str) -> Callable[[PrivateServer], None]:
        def run(server: PrivateServer) -> None:
            server.sql(*statements, database=self.schema)

        return run

    def _swapping(self, name: str, swap: Swap) -> Deed:
        def deed() -> bool:
            seen = self._tables(tables.TRIGGERED)[0]
            alter = swapped(seen, self._rng)
            self._everywhere(
                f"{name}: {seen.name} {alter}", lambda server: swap(server, self.schema, seen.name, alter)
            )
            return True

        return deed

    def _drop_and_create(self) -> bool:
        seen = self._tables(tables.TRIGGERED)[0]
        self._everywhere(
            f"DROP, CREATE {seen.name}", self._sql(f"DROP TABLE {seen.name}"), self._sql(seen.made)
        )
        return True

    def _create_or_replace(self) -> bool:
        seen = self._tables(tables.TRIGGERED)[0]
        self._everywhere(
            f"CREATE OR REPLACE {seen.name}",
            self._marking(seen, seen.made.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1)),
        )
        return True

    def _rename_and_back(self) -> bool:
        seen = self._tables(tables.TRIGGERED)[0]
        away = self._rng.choice(tables.away(seen.name))
        there, back = f"RENAME TABLE {seen.name} TO {away}", f"RENAME TABLE {away} TO {seen.name}"
        self._everywhere(f"{there}, and back", self._sql(there), self._sql(back))
        return True

    def _exchange_partition(self) -> bool:
        seen = next((one for one in self._tables() if one.ranges), None)
        if seen is None:
            return False
        partition, bound = self._rng.choice([(name, bound) for name, bound in seen.ranges if bound])
        side = tables.beside(seen.name)
        make = self._sql(
            f"CREATE TABLE {side} LIKE {seen.name}",
            f"ALTER TABLE {side} REMOVE PARTITIONING",
            f"INSERT INTO {side} (id, k, what) VALUES ({bound - 1}, 1, 'exchanged')",
        )
        exchange = f"ALTER TABLE {seen.name} EXCHANGE PARTITION {partition} WITH TABLE {side}"
        # A table with columns that came without a copy is not exchanged.
        self._everywhere(
            exchange,
            self._marking(seen, f"ALTER TABLE {seen.name} FORCE"),
            make,
            self._marking(seen, exchange, side),
            self._sql(f"DROP TABLE {side}"),
        )
        return True

    def _create(self) -> bool:
        standing = {seen.name for seen in self._tables()}
        missing = [name for name in tables.NOTES if name not in standing]
        for name in missing[:1]:
            self._everywhere(f"CREATE TABLE {name}", self._sql(tables.MADE.format(name)))
        return bool(missing)

    def _drop(self) -> bool:
        standing = [seen.name for seen in self._tables() if seen.name in tables.NOTES]
        for name in standing[:1]:
            self._everywhere(f"DROP TABLE {name}", self._sql(f"DROP TABLE {name}"))
        return bool(standing)

    def _view(self) -> bool:
        name = self._tables()[0].name
        self._everywhere(
            f"a view of {name}",
            self._sql(f"CREATE OR REPLACE VIEW _seen AS SELECT * FROM {name}", "DROP VIEW _seen"),
        )
        return True
