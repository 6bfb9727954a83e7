"""Tables of a feed that keep deleted rows, every change or every version, beside one that mirrors; judged by what the
shards did.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.settled import settled

MODES = [
    {"match": "*.kept", "mode": "soft_delete"},
    {"match": "/.*\\.log.*/", "mode": "append"},
    {"match": "*.aged", "mode": "history"},
]
TABLES = ("kept", "logged", "aged", "plain")


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards with three tables that has not begun."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(modes=MODES)
    for shard in "ab":
        for table in TABLES:
            found.sql(
                shard,
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))",
                f"INSERT INTO {table} SELECT seq, CONCAT('{shard}', seq) FROM seq_1_to_20",
            )
    return found


def plain_rows(steps: Steps, table: str) -> list[tuple[Any, ...]]:
    """Shard, key, value and mark of what any reader sees."""
    rows = pl.read_delta(str(table_dir(steps.feed.sink.path, TableId(steps.schema, table))))
    return sorted(rows.select("_shard", "id", "v", "_deleted").rows(), key=repr)


def must_be_right(steps: Steps) -> None:
    """`catchment.read` and its views give what the source has, before and after a settle, and `verify` agrees."""
    for _ in range(2):
        with duckdb.connect() as connection:
            connection.execute(catchment_views(steps))
            for table in TABLES:
                wanted = steps.source(table, "id", "v")
                assert steps.lake(table, "id", "v") == wanted
                chosen = f"SELECT _shard, id, v FROM {steps.schema}.{table}"
                assert sorted(connection.sql(chosen).fetchall()) == wanted
        settled(steps.feed)
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    verdict = verification.verify(steps.feed, endpoints, Here())
    assert verdict.differences == 0, verdict.found
    assert len(verdict.rows) == len(TABLES)


def catchment_views(steps: Steps) -> str:
    """As `catchment views` prints them."""
    from catchment.api.views import views

    return views(steps.feed)


@pytest.mark.promise("a table keeps deleted rows, every change or every version, as its mode says")
def test_what_each_mode_keeps(steps: Steps) -> None:
    steps.run()
    must_be_right(steps)
    for table in TABLES:
        steps.sql(
            "a",
            f"UPDATE {table} SET v = 'new' WHERE id = 1",
            f"DELETE FROM {table} WHERE id IN (2, 3)",
            f"UPDATE {table} SET id = 104 WHERE id = 4",
            f"INSERT INTO {table} VALUES (50, 'short-lived')",
        )
    steps.run()
    must_be_right(steps)
    for table in TABLES:
        steps.sql(
            "a",
            f"DELETE FROM {table} WHERE id = 50",
            f"INSERT INTO {table} VALUES (2, 'again')",
            f"INSERT INTO {table} VALUES (51, 'never at an epoch')",
            f"DELETE FROM {table} WHERE id = 51",
            f"ALTER TABLE {table} ADD COLUMN w INT",
            f"UPDATE {table} SET w = 7 WHERE id = 5",
        )
    steps.run()
    must_be_right(steps)
    of_a = {(row[1], row[2], row[3]) for row in plain_rows(steps, "kept") if row[0] == "a"}
    assert {
        (1, "new", False),
        (2, "again", False),
        (3, "a3", True),
        (4, "a4", True),
        (104, "a4", False),
    } <= of_a
    assert (50, "short-lived", True) in of_a
    assert not any(key == 51 and value is not None for key, value, _ in of_a)
    assert len(of_a) == 20 + 1 + 1  # all there ever were: 1 to 20, 104 and 50
    logged = [row[1:] for row in plain_rows(steps, "logged") if row[0] == "a"]
    assert {row for row in logged if row[0] == 1} == {(1, "a1", False), (1, "new", False)}
    assert [(value, mark) for key, value, mark in logged if key == 2 and not mark] == [
        ("a2", False),
        ("again", False),
    ]
    assert sum(mark for key, _, mark in logged if key in (2, 3, 4, 50)) == 4
    must_tell_when(steps)


def must_tell_when(steps: Steps) -> None:
    """Each version of a row, from the second of its epoch to that of the next one's."""
    rows = pl.read_delta(str(table_dir(steps.feed.sink.path, TableId(steps.schema, "aged"))))
    of_a = rows.filter(pl.col("_shard") == "a").sort("id", "_epoch").to_dicts()
    first, second, third = sorted({row["_epoch"] for row in of_a})
    values: dict[int, list[tuple[Any, ...]]] = {}
    for row in of_a:
        values.setdefault(row["id"], []).append((row["v"], row["w"], row["_epoch"], row["_epoch_to"]))
        assert row["_valid_from"].strftime("%Y-%m-%dT%H:%M:%SZ") == epoch_text(row["_epoch"])[:20]
        ended = None if row["_epoch_to"] is None else epoch_text(row["_epoch_to"])[:20]
        assert (row["_valid_to"] and row["_valid_to"].strftime("%Y-%m-%dT%H:%M:%SZ")) == ended
    assert values[1] == [("a1", None, first, second), ("new", None, second, None)]
    assert values[2] == [("a2", None, first, second), ("again", None, third, None)]
    assert values[3] == [("a3", None, first, second)]
    assert values[4] == [("a4", None, first, second)]
    assert values[104] == [("a4", None, second, None)]
    assert values[50] == [("short-lived", None, second, third)]
    assert values[5] == [("a5", None, first, third), ("a5", 7, third, None)]
    assert 51 not in values
    assert values[6] == [("a6", None, first, None)]


def test_what_is_refused(steps: Steps) -> None:
    """A slip, a column with a name that a mode needs, and another mode once the feed has begun."""
    steps.set(modes=[{"match": "*.keptt", "mode": "soft_delete"}])
    with pytest.raises(ConfigError, match=r"modes: \*\.keptt: no chosen table has this name"):
        steps.run()
    steps.set(modes=MODES)
    steps.everywhere("ALTER TABLE aged ADD COLUMN _valid_FROM INT")
    with pytest.raises(ConfigError, match="that of the lake's tables themselves"):
        steps.run()
    steps.everywhere("ALTER TABLE aged DROP COLUMN _valid_FROM")
    steps.run()
    others: list[tuple[list[dict[str, str]], str]] = [
        ([], "aged is history since the feed began, and mirror now"),
        ([{"match": "*.*", "mode": "append"}], "is history since the feed began, and append now"),
    ]
    for modes, said in others:
        steps.set(modes=modes)
        with pytest.raises(ConfigError, match=said):
            steps.run()
        assert execute(["verify", str(steps.file)]) == ConfigError.exit_code
