"""`spark.readStream.format("catchment")` in Spark: checkpoints, restarts, AvailableNow, and what must not
be in them.
"""

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from catchment.demo.workload import KEYS, create_tables, load, steady_writers
from tests.conftest import Shards
from tests.layers.serve.conftest import NAMES, MakeFeed
from tests.layers.serve.direct import state
from tests.layers.serve.patient import patiently
from tests.layers.serve.replay import Replay
from tests.world.judge import source_rows
from tests.world.patience import PATIENCE_SECONDS

FreshSchema = Callable[..., str]
TABLE = "items"
ROWS = 300


@pytest.mark.promise(
    "a stream of the Spark source gives every row and change once, across failures and restarts"
)
def test_a_stream_is_resumed_and_repeated_exactly(
    spark: SparkSession, shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, tmp_path: Path
) -> None:
    """Copy under writes; the consumer fails during the copy, the query is stopped later, then caught up."""
    schema, key = fresh_schema(*shards), KEYS[TABLE]
    for server in shards:
        create_tables(server, schema)
        load(server, schema, ROWS)  # the same keys on both shards
    feed, name = make_feed(*shards, chunk_rows=100), f"{schema}.{TABLE}"
    replay = Replay(spark, feed, name, tmp_path / "checkpoint")
    replay.fail_at = 1
    with steady_writers(shards, schema, ROWS, rate=20.0) as writers:
        with pytest.raises(StreamingQueryException, match="fails once"):
            replay.follow(lambda: False, maxChunksPerTrigger=2)
        replay.follow(lambda: len(replay.batches) > 3, maxChunksPerTrigger=3)
        with writers.paused():
            replay.catch_up(maxChunksPerTrigger=12)
            expected = source_rows(dict(zip(NAMES, shards, strict=True)), name, key)
    assert replay.repeated[0] == 1
    assert state(replay.rows, key) == expected
    assert len({row["_commit_version"] for row in replay.rows}) > 3
    _must_not_hold(tmp_path / "checkpoint", [server.password for server in shards])
    begun = json.loads(_offsets(tmp_path / "checkpoint")[0])
    assert sorted(begun["cut"]["shards"]) == sorted(NAMES)


@pytest.mark.wide
def test_a_backlog_is_split_and_then_there_is_nothing_new(
    spark: SparkSession, shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, tmp_path: Path
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    create_tables(server, schema)
    load(server, schema, 10)
    replay = Replay(spark, make_feed(server), f"{schema}.orders", tmp_path / "checkpoint")
    replay.catch_up()
    before = len(replay.batches)
    server.sql(
        *(f"UPDATE orders SET amount = {n} WHERE id = 1 + {n} % 10" for n in range(60)), database=schema
    )
    query = replay.catch_up(maxBytesPerTrigger="4KB")
    assert len(replay.batches) - before > 3
    assert len(replay.rows) == 10 + 2 * 60
    newest = json.loads(query.lastProgress["sources"][0]["latestOffset"])
    assert newest["shards"] == {"-80": "{}:{}".format(*server.log_end())}
    after = len(replay.batches)
    replay.catch_up()
    assert len(replay.batches) == after


@pytest.mark.wide
def test_types_arrive_as_declared_and_no_password_in_the_plan(
    spark: SparkSession, shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, tmp_path: Path
) -> None:
    """Every family of types, through parquet files written by a stream, equal to a batch read."""
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(
        "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, i TINYINT, y YEAR, f FLOAT, d DOUBLE, n "
        "DECIMAL(30,5),"
        " long_n DECIMAL(60,2), b BIT(9), da DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP(6) NULL, s "
        "VARCHAR(30),"
        " bl BLOB, bi BINARY(4), e ENUM('a','b'), st SET('x','y'))",
        "INSERT INTO t VALUES (18446744073709551615, -1, 2026, 0.1, 0.1, 1.5, 2.25, 257, '2026-11-20', "
        "'-10:00:00.5',"
        " '2026-11-20 01:02:03.000004', '2026-11-20 01:02:03.5', 'naïve', 'x', 'ab', 'b', 'x,y'),"
        " (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
        "NULL)",
        database=schema,
    )
    options = {"feed": str(make_feed(server)), "table": f"{schema}.t"}
    batch = patiently(spark.read.format("catchment").options(**options).load)
    stream = patiently(spark.readStream.format("catchment").options(**options).load)
    assert stream.schema == batch.schema
    target = str(tmp_path / "out")
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))

    def written() -> StreamingQuery:
        query = writer.trigger(availableNow=True).start(target)
        assert query.awaitTermination(PATIENCE_SECONDS)
        return query

    query = patiently(written)
    columns = [name for name in batch.columns if not name.startswith("_commit")]
    delivered = spark.read.schema(batch.schema).parquet(target).select(columns)
    read = patiently(batch.select(columns).toArrow)
    assert _texts(delivered.toArrow().to_pylist()) == _texts(read.to_pylist())
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        batch.explain("extended")
        stream.explain("extended")
        query.explain(extended=True)
    assert "catchment" in said.getvalue()
    assert server.password not in said.getvalue() + repr(batch) + str(query.lastProgress)
    _must_not_hold(tmp_path / "checkpoint", [server.password])


def _texts(rows: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, rows))


def _offsets(checkpoint: Path) -> list[str]:
    """The source's offset of every batch, in order: the last line of each file of the offset log."""
    files = [file for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()]
    return [file.read_text().splitlines()[-1] for file in sorted(files, key=lambda file: int(file.name))]


def _must_not_hold(directory: Path, passwords: list[str]) -> None:
    files = [file for file in directory.rglob("*") if file.is_file()]
    assert files
    for file in files:
        content = file.read_bytes()
        assert not any(password.encode() in content for password in passwords), file
