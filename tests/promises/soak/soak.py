"""A shop's feed for as long as a test likes: visitors on two shards, and everything around it fails in turn.

The feed is the real command, its lake is in an S3 server, its state store in a PostgreSQL. Whatever happens, the run
does not end but by who stops it, and everything heals by itself or by the one command that the docs name.
"""

import os
import random
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pymysql
import yaml

from catchment.config import Feed, load
from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session, Writer, Writers
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import parse_epoch
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.exact.verdict import Court, Rest, ServerOrder, Verdict
from tests.promises.soak import shop
from tests.promises.soak.succession import Succession
from tests.world.judge import source_rows
from tests.world.patience import until
from tests.world.s3.bucket import Bucket
from tests.world.s3.server import S3Server
from tests.world.servers.postgres import PrivatePostgres
from tests.world.told import ToldRun

SCHEMA = "shop"
USER = "reader"
_RATE = 12.0  # visitors of each shard in a second
_FIRST_ID = 151


@dataclass(frozen=True)
class Sizes:
    """What a feed takes: MB of its process, KB of its state store, objects of its lake beside the tables' own."""

    memory: int
    store: int
    objects: int


class Soak:
    """The shop, its feed and its judges."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        store: PrivatePostgres,
        s3: S3Server,
        bucket: Bucket,
        stack: ExitStack,
    ) -> None:
        self.file = directory / "feed.yaml"
        self.chance = random.Random(seed)
        self.store, self.s3 = store, s3
        self.said: list[str] = []
        self.sizes: list[Sizes] = []
        self.rests: list[Rest] = []
        self._bucket = bucket
        self._stack = stack
        self._passwords = directory
        self._servers = 0
        self._columns = 0
        self.added: dict[str, list[str]] = {table: [] for table in shop.KEYS}
        self.servers = {shard: self.server() for shard in ("-80", "80-")}
        self.judges = {shard: Succession(SCHEMA) for shard in self.servers}
        for shard, server in self.servers.items():
            server.sql(f"CREATE DATABASE {SCHEMA}")
            server.sql(*shop.MADE, database=SCHEMA)
            with server.connect(database=SCHEMA) as session:
                shop.filled(session, self.chance)
            self.let_in(shard)
            self.judges[shard].comes(server)
        self.describe()
        self.writers = Writers(
            [
                Writer([self._visitor(shard)], shop.visit, seed=seed + number, rate=_RATE, reconnect=True)
                for number, shard in enumerate(self.servers)
            ]
        )
        self.run: ToldRun = self._started()

    def server(self) -> PrivateServer:
        """Another server, whose log has a name of its own."""
        self._servers += 1
        server = PrivateServer(
            server_id=_FIRST_ID + self._servers,
            settings={"log_bin": f"log{self._servers}", "max_binlog_size": 262144},
        )
        return self._stack.enter_context(server)

    def let_in(self, shard: str) -> str:
        """Give the feed's user another password, and the file of it; what the file has to say. Sessions stay."""
        server, password = self.servers[shard], secrets.token_hex(8)
        ((whole,), *_) = server.sql("SHOW GRANTS FOR catchment")
        privileges = str(whole).removeprefix("GRANT ").partition(" ON ")[0]
        server.sql(
            f"CREATE OR REPLACE USER {USER} IDENTIFIED BY '{password}'",
            f"GRANT {privileges} ON *.* TO {USER}",
        )
        self.password_file(shard).touch()
        if not self.password_file(shard).read_text():
            self.password_file(shard).write_text(password)
        return password

    def password_file(self, shard: str) -> Path:
        """Where a shard's password is."""
        return self._passwords / f"password{shard}"

    def describe(self) -> Feed:
        """Write the feed file, with the servers as they are now."""
        shards = [
            {
                "name": shard,
                "host": server.host,
                "port": server.port,
                "user": USER,
                "password": {"file": str(self.password_file(shard))},
            }
            for shard, server in self.servers.items()
        ]
        described = {
            "name": "soak",
            "source": {"keyspace": "shop", "shards": shards},
            "tables": [f"{SCHEMA}.*", f"!{SCHEMA}._*"],
            "sink": {"path": f"s3://{self._bucket.name}/lake", "settle": "10s", "changes": True},
            "state": self.store.store_url,
            "epoch": {"interval": "1500ms", "tick": "50ms"},
            "copy": {"chunk_rows_max": 40},
            "engine": "local",
        }
        self.file.write_text(yaml.safe_dump(described))
        return load(self.file)

    def command(self, name: str, *options: str) -> int:
        """Run a command of the feed to its end; its exit code."""
        words = [name] if name != "dump" else [name, options[0]]
        rest = options if name != "dump" else options[1:]
        ended = subprocess.run(
            [sys.executable, "-m", "catchment.cli.main", *words, str(self.file), *rest],
            capture_output=True,
            text=True,
            check=False,
        )
        self.said.append(
            f"{name} {' '.join(options)}: {ended.returncode} {(ended.stdout + ended.stderr)[-400:]}"
        )
        return ended.returncode

    def newest(self) -> Manifest | None:
        """The newest epoch; None before the first one."""
        row = EpochsTable(load(self.file).sink.path, "soak").newest()
        return None if row is None else row.manifest

    def goes_on(self) -> None:
        """Wait for an epoch that begins now."""
        ends = self.log_ends()
        self.run.wait_for_log(ends)

    def log_ends(self) -> dict[str, tuple[str, int]]:
        """Where the shards' logs end."""
        return {shard: server.log_end() for shard, server in self.servers.items()}

    def heals(self) -> None:
        """Wait until every table is followed. Whoever stops the feed's run meanwhile begins it again."""

        def stale() -> list[str]:
            self.must_run()
            manifest = self.newest()
            if manifest is None:
                return ["nothing"]
            return [f"{one.table}: {one.reason}" for one in manifest.stale]

        until("every table is followed", lambda: not stale(), every=0.3, seen=stale)

    def must_run(self) -> None:
        """The run has not ended by itself."""
        code = self.run.process.poll()
        assert code is None, f"the run ended with {code}: {self.run.said.read_text()[-3000:]}"

    def again(self) -> None:
        """Start the run, which has ended."""
        self.run = self._started()

    def rest(self) -> None:
        """Hold the visitors, wait for an epoch with all that they did, SELECT everything."""
        self.heals()
        with self.writers.paused():
            event = self.run.wait_for_log(self.log_ends())
            keys = {f"{SCHEMA}.{table}": key for table, key in shop.KEYS.items()}
            rows = {table: source_rows(self.servers, table, key) for table, key in keys.items()}
        row = EpochsTable(load(self.file).sink.path, "soak").at(parse_epoch(event["epoch"]))
        assert row is not None, event
        self.rests.append(Rest(row.manifest.epoch, rows))
        self.sizes.append(self._sizes())

    def verdict(self) -> Verdict:
        """Judge all epochs; the run has ended."""
        order = ServerOrder(next(iter(self.servers.values())), "utf8mb4_unicode_ci", 60)
        keys = {f"{SCHEMA}.{table}": key for table, key in shop.KEYS.items()}
        files = self.s3.root / self._bucket.name / "lake"
        return Court(load(self.file), files, keys, self.judges, order).judge(self.rests, [])

    def _started(self) -> ToldRun:
        return ToldRun(self.file, environment=os.environ)

    def _visitor(self, shard: str) -> Callable[[], Session]:
        def connect() -> Session:
            session = self.servers[shard].connect(database=SCHEMA, connect_timeout=2)
            with session.cursor() as cursor:
                cursor.execute("SET innodb_lock_wait_timeout = 2")
            return session

        return connect

    def _sizes(self) -> Sizes:
        status = Path(f"/proc/{self.run.pid}/status").read_text()
        memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        store = int(
            self.store.sql("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r'")
        )
        ours = self.s3.root / self._bucket.name / "lake" / "_catchment"
        return Sizes(memory // 1024, store // 1024, sum(1 for one in ours.rglob("*") if one.is_file()))


@contextmanager
def soaked(soak: Soak) -> Iterator[Mapping[str, PrivateServer]]:
    """The shop is open inside the block, and its feed runs."""
    try:
        with soak.writers:
            soak.heals()
            yield soak.servers
            soak.rest()
        soak.run.process.terminate()
        soak.run.ended()
    finally:
        soak.run.kill()


def end_sessions(server: PrivateServer, user: str) -> None:
    """KILL all sessions of a user."""
    for (number,) in server.sql(f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{user}'"):
        try:
            server.sql(f"KILL {number}")
        except pymysql.err.MySQLError:
            continue  # it has ended by itself
