"""Every vgtid is one exact state: also while rows are copied, and wherever a killed client goes on."""

import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

import catchment
from catchment.config import CopyConfig
from catchment.demo.server import PrivateServer
from catchment.demo.workload import KEYS, load
from catchment.demo.writers import Writer, Writers
from catchment.serve.stream.events import VGtid
from tests.promises.stream.conftest import Servers
from tests.promises.stream.judged import StreamCourt
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import copies_done, source_of
from tests.world.judge import source_rows
from tests.world.prepared import roll_back_prepared
from tests.world.workload import XaTransactions, create_random_tables, random_writers
from tests.world.written_on import written_on

_ROWS = 300
_KEYS = 100


def _xa_writers(servers: Mapping[str, PrivateServer], schema: str) -> Writers:
    waits = "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"

    def connector(server: PrivateServer) -> Callable[[], Any]:
        return lambda: server.connect(database=schema, init_command=waits)

    return Writers(
        [
            Writer([connector(server)], XaTransactions(connector(server), _KEYS), seed=500 + number, rate=4.0)
            for number, server in enumerate(servers.values())
        ]
    )


class Alters:
    """Statements on random tables of random shards, one every few vgtids."""

    def __init__(self, servers: Mapping[str, PrivateServer], schema: str, rng: random.Random) -> None:
        self.servers, self.schema, self.rng = list(servers.values()), schema, rng
        self.number = 0
        self.added: dict[tuple[PrivateServer, str], list[str]] = {}

    def __call__(self) -> None:
        server, table = self.rng.choice(self.servers), self.rng.choice(list(KEYS))
        mine = self.added.setdefault((server, table), [])
        self.number += 1
        if mine and self.rng.random() < 0.3:
            statement = f"ALTER TABLE {table} DROP COLUMN {mine.pop()}"
        elif mine and self.rng.random() < 0.4:
            old, mine[-1] = mine[-1], f"y{self.number}"
            statement = f"ALTER TABLE {table} RENAME COLUMN {old} TO {mine[-1]}"
        elif self.rng.random() < 0.2:
            statement = f"TRUNCATE TABLE {table}"
        else:
            mine.append(f"x{self.number}")
            how = self.rng.choice(("INT", "INT NOT NULL DEFAULT 7", "VARCHAR(9) DEFAULT 'ab'"))
            statement = f"ALTER TABLE {table} ADD COLUMN {mine[-1]} {how}"
        server.sql(statement, database=self.schema)


def _killed(
    servers: Servers, schema: str, *, kills: int, seed: int, alter: float = 0.0, rows: int = _ROWS
) -> StreamCourt:
    """Read under load until a client was killed so often and all is copied; each vgtid is judged."""
    rng = random.Random(seed)
    alters = Alters(servers, schema, rng)
    source = source_of(servers)
    keys = {f"{schema}.{table}": key for table, key in KEYS.items()}
    create_random_tables(list(servers.values()), schema)
    for index, server in enumerate(servers.values()):
        load(server, schema, rows, index=index, count=len(servers))
    court = StreamCourt.of(servers, keys)
    copy = CopyConfig(chunk_rows_max=7)
    with ExitStack() as stack:
        for server in servers.values():
            stack.callback(roll_back_prepared, server)
        writers = stack.enter_context(
            random_writers(list(servers.values()), schema, seed=seed, rate=3.0, keys=_KEYS)
        )
        rules = [f"{schema}.*"]
        written_on(list(servers.values()))  # the first cut lies after the places where the judges began
        mirror, left = Mirror(keys), kills
        kept: list[Mirror] = []
        stream = catchment.stream(source, rules=rules, copy=copy)
        xa = stack.enter_context(_xa_writers(servers, schema))
        done = False
        while not done:
            for event in stream:
                mirror.take(event)
                if not isinstance(event, VGtid):
                    continue
                court.judge(mirror)
                kept = [*kept, mirror.copy()][-3:]
                if rng.random() < alter and left:
                    alters()
                if left and rng.random() < 0.3:
                    left -= 1
                    break
                if not left and court.copying and all(copies_done(mirror.text)):
                    done = True
                    break
            if not done:
                stream.close()
                # Events behind its last vgtid are lost with the client, and those before it are judged already.
                mirror = kept[-1].copy()
                stream = catchment.stream(source, rules=rules, copy=copy, vgtid=mirror.text)
        with writers.paused(), xa.paused():
            want = {table: source_rows(servers, table, key) for table, key in keys.items()}
            ends = time.monotonic() + 60
            while rows_of(mirror, keys) != want:
                assert time.monotonic() < ends, "the client does not come to what SELECT shows"
                mirror.take(next(stream))
        stream.close()
    assert court.judged > kills
    return court


def rows_of(mirror: Mirror, keys: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    return {
        table: {
            (shard, key): row
            for (shard, name), rows in mirror.rows.items()
            if name == table
            for key, row in rows.items()
        }
        for table in keys
    }


@pytest.mark.promise(
    "every vgtid is one exact state of all shards, also during the copy and after a client is killed"
)
def test_under_load_and_kills(servers: Servers, fresh_schema: Callable[..., str]) -> None:
    court = _killed(servers, fresh_schema(*servers.values()), kills=8, seed=11)
    assert court.copying


@pytest.mark.long
@pytest.mark.parametrize("seed", [21])
def test_a_hundred_kills_with_ddl(servers: Servers, fresh_schema: Callable[..., str], seed: int) -> None:
    court = _killed(servers, fresh_schema(*servers.values()), kills=100, seed=seed, alter=0.2, rows=2000)
    print(court.judged, "vgtids,", court.copying, "states of tables in the midst of their copies")
