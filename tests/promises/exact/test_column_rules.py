"""Rules of columns: which a feed takes, that it keeps them, and what they do to columns that are altered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.sink.delta.files import exists
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.cases import Cases
from tests.promises.exact.ddl_cases import TEXT, WIDE, WIDENED
from tests.promises.exact.people import KEY, RULES, TABLE, digest, insert, must_be_right, of_source
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.settled import settled


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards that has not begun."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(columns=RULES, mask_key=KEY)
    return found


def test_a_feed_keeps_its_rules(steps: Steps) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 5))
    steps.run()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"columns": RULES[1:]}, "not what the feed began with"),
        ({"columns": [*RULES, {"match": "*.people.open", "mask": "nulls"}]}, "not what the feed began with"),
        ({"mask_key": KEY + "!"}, "mask_key is another one"),
        ({"columns": []}, "not what the feed began with"),
    ]
    for changed, said in changes:
        steps.set(**changed)
        with pytest.raises(ConfigError, match=said):
            steps.run()
        endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
        with pytest.raises(ConfigError, match=said):
            verification.verify(steps.feed, endpoints, Here())
        steps.set(columns=RULES, mask_key=KEY)
        steps.run()
    must_be_right(steps)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"match": "*.people.id", "mask": "hmac"}, "a part of the key"),
    ({"match": "*.people.*", "exclude": True}, "a part of the key"),
    ({"match": "*.people.emial", "mask": "hmac"}, "no column of a chosen table has this name"),
    ({"match": "*.person.email", "exclude": True}, "no column of a chosen table has this name"),
    ({"match": "*.people.age", "mask": "partial"}, "has no last characters"),
    ({"match": "*.people.comment", "rename": "OPEN"}, "that of column"),
    ({"match": "*.people.comment", "rename": "_shard"}, "that of the lake's tables"),
    ({"match": "*.people.*", "rename": "one"}, "that of column"),
]


def test_rules_that_cannot_be_had_are_refused_before_anything_is_written(steps: Steps) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 5))
    for rule, said in REFUSED:
        steps.set(columns=[rule])
        with pytest.raises(ConfigError, match=said):
            steps.run()
    assert not exists(table_dir(steps.feed.sink.path, TableId(steps.schema, "people")) / "_delta_log")


def test_a_key_may_be_renamed(steps: Steps) -> None:
    steps.set(columns=[{"match": "*.people*.id", "rename": "person"}, *RULES])
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 200))
    steps.run()
    steps.sql("a", "DELETE FROM people WHERE id < 20", "UPDATE people SET id = id + 1000 WHERE id < 30")
    steps.run()
    settled(steps.feed)
    rows = catchment.read(steps.feed, f"{steps.schema}.people").arrow().to_pylist()
    wanted = [(row[0], row[1]) for row in of_source(steps)]
    assert sorted((row["_shard"], row["person"]) for row in rows) == wanted
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0


def test_a_column_that_is_added_and_cannot_have_its_rule_stops_its_table(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 5))
    steps.run()
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE people ADD COLUMN remark INT", "UPDATE people SET remark = 1")
    steps.must_stop(caplog, "people", r"that of column .*drop it again")
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE people DROP COLUMN remark", "CREATE TABLE z (id INT PRIMARY KEY)")
    steps.renew("REPLACE INTO z VALUES (1)")
    must_be_right(steps)


def test_masked_columns_that_become_wider(steps: Steps) -> None:
    """An integer has the HMAC of its digits, whatever its type."""
    rules: list[dict[str, Any]] = [
        {"match": "*.t.n", "mask": "hmac"},
        {"match": "*.t.d", "mask": "nulls"},
        {"match": "*.t.v", "mask": "partial", "show": 2},
    ]
    steps.set(columns=rules)
    cases = Cases(steps, {"t": WIDENED.begin})
    cases.begin()
    columns = ("id", "n", "v", "d")
    before = steps.lake("t", *columns)
    row = "INSERT INTO t (id, n, v, b) VALUES ({}, 10, 'one', '')"
    cases.turn({"t": f"{row.format(4)}; {WIDE}; {TEXT}; UPDATE t SET b = 'x' WHERE id = 1; {row.format(5)}"})
    after = steps.lake("t", *columns)
    assert [row for row in after if row[1] < 4] == before
    for shard in "ab":
        mine = [row for row in after if row[0] == shard]
        assert {mine[place][2] for place in (0, 3, 4)} == {digest(10)}
        assert {mine[place][3] for place in (0, 3, 4)} == {"****ne"}
        assert {row[4] for row in mine} == {None}
    cases.must_be_followed()
