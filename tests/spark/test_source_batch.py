"""`spark.read.format("catchment")` against real servers."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, LongType, ShortType, StringType, TimestampNTZType, TimestampType

from catchment.demo.workload import KEYS, create_tables, load
from tests.conftest import Shards
from tests.judge import lake_rows, source_rows
from tests.spark.conftest import NAMES, MakeFeed
from tests.workload import create_random_tables, random_writers


@pytest.mark.parametrize("table", KEYS)
def test_a_read_equals_a_select(
    spark: SparkSession, shards: Shards, fresh_schema, make_feed: MakeFeed, table: str
) -> None:
    schema = fresh_schema(*shards)
    for server in shards:
        create_tables(server, schema)
        load(server, schema, 1200)  # the same keys on both shards
    feed = make_feed(*shards)
    frame = spark.read.format("catchment").options(feed=feed, table=f"{schema}.{table}").load()
    rows = frame.toArrow().to_pylist()
    expected = source_rows(dict(zip(NAMES, shards, strict=True)), f"{schema}.{table}", KEYS[table])
    assert lake_rows(rows, KEYS[table]) == expected
    assert len(expected) == 2400
    assert {row["_change_type"] for row in rows} == {"insert"}
    assert {row["_gtid"] for row in rows} == {None}
    assert len({row["_commit_version"] for row in rows}) == 1
    assert frame.rdd.getNumPartitions() >= 4
