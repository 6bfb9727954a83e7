"""The judges themselves: they agree with each other on hard logs, and they notice what is wrong."""

import random
from collections.abc import Callable
from decimal import Decimal

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import QueryEvent
from pymysqlreplication.row_event import WriteRowsEvent

from catchment.demo.server import PrivateServer
from tests.conftest import Shards
from tests.world.judge import Rows, compare, lake_rows, oracle_rows, source_rows
from tests.world.log_groups import OracleError
from tests.world.oracle import Oracle
from tests.world.workload import (
    KEYS,
    RandomTransactions,
    await_transactions,
    create_random_tables,
    random_writers,
    touch_temporary_table,
)

Fresh = Callable[..., str]


def _keys(schema: str) -> dict[str, tuple[str, ...]]:
    return {f"{schema}.{table}": key for table, key in KEYS.items()}


def _differences(servers: dict[str, PrivateServer], oracles: dict[str, Oracle], schema: str) -> list[str]:
    lines = []
    for table, key in _keys(schema).items():
        replayed = oracle_rows({shard: oracle.state[table] for shard, oracle in oracles.items()})
        lines += compare(replayed, source_rows(servers, table, key))
    return lines


def test_both_judges_agree_on_random_transactions_of_two_shards(shards: Shards, fresh_schema: Fresh) -> None:
    schema = fresh_schema(*shards)
    create_random_tables(shards, schema)
    servers = dict(zip(("shop/-80", "shop/80-"), shards, strict=True))
    oracles = {shard: Oracle.from_rest(server.login(), _keys(schema)) for shard, server in servers.items()}
    with random_writers(shards, schema, seed=11, rate=60) as writers:
        for _ in range(4):
            await_transactions(writers, 50)
            with writers.paused():
                for oracle in oracles.values():
                    oracle.advance_to_end()
                assert _differences(servers, oracles, schema) == []
    on_both = set.intersection(*(set(oracle.state[f"{schema}.orders"]) for oracle in oracles.values()))
    assert on_both, "some keys must stand on both shards"


def test_oracles_beside_each_other_move_by_themselves(shard: PrivateServer, fresh_schema: Fresh) -> None:
    """One that is ahead changes no row of the other, although both have the images of one log."""
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)", database=schema)
    table = f"{schema}.t"
    first = Oracle.from_rest(shard.login(), {table: ("id",)})
    second = first.beside()
    shard.sql("INSERT INTO t VALUES (2, 2)", database=schema)
    inserted = shard.log_end()
    shard.sql("ALTER TABLE t ADD COLUMN w INT DEFAULT 7", "DELETE FROM t WHERE id = 1", database=schema)
    first.advance_to_end()
    third = first.beside()
    shard.sql("UPDATE t SET v = 3", database=schema)
    third.advance_to_end()
    before = {(1,): {"id": 1, "v": 1}, (2,): {"id": 2, "v": 2}}
    assert second.advance(*inserted)[table] == before
    assert first.state[table] == {(2,): {"id": 2, "v": 2, "w": 7}}
    assert second.advance_to_end()[table] == third.state[table] == {(2,): {"id": 2, "v": 3, "w": 7}}


@pytest.mark.mariadb("rows undone to a savepoint, which MySQL does not log here")
def test_the_log_holds_undone_rows_and_the_oracle_leaves_them_out(
    shard: PrivateServer, fresh_schema: Fresh
) -> None:
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)", database=schema)
    oracle = Oracle.from_rest(shard.login(), {f"{schema}.t": ("id",)})
    session = shard.connect(database=schema)
    with session.cursor() as cursor:
        session.begin()
        cursor.execute("INSERT INTO t VALUES (1, 1)")
        cursor.execute("SAVEPOINT `a``b`")
        cursor.execute("INSERT INTO t VALUES (2, 2)")
        touch_temporary_table(cursor)
        cursor.execute("ROLLBACK TO SAVEPOINT `A``B`")
        cursor.execute("INSERT INTO t VALUES (3, 3)")
        session.commit()
        session.begin()
        cursor.execute("INSERT INTO t VALUES (4, 4)")
        touch_temporary_table(cursor)
        session.rollback()
    session.close()
    start = oracle.at
    oracle.advance_to_end()
    assert _inserted_ids(shard, start.file, start.offset, "t") == [1, 2, 3, 4]
    assert shard.sql(f"SELECT id FROM {schema}.t") == [(1,), (3,)]
    assert oracle.state == {f"{schema}.t": {(1,): {"id": 1, "v": 1}, (3,): {"id": 3, "v": 3}}}
    assert oracle.touched_since(*start) == {f"{schema}.t": {(1,), (3,)}}
    assert oracle.touched_since(*oracle.at) == {f"{schema}.t": set()}


def _inserted_ids(server: PrivateServer, file: str, offset: int, table: str) -> list[int]:
    reader = BinLogStreamReader(
        server.login(),
        server_id=0,
        log_file=file,
        log_pos=offset,
        resume_stream=True,
        only_events=[WriteRowsEvent],
        only_tables=[table],
        enable_logging=False,
    )
    try:
        return [row["values"]["id"] for event in reader for row in event.rows]
    finally:
        reader.close()


def test_random_transactions_leave_undone_rows_and_rolled_back_groups_in_the_log() -> None:
    with PrivateServer(settings={"max_binlog_size": 4096}) as server:
        create_random_tables([server], "shop")
        oracle = Oracle.from_birth(server.login(), _keys("shop"))
        session = server.connect(database="shop")
        rng, transact = random.Random(5), RandomTransactions(keys=60)
        for _ in range(150):
            transact([session], rng)
        session.close()
        reader = BinLogStreamReader(
            server.login(),
            server_id=0,
            log_file="binlog.000001",
            log_pos=4,
            resume_stream=True,
            only_events=[QueryEvent],
            enable_logging=False,
        )
        queries = [str(event.query) for event in reader]
        reader.close()
        assert sum(query.startswith("ROLLBACK TO") for query in queries) > 10
        assert sum(query == "ROLLBACK" for query in queries) > 3
        oracle.advance_to_end()
        assert oracle.at.file > "binlog.000050", "small files must have rotated"
        assert _differences({"one": server}, {"one": oracle}, "shop") == []


def test_the_oracle_goes_through_crashes_and_starts_of_the_server() -> None:
    with PrivateServer() as server:
        create_random_tables([server], "shop")
        oracle = Oracle.from_birth(server.login(), _keys("shop"))
        with random_writers([server], "shop", seed=2, rate=200, reconnect=True) as writers:
            for _ in range(2):
                await_transactions(writers, 50)
                server.kill9()
                server.start()
            await_transactions(writers, 20)
        oracle.advance_to_end()
        assert oracle.at.file == "binlog.000003"
        assert _differences({"one": server}, {"one": oracle}, "shop") == []


def test_the_oracle_follows_columns_that_come_and_go(shard: PrivateServer, fresh_schema: Fresh) -> None:
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)", database=schema)
    oracle = Oracle.from_rest(shard.login(), {f"{schema}.t": ("id",)})
    shard.sql(
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "ALTER TABLE t ADD COLUMN w VARCHAR(10), ADD COLUMN x INT FIRST",
        "INSERT INTO t VALUES (7, 3, 3, 'three')",
        f"ALTER TABLE `{schema}`.`t` DROP COLUMN v",
        "UPDATE t SET w = 'two' WHERE id = 2",
        database=schema,
    )
    oracle.advance_to_end()
    assert oracle.state[f"{schema}.t"] == {
        (1,): {"id": 1, "w": None, "x": None},
        (2,): {"id": 2, "w": "two", "x": None},
        (3,): {"id": 3, "w": "three", "x": 7},
    }
    shard.sql("TRUNCATE TABLE t", database=schema)
    assert oracle.advance_to_end() == {f"{schema}.t": {}}


def test_the_oracle_stops_only_between_groups(shard: PrivateServer, fresh_schema: Fresh) -> None:
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY)", database=schema)
    keys = {f"{schema}.t": ("id",)}
    start = Oracle.from_rest(shard.login(), keys).at
    shard.sql("INSERT INTO t VALUES (1)", database=schema)
    shard.sql("FLUSH BINARY LOGS")
    file, end = shard.log_end()
    ends = [row[4] for row in shard.sql(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")]
    *inside, group_end, rotate_end = ends
    assert len(inside) >= 3
    for wrong in [*inside, group_end - 1, rotate_end + 1]:
        oracle = Oracle(shard.login(), keys, start)
        with pytest.raises(OracleError, match=r"no (group|event) ends at"):
            oracle.advance(start.file, wrong)
    oracle = Oracle(shard.login(), keys, start)
    for place in [(start.file, group_end), (start.file, rotate_end), (file, 4), (file, end)]:
        assert oracle.advance(*place) == {f"{schema}.t": {(1,): {"id": 1}}}
    with pytest.raises(OracleError, match="cannot go back"):
        oracle.advance(*start)


def test_compare_names_every_difference() -> None:
    source: Rows = {
        ("a", (1,)): {"id": 1, "v": Decimal("1.20")},
        ("b", (1,)): {"id": 1, "v": None},
        ("b", (2,)): {"id": 2, "v": 2},
    }
    records = [
        {"_shard": "a", "_epoch": 7, "id": 1, "v": Decimal("1.2")},
        {"_shard": "b", "_epoch": 7, "id": 1, "v": 0},
        {"_shard": "a", "_epoch": 8, "id": 2, "v": 2},
    ]
    assert compare(lake_rows(records, ("id",)), source) == [
        "a (2,): not in the source, lake has {'id': 2, 'v': 2}",
        "b (1,): v: lake 0, source None",
        "b (2,): missing in the lake, source has {'id': 2, 'v': 2}",
    ]
    with pytest.raises(AssertionError, match="two rows of a have the key"):
        lake_rows([records[0], records[0]], ("id",))
