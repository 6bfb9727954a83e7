"""`spark.read.format("catchment")` against real servers."""

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catchment.demo.workload import KEYS, create_tables, load
from catchment.demo.writers import Session, Writer, Writers
from catchment.model.errors import SourceError
from catchment.serve.spark_source import CatchmentDataSource, batch
from catchment.serve.spark_source.cuts import cut_now
from catchment.serve.spark_source.stream_cut import StreamCut
from catchment.source import pinned
from tests.conftest import Shards
from tests.layers.serve.conftest import NAMES, MakeFeed
from tests.layers.serve.patient import patiently
from tests.world.judge import lake_rows, source_rows

FreshSchema = Callable[..., str]


def _read(spark: SparkSession, feed: Path, table: str, *columns: str) -> list[dict[str, Any]]:
    frame = patiently(spark.read.format("catchment").options(feed=feed, table=table).load)
    rows: list[dict[str, Any]] = patiently(frame.select(*columns or ["*"]).toArrow).to_pylist()
    return rows


def _must_equal_a_select(spark: SparkSession, shards: Shards, feed: Path, schema: str, table: str) -> None:
    rows = _read(spark, feed, f"{schema}.{table}")
    expected = source_rows(dict(zip(NAMES, shards, strict=True)), f"{schema}.{table}", KEYS[table])
    assert lake_rows(rows, KEYS[table]) == expected
    assert len(expected) == 1200
    assert {row["_change_type"] for row in rows} == {"insert"}
    assert {row["_gtid"] for row in rows} == {None}
    assert len({row["_commit_version"] for row in rows}) == 1


@pytest.mark.wide
def test_a_read_equals_a_select(
    spark: SparkSession,
    shards: Shards,
    fresh_schema: FreshSchema,
    make_feed: MakeFeed,
    subtests: pytest.Subtests,
) -> None:
    schema = fresh_schema(*shards)
    for server in shards:
        create_tables(server, schema)
        load(server, schema, 600)  # the same keys on both shards
    feed = make_feed(*shards)
    for table in KEYS:
        with subtests.test(table):
            _must_equal_a_select(spark, shards, feed, schema, table)


@pytest.mark.promise("spark.read gives the rows at one cut of all shards, exact while writes go on")
def test_a_read_under_writes_is_the_state_at_one_moment(
    spark: SparkSession, shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed
) -> None:
    """Two columns that every transaction changes together, over all rows, agree in every read. When the writers rest,
    a read equals a SELECT."""
    schema = fresh_schema(*shards)
    for server in shards:
        create_tables(server, schema)
        load(server, schema, 600)
        # Without another group behind it the ALTER is not proven visible yet.
        server.sql(
            "ALTER TABLE orders ADD COLUMN total INT NOT NULL DEFAULT 1",
            "UPDATE orders SET total = 0",
            database=schema,
        )

    def transfer(sessions: Sequence[Session], rng: random.Random) -> int:
        with sessions[0].cursor() as cursor:
            sessions[0].begin()
            cursor.execute("UPDATE orders SET total = total + 1 WHERE id <= 300 ORDER BY RAND() LIMIT 7")
            cursor.execute("UPDATE orders SET total = total - 1 WHERE id > 300 ORDER BY RAND() LIMIT 7")
            sessions[0].commit()
        return 14

    connects = [lambda server=server: server.connect(database=schema) for server in shards]
    writers = Writers([Writer([connect], transfer, seed=n, rate=40.0) for n, connect in enumerate(connects)])
    feed = make_feed(*shards, chunk_rows=60)
    with writers:
        for _ in range(2):
            before = writers.transactions
            rows = _read(spark, feed, f"{schema}.orders", "_shard", "total", "_commit_version")
            assert len(rows) == 1200
            for shard in NAMES:
                assert sum(row["total"] for row in rows if row["_shard"] == shard) == 0
            assert writers.transactions > before, "nothing was written while it read"
    _must_equal_a_select(spark, shards, feed, schema, "orders")


def test_a_partition_read_late_is_still_of_the_cut_or_too_much_log_is_said(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    create_tables(server, schema)
    load(server, schema, 500)
    options = {"feed": str(make_feed(server)), "table": f"{schema}.orders"}
    source = CatchmentDataSource(options)
    planned = source.reader(source.schema()).partitions()
    limited = CatchmentDataSource({**options, "maxLogBytes": "1KB"}).reader(source.schema())
    partitions = limited.partitions()
    server.sql(*(f"DELETE FROM orders WHERE id = {n}" for n in range(1, 51)), database=schema)
    reader = source.reader(source.schema())
    assert sum(batch.num_rows for part in planned for batch in reader.read(part)) == 500
    with pytest.raises(SourceError, match="more than 1024 bytes of log"):
        list(limited.read(partitions[0]))


@pytest.mark.wide
def test_a_table_that_stays_locked_ends_the_read(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "FRUITLESS_MAX", 2)
    monkeypatch.setitem(pinned._PINNED, "lock_wait_timeout", "1")
    schema = fresh_schema(*shards)
    for server in shards:
        create_tables(server, schema)
        load(server, schema, 10)
    source = CatchmentDataSource({"feed": str(make_feed(*shards)), "table": f"{schema}.orders"})
    reader = source.reader(source.schema())
    with closing(shards[1].connect(database=schema)) as session, session.cursor() as cursor:

        def locked_behind_the_cut(*arguments: Any) -> StreamCut:
            taken = cut_now(*arguments)
            cursor.execute("LOCK TABLES orders WRITE")
            return taken

        monkeypatch.setattr(batch, "cut_now", locked_behind_the_cut)
        with pytest.raises(
            SourceError, match=rf"80-, {schema}\.orders: no chunk could be planned in 2 tries"
        ):
            reader.partitions()
    monkeypatch.setattr(batch, "cut_now", cut_now)
    assert reader.partitions()
