"""A column that comes back is another one, empty in every row: a consumer of changes cannot know that."""

from collections.abc import Callable

import pytest

from catchment.model.errors import Unsupported
from tests.conftest import Shards
from tests.spark.conftest import Drive, MakeFeed

FreshSchema = Callable[..., str]
KV = "CREATE TABLE kv (k INT PRIMARY KEY, v VARCHAR(20), w INT)"
AGAIN = r"column v was dropped and added again.*new checkpoint"


@pytest.mark.parametrize(
    "batches",
    [
        ["ALTER TABLE kv DROP v, ADD v INT"],
        ["ALTER TABLE kv DROP v; UPDATE kv SET w = 1; ALTER TABLE kv ADD V VARCHAR(20)"],
        ["ALTER TABLE kv DROP COLUMN v; UPDATE kv SET w = 1", "ALTER TABLE kv ADD v VARCHAR(20)"],
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_column_that_comes_back_ends_the_stream(
    shards: Shards,
    fresh_schema: FreshSchema,
    make_feed: MakeFeed,
    drive: Drive,
    batches: list[str],
    *,
    restarted: bool,
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, '12', 0), (2, '13', 0)", database=schema)
    feed, name = make_feed(server), f"{schema}.kv"
    driver = drive(feed, name)
    driver.finish()
    for statements in batches[:-1]:
        server.sql(*statements.split("; "), database=schema)
        driver.finish()
    server.sql(*batches[-1].split("; "), "UPDATE kv SET w = 2 WHERE k = 1", database=schema)
    if restarted:
        driver = drive(feed, name, driver.offset)
    with pytest.raises(Unsupported, match=AGAIN):
        driver.finish()


@pytest.mark.mariadb("MySQL has no ADD COLUMN IF NOT EXISTS")
def test_an_add_that_does_nothing_is_none(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a', 0)", database=schema)
    driver = drive(make_feed(server), f"{schema}.kv")
    driver.finish()
    server.sql(
        "ALTER TABLE kv DROP w",
        "ALTER TABLE kv ADD COLUMN IF NOT EXISTS v VARCHAR(20)",
        "UPDATE kv SET v = 'b'",
        database=schema,
    )
    driver.finish()
    assert [row["v"] for row in driver.rows] == ["a", "a", "b"]
