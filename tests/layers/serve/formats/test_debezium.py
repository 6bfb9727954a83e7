"""The envelope, by a consumer of its own, from a real server's events."""

import time
from collections.abc import Callable

import pytest

from catchment.demo.server import PrivateServer
from catchment.serve.formats.debezium import DebeziumLines
from catchment.serve.stream.events import Event
from tests.layers.serve.formats.envelope import Consumer
from tests.layers.serve.formats.told import SHARD, is_row, lines_of, told
from tests.world.servers.gtids import newest_gtid

NOW = 1_800_000_000_000


def consumed(events: list[Event], *, tombstones: bool = False) -> Consumer:
    consumer = Consumer()
    for line in lines_of(DebeziumLines(lambda: NOW, tombstones=tombstones), events):
        consumer.take(line)
    return consumer


@pytest.fixture(scope="module")
def events(shard: PrivateServer) -> list[Event]:
    """Of two tables that are copied, and then changed in every way."""
    schema = "formats_debezium"
    shard.sql(
        f"DROP DATABASE IF EXISTS {schema}",
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (a INT, b VARCHAR(9), n INT, PRIMARY KEY (b, a))",
        f"CREATE TABLE {schema}.u (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', 3)",
        f"INSERT INTO {schema}.u VALUES (1), (2)",
    )
    found = told(
        shard,
        schema,
        "INSERT INTO t VALUES (4, 'v', 4), (5, 'w', 5)",
        "UPDATE t SET n = 10 WHERE a = 1",
        "UPDATE t SET a = 22 WHERE a = 2",
        "DELETE FROM t WHERE a = 3",
        "TRUNCATE TABLE u",
        "INSERT INTO u VALUES (9)",
        done=is_row(id=9),
    )
    shard.sql(f"DROP DATABASE {schema}")
    return found


def test_what_a_consumer_has(events: list[Event]) -> None:
    consumer = consumed(events)
    assert consumer.operations == "rrrrr" + "cc" + "u" + "dc" + "d" + "t" + "c"
    assert consumer.rows == {
        f"ks.{SHARD}.formats_debezium.t": {
            '{"b": "x", "a": 1}': {"a": 1, "b": "x", "n": 10},
            '{"b": "y", "a": 22}': {"a": 22, "b": "y", "n": 2},
            '{"b": "v", "a": 4}': {"a": 4, "b": "v", "n": 4},
            '{"b": "w", "a": 5}': {"a": 5, "b": "w", "n": 5},
        },
        f"ks.{SHARD}.formats_debezium.u": {'{"id": 9}': {"id": 9}},
    }


def test_tombstones_follow_deletes(events: list[Event]) -> None:
    assert consumed(events, tombstones=True).operations == "rrrrr" + "cc" + "u" + "d-c" + "d-" + "t" + "c"


def test_the_last_copied_row_says_so(events: list[Event]) -> None:
    assert consumed(events).snapshots[:5] == ["true"] * 4 + ["last"]


def test_where_changes_come_from(events: list[Event], shard: PrivateServer) -> None:
    first, second, *_, last = [one for one in consumed(events).sources if one["snapshot"] == "false"]
    assert (first["row"], second["row"], first["gtid"]) == (0, 1, second["gtid"])
    gtid = newest_gtid(shard)
    if ":" not in gtid:
        # Of the DROP behind it: same domain and server.
        assert last["gtid"].rsplit("-", 1)[0] == gtid.rsplit("-", 1)[0]
        assert last["server_id"] == int(gtid.split("-")[1])
    assert 0 <= time.time() - last["ts_ms"] / 1000 < 3600
    assert all(one["ts_ms"] == NOW for one in consumed(events).sources if one["snapshot"] != "false")


def test_rows_that_do_not_hold_any_more_are_forgotten(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    """A statement that a stream cannot follow has the table copied again."""
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 5)", database=schema)
    events = told(shard, schema, "ALTER TABLE t MODIFY v VARCHAR(9)", done=is_row(v="5"))
    consumer = consumed(events)
    assert consumer.operations == "rtr"
    assert consumer.rows == {f"ks.{SHARD}.{schema}.t": {'{"id": 1}': {"id": 1, "v": "5"}}}
