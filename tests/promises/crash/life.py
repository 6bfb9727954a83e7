"""The life of a small feed: its tables, writers, runs of the real command, and the judge at the end."""

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pymysql
import yaml
from pymysql.connections import Connection

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.config import Feed, load
from catchment.demo.server import PrivateServer
from catchment.feed.dump import dump
from catchment.model.errors import LEFT_BEHIND
from catchment.model.location import Location, ObjectPath
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epoch_app, table_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.upkeep.attempt import LIGHT_BYTES
from catchment.state.faults import VARIABLE
from tests.layers.sink.lakes import files_of
from tests.world.batch import BATCHES, execute_together
from tests.world.canonical import canonical_row, key_of
from tests.world.judge import compare, lake_rows, source_rows
from tests.world.patience import PATIENCE_SECONDS, ran_out
from tests.world.told import PROGRAM, Ended, ToldRun

Servers = Mapping[str, PrivateServer]

NAMED_MAX = 10
RENEWALS_MAX = 10
PAUSE_SECONDS = 0.1
BORN_BELOW = 500  # keys that a life gives rows, so that a table does not grow for as long as a slow run takes
_KEYS = (("id",), ("a", "b"), ("name",))
_COLUMNS = (
    "id INT PRIMARY KEY, v INT, s VARCHAR(60)",
    "a INT, b INT, v INT, s VARCHAR(60), PRIMARY KEY (a, b)",
    "name VARCHAR(20) COLLATE utf8mb4_unicode_ci PRIMARY KEY, v INT, s VARCHAR(60)",
)


@dataclass(frozen=True)
class Command:
    """A command that runs in a process of its own, and the file of what it says."""

    process: "subprocess.Popen[bytes]"
    output: Path

    def ended(self) -> Ended:
        """Wait for its end."""
        try:
            code = self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            ran_out(f"a command ends: {self.output.read_text()}")
        return Ended(code, self.output.read_text())


class Life:
    """A feed of `count` tables with integer, composite and string keys in turn, all in one schema. `store`: the address
    of the lake, and the directory where that store has its objects as files. `live` makes it: in this process its tasks
    run one after another (`engine: local`)."""

    def __init__(
        self,
        directory: Path,
        servers: Servers,
        schema: str,
        *,
        count: int = 3,
        store: tuple[ObjectPath, Path] | None = None,
    ) -> None:
        self.servers = servers
        self.schema = schema
        self.directory = directory
        self.file = directory / "feed.yaml"
        self.lake = directory / "lake"  # as files, wherever the feed has it
        self.path: Location = self.lake
        if store is not None:
            self.path, self.lake = store
        self.state = directory / "state.db"
        self.keys = {f"{schema}.t{number:02}": _KEYS[number % 3] for number in range(count)}
        for server in servers.values():
            server.sql(*(f"CREATE TABLE {t} ({_COLUMNS[n % 3]})" for n, t in enumerate(self.keys)))
        self.environment: dict[str, str] = {}  # of its commands, beside that of this process
        self._commands = 0
        self._told: list[ToldRun] = []
        self.describe()

    def move_lake(self, lake: Path) -> None:
        """Give the lake another directory."""
        self.path = self.lake = lake
        self.describe()

    def describe(self, at: Mapping[str, Mapping[str, Any]] | None = None, **settings: Any) -> Feed:
        """Write the feed file. `at`: how shards differ from their servers; `settings`: top-level keys."""
        shards = [
            {
                "name": name,
                "host": server.host,
                "port": server.port,
                "user": "catchment",
                "password": server.password,
                **(at or {}).get(name, {}),
            }
            for name, server in self.servers.items()
        ]
        described = {
            "name": "life",
            "source": {"keyspace": "shop", "shards": shards},
            "tables": [f"{self.schema}.*"],
            "sink": {"path": str(self.path)},
            "state": str(self.state),
            "epoch": {"interval": "200ms", "tick": "50ms"},
            "copy": {"chunk_rows_max": 20, "group_time": "0s"},
            "engine": "local",
            **settings,
        }
        self.file.write_text(yaml.safe_dump(described))
        return load(self.file)

    @property
    def settled_late(self) -> dict[str, Any]:
        """The sink, of which nothing is settled before the end of a run."""
        return {"path": str(self.path), "settle": "1h"}

    def settled(self, table: str) -> int:
        """The epoch that a plain table is, 0 where there is none."""
        plain = DeltaLog(table_dir(self.lake, TableId.parse(table))).newest()
        return plain.transactions[epoch_app("life", TableId.parse(table))] if plain is not None else 0

    def make_large(self) -> None:
        """A file without blocks, as of an attempt that was lost: settles take a process from now on."""
        directory = table_dir(self.lake, TableId.parse(next(iter(self.keys))))
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / "lost.parquet").open("wb") as file:
            file.truncate(LIGHT_BYTES + 1)

    @property
    def feed(self) -> Feed:
        """The feed as its file has it now."""
        return load(self.file)

    def load(self, rows: int) -> None:
        """So many rows in every table of every shard; keys are the same on all shards."""
        for server in self.servers.values():
            for number, table in enumerate(self.keys):
                values = ", ".join(_row(number, row, row, "loaded") for row in range(rows))
                server.sql(f"INSERT INTO {table} VALUES {values}")

    def touch(self, step: int, *, shard: str | None = None) -> None:
        """One transaction per shard that changes a few rows of every table, keys too."""
        for name, server in self.servers.items():
            if shard in (None, name):
                connection = server.connect(autocommit=False, **BATCHES)
                try:
                    self._transact(connection, random.Random(f"{name} {step}"), step)
                finally:
                    connection.close()

    def run(self, *options: str) -> int:
        """`catchment run` in this process, until caught up; the exit code. Its log has warnings and errors alone."""
        return execute(["run", str(self.file), "--until-caught-up", "--quiet", *options])

    def waiting(self) -> dict[str, str]:
        """The tables that wait for an order to be copied again, and why."""
        newest = EpochsTable(self.lake, "life").newest()
        assert newest is not None
        return {str(one.table): one.reason for one in newest.manifest.stale if one.waits and not one.asked}

    def copy_again(self) -> None:
        """Order new copies of them, and run until no table is stale."""
        dump(self.file, "start", wait=0)
        for step in range(RENEWALS_MAX):
            self.touch(1_000 + step)
            assert self.run() in (0, LEFT_BEHIND)
            newest = EpochsTable(self.lake, "life").newest()
            assert newest is not None
            if not newest.manifest.stale:
                return
        raise AssertionError("tables are still stale")

    def told(self, *options: str, fault: str = "", program: str = PROGRAM) -> ToldRun:
        """Start `catchment run` in a process of its own, which tells its events; `fault` as in state/faults.py."""
        run = ToldRun(self.file, *options, fault=fault, environment=self.environment, program=program)
        self._told.append(run)
        return self._told[-1]

    def kill_told(self) -> None:
        """End the runs that are still there, since a test failed."""
        for run in self._told:
            run.kill()

    def command(self, *arguments: str, fault: str = "") -> Ended:
        """A command in a process of its own; `fault` as in state/faults.py."""
        return self.start(*arguments, fault=fault).ended()

    def start(self, *arguments: str, fault: str = "") -> "Command":
        """Start a command, e.g. `run --until-caught-up`, with the feed file behind its name."""
        name, *options = arguments
        self._commands += 1
        # No pipe: what a killed driver leaves behind (Java, a settle) would keep it open.
        output = self.directory / f"output.{self._commands}"
        with output.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "catchment.cli.main", name, str(self.file), *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment, VARIABLE: fault},
                process_group=0,  # signals may be sent to all of it, as a terminal does
            )
        return Command(process, output)

    def must_be_exact(self, table_filter: str = "") -> None:
        """Lake and source are equal, row by row, and no key stands twice; nobody may write meanwhile."""
        self.must_hold_no_key_twice()
        lines: list[str] = []
        for table, key in self.keys.items():
            if table_filter in table:
                lake = lake_rows(read(self.feed, table).arrow().to_pylist(), key)
                lines += [f"{table} {line}" for line in compare(lake, source_rows(self.servers, table, key))]
        assert not lines, "\n".join(lines[:NAMED_MAX])

    def must_hold_no_key_twice(self) -> None:
        """In the base of every table each (shard, key) stands once; epochs have no gap."""
        rows = EpochsTable(self.lake, "life").read_all()
        for before, row in pairwise(rows):
            assert row.manifest.previous == before.manifest.epoch
        for table, key in self.keys.items():
            places: Counter[tuple[Any, ...]] = Counter()
            for file in files_of(read(self.feed, table)).base:
                place = file.replace(str(self.path), str(self.lake), 1)
                for record in pq.ParquetFile(place).read().to_pylist():
                    places[record["_shard"], *key_of(canonical_row(record), key)] += 1
            assert not [place for place, times in places.items() if times > 1], table

    def _transact(self, connection: "Connection[Any]", dice: random.Random, step: int) -> None:
        statements = []
        for number, table in enumerate(self.keys):
            key = _KEYS[number % 3][-1]
            old, new, moved = dice.randrange(150), dice.randrange(200, BORN_BELOW), dice.randrange(150)
            statements += [
                f"REPLACE INTO {table} VALUES {_row(number, new, step, 'born')}",
                f"UPDATE {table} SET v = {step}, s = 'changed' WHERE {_at(number, old)}",
                f"DELETE FROM {table} WHERE {_at(number, dice.randrange(150))}",
                f"UPDATE IGNORE {table} SET {key} = {_key(number, moved + 100_000 + step)}"
                f" WHERE {_at(number, moved)}",
            ]
        with connection.cursor() as cursor:
            execute_together(cursor, statements)
        connection.commit()


def ends(servers: Servers) -> dict[str, tuple[str, int]]:
    """Where the logs of shards end now."""
    return {name: server.log_end() for name, server in servers.items()}


def goes_on_without(run: ToldRun, shard: str, servers: Servers) -> None:
    """Wait until an epoch without a shard has all that is in the logs of the others now."""
    others = {name: server for name, server in servers.items() if name != shard}
    run.wait_for_log(ends(others), absent=[shard])


@contextmanager
def written(life: Life, *, shard: str | None = None) -> Iterator[None]:
    """Transactions on one or all shards of a life while the block runs."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        step = 0
        try:
            while not stop.wait(PAUSE_SECONDS):
                life.touch(step, shard=shard)
                step += 1
        except pymysql.err.MySQLError as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="writer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failed, failed[0]


def _key(number: int, value: int) -> str:
    return f"'k{value:06}'" if number % 3 == 2 else str(value)


def _row(number: int, key: int, v: int, text: str) -> str:
    first = f"{key % 7}, {key}" if number % 3 == 1 else _key(number, key)
    return f"({first}, {v}, '{text} {key}')"


def _at(number: int, key: int) -> str:
    if number % 3 == 1:
        return f"a = {key % 7} AND b = {key}"
    return f"{_KEYS[number % 3][0]} = {_key(number, key)}"
