"""What of their rows tables give: the rules of seed 004, and slices for sharing work (comments of seed 001)."""

from collections.abc import Callable
from typing import Any

import pytest

import catchment
from catchment.model.errors import ConfigError
from catchment.serve.rules.rule import Rule
from catchment.serve.stream.events import Event, Field, Restart, Row
from catchment.serve.stream.stream import Stream
from tests.promises.stream.conftest import Servers
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import source_of, until_copied, up_to

TABLES = (
    "CREATE TABLE t1 (id INT PRIMARY KEY, val VARCHAR(20) COLLATE utf8mb4_bin, n INT)",
    "CREATE TABLE t2 (id INT PRIMARY KEY, val VARCHAR(20))",
    "INSERT INTO t1 VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)",
    "INSERT INTO t2 VALUES (4, 'd')",
)


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """Two tables with rows on one shard."""
    server = servers["-40"]
    name = fresh_schema(server)
    server.sql(*TABLES, database=name)
    return name


def streamed(servers: Servers, *rules: Any, vgtid: Any = None) -> Stream:
    return catchment.stream(source_of({"-": servers["-40"]}), rules=rules, vgtid=vgtid)


def told(events: list[Event]) -> list[tuple[Any, Any]]:
    return [(event.before, event.after) for event in events if isinstance(event, Row)]


def marked(schema: str, servers: Servers, stream: Stream) -> list[Event]:
    """The events up to a row of t2 that marks an end."""
    servers["-40"].sql("REPLACE INTO t2 VALUES (99, 'end')", "DELETE FROM t2 WHERE id = 99", database=schema)

    def is_end(event: Event) -> bool:
        return isinstance(event, Row) and event.table.name == "t2" and event.after is None

    found = up_to(stream, is_end)
    return [event for event in found if not isinstance(event, Row | Restart) or event.table.name != "t2"]


@pytest.mark.promise("rules choose tables, columns and rows of a stream")
def test_two_tables_as_seed_004_has_them(servers: Servers, schema: str) -> None:
    rules = [
        {"match": "t2", "filter": "select id, val from t2"},
        {"match": "t1", "filter": "select * from t1"},
    ]
    with streamed(servers, *rules, f"!{schema}x.*") as stream:
        found = until_copied(stream)
    names = {
        event.table.name: [column.name for column in event.columns]
        for event in found
        if isinstance(event, Field)
    }
    assert names == {"t1": ["id", "val", "n"], "t2": ["id", "val"]}
    assert {row[1]["id"] for row in told(found)} >= {1, 2, 3, 4}
    some = {"match": f"{schema}.t1", "filter": "select id, val from t1 where n >= 20"}
    with streamed(servers, some) as stream:
        rows = [row[1] for row in told(until_copied(stream))]
    assert rows == [{"id": 2, "val": "b"}, {"id": 3, "val": "c"}]


def test_rows_that_enter_a_condition_and_leave_it(servers: Servers, schema: str) -> None:
    rule = Rule(
        f"{schema}.t1", f"select id as key_, n * 2 as twice from {schema}.t1 where n >= 20 and val <> 'x'"
    )
    with streamed(servers, rule, f"{schema}.t2") as stream:
        copied = [row for row in told(until_copied(stream)) if "key_" in row[1]]
        assert [row[1] for row in copied] == [{"key_": 2, "twice": 40}, {"key_": 3, "twice": 60}]
        servers["-40"].sql(
            "UPDATE t1 SET n = 25 WHERE id = 1",
            "UPDATE t1 SET val = 'x' WHERE id = 2",
            "UPDATE t1 SET n = 31 WHERE id = 3",
            "UPDATE t1 SET val = 'z' WHERE id = 2",
            "INSERT INTO t1 VALUES (5, 'e', 1)",
            "DELETE FROM t1 WHERE id IN (1, 5)",
            database=schema,
        )
        found = marked(schema, servers, stream)
    assert told(found) == [
        (None, {"key_": 1, "twice": 50}),
        ({"key_": 2, "twice": 40}, None),
        ({"key_": 3, "twice": 60}, {"key_": 3, "twice": 62}),
        (None, {"key_": 2, "twice": 40}),
        ({"key_": 1, "twice": 50}, None),
    ]


def test_slices_share_the_work(servers: Servers, schema: str) -> None:
    """Each key is in one slice, while rows are copied and afterwards."""
    server = servers["-40"]
    server.sql(
        "INSERT INTO t1 WITH RECURSIVE s AS (SELECT 100 AS k UNION ALL SELECT k + 1 FROM s WHERE k < 400) "
        "SELECT k, 'v', k FROM s",
        database=schema,
    )
    keys: dict[str, tuple[str, ...]] = {f"{schema}.t1": ("id",), f"{schema}.t2": ("id",)}
    parts = []
    for index in range(3):
        with streamed(servers, Rule(f"{schema}.t1", of=3, index=index), f"{schema}.t2") as stream:
            mirror = Mirror(keys)
            for event in until_copied(stream):
                mirror.take(event)
            server.sql(
                "UPDATE t1 SET n = n + 1", "UPDATE t1 SET id = id + 5000 WHERE id < 3", database=schema
            )
            for event in marked(schema, servers, stream):
                mirror.take(event)
            server.sql(
                "UPDATE t1 SET n = n - 1", "UPDATE t1 SET id = id - 5000 WHERE id > 4000", database=schema
            )
            parts.append(mirror.rows["-", f"{schema}.t1"])
    assert sum(map(len, parts)) == 304
    assert set().union(*parts) == {(5001,), (5002,), (3,), *((key,) for key in range(100, 401))}
    assert all(len(part) > 60 for part in parts)
    assert all(
        row["n"] == row["id"] + 1 for part in parts for row in part.values() if row["id"] in range(100, 401)
    )


def test_a_range_of_keyspace_ids(servers: Servers, schema: str) -> None:
    found: list[Any] = []
    for filter in ("-80", "80-"):
        with streamed(servers, {"match": "t1", "filter": filter}, f"{schema}.t2", "!*.t9") as stream:
            found.append({row[1]["id"] for row in told(until_copied(stream)) if "n" in row[1]})
    assert found[0] | found[1] == {1, 2, 3}
    assert not found[0] & found[1]


def test_a_table_with_a_select_is_copied_again_when_it_is_altered(servers: Servers, schema: str) -> None:
    """A default may bring every row to meet the condition, and the log has none of them."""
    rule = Rule(f"{schema}.t1", f"select id, val from {schema}.t1 where n >= 20")
    with streamed(servers, rule, f"{schema}.t2") as stream:
        until_copied(stream)
        servers["-40"].sql(
            "ALTER TABLE t1 DROP COLUMN n, ADD COLUMN n INT NOT NULL DEFAULT 50", database=schema
        )
        found = until_copied(stream)
    assert [event.table.name for event in found if isinstance(event, Restart)] == ["t1"]
    assert [row[1] for row in told(found)] == [
        {"id": key, "val": val} for key, val in ((1, "a"), (2, "b"), (3, "c"))
    ]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"match": "t1", "filter": "select missing from t1"}, "missing"),
        ({"match": "t1", "filter": "select id from t1 limit 3"}, "LIMIT"),
        ({"match": "t7"}, "rule t7: no shard has such a table"),
        ({"match": "t1", "of": 2, "index": 2}, "is no slice"),
        ({"table": "t1"}, "is no rule"),
    ],
)
def test_rules_that_are_refused_before_anything_is_told(
    servers: Servers, schema: str, rule: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        streamed(servers, rule, f"{schema}.t2")
