"""The demo's tables, loader and steady writers."""

import threading
import time
from collections.abc import Callable

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.demo.workload import KEYS, create_tables, load, steady_writers
from catchment.demo.writers import Writer
from tests.conftest import Shards
from tests.world.patience import PATIENCE_SECONDS
from tests.world.workload import await_transactions

Fresh = Callable[..., str]


def _open_transactions(server: PrivateServer) -> int:
    (row,) = server.sql("SELECT COUNT(*) FROM information_schema.innodb_trx")
    return int(row[0])


def test_load_fills_every_table_and_shards_share_no_key(shards: Shards, fresh_schema: Fresh) -> None:
    schema = fresh_schema(*shards)
    steps: list[int] = []
    for index, server in enumerate(shards):
        create_tables(server, schema)
        total = load(server, schema, 1000, index=index, count=2, batch=400, loaded=steps.append)
        assert total == 3000
    assert sum(steps) == 6000
    assert max(steps) == 400
    for table, key in KEYS.items():
        keys = [set(server.sql(f"SELECT {', '.join(key)} FROM {schema}.{table}")) for server in shards]
        assert [len(part) for part in keys] == [1000, 1000]
        assert not keys[0] & keys[1]


def test_steady_writers_change_all_tables_and_pause_between_transactions(
    shards: Shards, fresh_schema: Fresh
) -> None:
    schema = fresh_schema(*shards)
    for index, server in enumerate(shards):
        create_tables(server, schema)
        load(server, schema, 500, index=index, count=2)
    before = [server.sql(f"CHECKSUM TABLE {schema}.{table}") for server in shards for table in KEYS]
    with steady_writers(shards, schema, 500, rate=200) as writers:
        for _ in range(20):
            with writers.paused():
                assert [_open_transactions(server) for server in shards] == [0, 0]
                seen = writers.transactions
                ends = [server.log_end() for server in shards]
                assert [server.log_end() for server in shards] == ends
                assert writers.transactions == seen
            await_transactions(writers, 6)
    after = [server.sql(f"CHECKSUM TABLE {schema}.{table}") for server in shards for table in KEYS]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert writers.changes > writers.transactions > 100


def test_the_rate_limits_a_writer(shard: PrivateServer) -> None:
    writer = Writer([shard.connect], lambda sessions, rng: sessions[0].ping() or 1, seed=1, rate=50)
    began = time.monotonic()
    writer.start()
    await_transactions(writer, 25)
    writer.stop()
    assert writer.transactions <= 50 * (time.monotonic() - began) + 2


def test_an_error_ends_a_writer_and_is_raised(shard: PrivateServer) -> None:
    done = threading.Event()

    def fail(sessions: object, rng: object) -> int:
        done.set()
        raise pymysql.err.ProgrammingError(1064, "no such thing")

    writer = Writer([shard.connect], fail, seed=1)
    writer.start()
    assert done.wait(PATIENCE_SECONDS)
    with pytest.raises(pymysql.err.ProgrammingError, match="no such thing"):
        writer.stop()


def test_a_writer_survives_a_crash_of_its_server_when_told_to() -> None:
    with PrivateServer() as server:
        create_tables(server, "shop")
        load(server, "shop", 100)
        writers = [
            Writer([lambda: server.connect(database="shop")], _touch, seed=n, reconnect=True)
            for n in range(2)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            await_transactions(writer, 1)
        server.kill9()
        server.start()
        for writer in writers:
            await_transactions(writer, 1)
        for writer in writers:
            writer.stop()


def _touch(sessions: object, rng: object) -> int:
    with sessions[0].cursor() as cursor:  # type: ignore[index]
        return int(cursor.execute("UPDATE orders SET status = (status + 1) % 7 WHERE id = 5"))
