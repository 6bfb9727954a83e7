"""Anything at any time: a feed whose servers, drivers and workers die at random is exact at every epoch."""

import random
import secrets
from contextlib import ExitStack
from pathlib import Path

import pytest

from catchment.demo.workload import load
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.crash.chaos import Chaos
from tests.promises.exact.feedrun import make_feed
from tests.promises.exact.verdict import Court, Rest, ServerOrder
from tests.world.judge import source_rows
from tests.world.oracle import Oracle
from tests.world.servers.chosen import chosen_server
from tests.world.workload import KEYS, create_random_tables, random_writers

SCHEMA = "chaos"
ROUNDS, ROUNDS_TO_REST = 8, 4


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_epoch_is_exact_whatever_dies(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1000)
    password = secrets.token_hex(12)
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                chosen_server(server_id=number, password=password, settings={"max_binlog_size": 262144})
            )
            for name, number in (("-80", 131), ("80-", 132))
        }
        for server in servers.values():
            server.sql(f"CREATE DATABASE {SCHEMA}")
        create_random_tables(list(servers.values()), SCHEMA)
        for index, server in enumerate(servers.values()):
            load(server, SCHEMA, 400, index=index, count=len(servers))
        keys = {f"{SCHEMA}.{table}": key for table, key in KEYS.items()}
        feed = make_feed(tmp_path, servers, SCHEMA, chunk_rows=3, interval="700ms")
        oracles = {name: Oracle.from_rest(server.login(), keys) for name, server in servers.items()}
        chaos = Chaos(tmp_path / "feed.yaml", servers, SCHEMA, random.Random(seed))
        rests: list[Rest] = []
        with random_writers(
            list(servers.values()), SCHEMA, seed=seed, rate=6.0, keys=100, reconnect=True
        ) as writers:
            for number in range(1, ROUNDS + 1):
                chaos.round(chaos.chance.uniform(8, 30))
                if number % ROUNDS_TO_REST == 0:
                    with writers.paused():
                        chaos.catch_up()
                        newest = EpochsTable(feed.sink.path, feed.name).newest()
                        assert newest is not None
                        rows = {table: source_rows(servers, table, key) for table, key in keys.items()}
                        rests.append(Rest(newest.commit.epoch, rows))
        order = ServerOrder(servers["-80"], "utf8mb4_unicode_ci", 60)
        verdict = Court(feed, Path(str(feed.sink.path)), keys, oracles, order).judge(rests, [])
    told = f"seed {seed}\n" + "\n".join(chaos.said)
    assert not chaos.faults, "\n".join(chaos.faults) + "\n" + told
    assert not verdict.lines, told + "\n" + "\n".join(verdict.lines[:20])
    assert verdict.rests == ROUNDS // ROUNDS_TO_REST
    assert verdict.copying > 20
