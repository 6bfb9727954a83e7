"""Children of foreign keys that change rows: no log tells what became of them, so the source refuses them before it
gives a row."""

import json
from collections.abc import Callable

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Unsupported
from tests.layers.serve.conftest import Drive, MakeFeed

FreshSchema = Callable[..., str]
PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"
CHILD = "CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY (p))"
TREE = "CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY ft (up) REFERENCES t (id) ON UPDATE SET NULL)"
KEY = "ALTER TABLE c ADD CONSTRAINT fc FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE"
ROWS = ("INSERT INTO p VALUES (1), (2)", "INSERT INTO c VALUES (1, 1), (2, 2)")


@pytest.fixture
def schema(shard: PrivateServer, fresh_schema: FreshSchema) -> str:
    """A parent and a child of two rows each, with no key between them yet."""
    name = fresh_schema(shard)
    shard.sql(PARENT, CHILD, *ROWS, database=name)
    return name


@pytest.mark.promise("the Spark source refuses tables whose rows foreign keys change, before it gives one")
def test_a_child_is_refused(shard: PrivateServer, schema: str, make_feed: MakeFeed, drive: Drive) -> None:
    """Where a query is made, where a batch is planned, and where a stream goes on."""
    feed, name = make_feed(shard), f"{schema}.c"
    driver = drive(feed, name)
    reader = driver.source.reader(driver.schema)
    driver.finish()
    assert [row["id"] for row in driver.rows] == [1, 2]
    shard.sql(KEY, "DELETE FROM p WHERE id = 1", TREE, database=schema)
    with pytest.raises(
        Unsupported, match="c: its foreign key fc ON DELETE CASCADE changes rows that are in no"
    ):
        drive(feed, name)
    with pytest.raises(Unsupported, match="foreign key fc ON DELETE CASCADE"):
        reader.partitions()
    with pytest.raises(Unsupported, match="foreign key fc ON DELETE CASCADE"):
        driver.new_reader().latestOffset(driver.offset, driver.limit())
    with pytest.raises(Unsupported, match="it was given a foreign key that changes rows"):
        driver.finish()
    assert [row["id"] for row in driver.rows] == [1, 2]
    with pytest.raises(Unsupported, match="t: its foreign key ft ON UPDATE SET NULL changes rows"):
        drive(feed, f"{schema}.t")


def test_a_key_that_went_behind_a_position(
    shard: PrivateServer, schema: str, make_feed: MakeFeed, drive: Drive
) -> None:
    """The catalog does not have it any more, and it deleted a row behind the position."""
    shard.sql(KEY, database=schema)
    gtids = shard.sql("SELECT @@gtid_binlog_pos")[0][0]
    gone = ("DELETE FROM p WHERE id = 1", "ALTER TABLE c DROP FOREIGN KEY fc")
    shard.sql(*gone, database=schema)
    begins = {"startingGtids": json.dumps({"-80": gtids})}
    with pytest.raises(Unsupported, match="its foreign key fc was dropped there"):
        drive(make_feed(shard), f"{schema}.c", **begins).step()
    driver = drive(make_feed(shard), f"{schema}.c")
    driver.finish()
    assert [row["id"] for row in driver.rows] == [2], "behind that statement no key changes rows"


def test_a_restricting_key_and_a_parent(
    shard: PrivateServer, schema: str, make_feed: MakeFeed, drive: Drive
) -> None:
    """Neither of them changes rows that the log does not have."""
    shard.sql(KEY.replace("CASCADE", "RESTRICT"), database=schema)
    for table in ("c", "p"):
        driver = drive(make_feed(shard), f"{schema}.{table}")
        driver.finish()
        assert [row["id"] for row in driver.rows] == [1, 2]
