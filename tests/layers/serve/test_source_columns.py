"""A column that comes back is another one, empty in every row: a consumer of changes cannot know that."""

from collections.abc import Callable

import pytest

from catchment.model.errors import Unsupported
from tests.conftest import Shards
from tests.layers.serve.conftest import Drive, MakeFeed
from tests.layers.serve.direct import GONE, in_order

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


# Names of images of the log, of states, and of what the lake's tables show.
OTHERS = (
    "_side",
    "_op",
    "_seq",
    "_group",
    "_epoch",
    "_deleted",
    "_part",
    "side",
    "op",
    "seq",
    "group",
    "ordinal",
)


def test_columns_named_as_ours_and_as_the_lakes(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    columns = ", ".join(f"`{name}` INT" for name in OTHERS)
    server.sql(f"CREATE TABLE t ({columns}, PRIMARY KEY (_seq, _group))", database=schema)
    given = [", ".join(str(row * 100 + at) for at in range(len(OTHERS))) for row in (1, 2, 3)]
    server.sql(*(f"INSERT INTO t VALUES ({row})" for row in given[:2]), database=schema)
    driver = drive(make_feed(server), f"{schema}.t")
    driver.finish()
    server.sql(
        f"INSERT INTO t VALUES ({given[2]})",
        "UPDATE t SET _op = 7 WHERE _seq = 102",
        "UPDATE t SET _seq = 8 WHERE _seq = 202",
        "DELETE FROM t WHERE _seq = 302",
        database=schema,
    )
    driver.finish()
    left: dict[int, tuple[int, ...]] = {}
    for row in in_order(driver.rows):
        values = tuple(row[name] for name in OTHERS)
        left = {key: kept for key, kept in left.items() if key != row["_seq"]}
        if row["_change_type"] not in GONE:
            left[row["_seq"]] = values
    assert sorted(left.values()) == sorted(server.sql(f"SELECT * FROM {schema}.t"))
    assert [row["_change_type"] for row in driver.rows].count("update_postimage") == 2


@pytest.mark.parametrize(
    "name", ["_gtid", "_ORDER", "_change_type", "_commit_version", "_commit_timestamp", "_Shard"]
)
def test_columns_that_the_source_shows_are_refused_by_it_alone(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive, name: str
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)", database=schema)
    feed, table = make_feed(server), f"{schema}.t"
    driver = drive(feed, table)
    driver.finish()
    server.sql(
        f"ALTER TABLE t ADD {name} INT",
        f"UPDATE t SET v = 2, {name} = 3",
        f"ALTER TABLE t DROP {name}",
        "UPDATE t SET v = 4",
        database=schema,
    )
    driver.finish()
    kinds = [(row["_change_type"], row["v"]) for row in driver.rows]
    images = ("update_preimage", "update_postimage")
    assert kinds == [("insert", 1), *zip(images, (1, 2), strict=True), *zip(images, (2, 4), strict=True)]
    server.sql(f"ALTER TABLE t ADD {name} INT", database=schema)
    with pytest.raises(Unsupported, match=f"column {name} has the name of a column that the source shows"):
        drive(feed, table)
