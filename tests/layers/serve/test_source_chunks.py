"""What keeps a chunk of a stream from being read, and whether the same checkpoint can go on."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import SourceError
from catchment.model.table import TableId
from catchment.serve.spark_source import driver as driver_module
from catchment.serve.spark_source.offset import Offset, read
from catchment.source import pinned
from tests.conftest import Shards
from tests.layers.serve.conftest import Drive, MakeFeed
from tests.layers.serve.direct import Driver
from tests.world.patience import PATIENCE_SECONDS

FreshSchema = Callable[..., str]
KV = "CREATE TABLE kv (k INT PRIMARY KEY, v VARCHAR(2000))"


def _planned(driver: Driver) -> Offset:
    """The end of a batch with a chunk, which begins at the driver's offset, as it lies in a checkpoint."""
    driver.planner.prepareForTriggerAvailableNow()
    while True:
        end: Offset = json.loads(json.dumps(driver.planner.latestOffset(driver.offset, driver.limit())))
        if any(part.get("through") for part in end["batch"].values()):
            return end
        driver.offset = end


def test_a_locked_table_is_named_and_the_checkpoint_goes_on(
    shards: Shards,
    fresh_schema: FreshSchema,
    make_feed: MakeFeed,
    drive: Drive,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver_module, "ATTEMPTS", 1)
    monkeypatch.setitem(pinned._PINNED, "lock_wait_timeout", "1")
    monkeypatch.setattr(driver_module, "TICK_SECONDS", PATIENCE_SECONDS)
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a')", database=schema)
    feed, name = make_feed(server), f"{schema}.kv"
    driver = drive(feed, name)
    end = _planned(driver)
    begin = driver.offset
    with closing(server.connect(database=schema)) as session, session.cursor() as cursor:
        cursor.execute("LOCK TABLES kv WRITE")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(driver.read, begin, end, driver.planner)
            with pytest.raises(
                SourceError, match=r"shard -80: server error 1205.*lock the table.*same checkpoint"
            ):
                driver.finish()
            with pytest.raises(SourceError, match=r"could not be read .*1205.*with the same checkpoint"):
                waiting.result()
    assert [row["k"] for row in driver.read(begin, end)] == [1]


def test_an_alter_behind_a_planned_chunk_is_named_for_good(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a')", database=schema)
    feed, name = make_feed(server), f"{schema}.kv"
    driver = drive(feed, name)
    end = _planned(driver)
    server.sql("ALTER TABLE kv ADD w INT", database=schema)
    with pytest.raises(SourceError, match=r"definition is not that of.*\(w\).*same checkpoint"):
        driver.read(driver.offset, end, driver.planner)
    again = drive(feed, name, driver.offset)
    with pytest.raises(SourceError, match=r"its definition changed at .*never.*new checkpoint"):
        again.read(again.offset, end)


def test_log_far_beyond_a_cut_comes_before_chunks(make_feed: MakeFeed, drive: Drive) -> None:
    """After a long pause in a copy every chunk would read all of that log."""
    with PrivateServer(server_id=9) as server:
        server.sql("CREATE DATABASE m", "CREATE TABLE m.other (k INT PRIMARY KEY, v LONGBLOB)")
        server.sql(
            f"CREATE TABLE m.kv {KV.partition('kv ')[2]}",
            "INSERT INTO m.kv SELECT seq, 'a' FROM m.seq_1_to_40",
        )
        feed = make_feed(server, chunk_rows=10)
        feed.write_text(
            feed.read_text().replace("chunk_rows_max: 10", "chunk_rows_max: 10\n  log_budget: 1MB")
        )
        driver = drive(feed, "m.kv", maxBytesPerTrigger="512KB", maxChunksPerTrigger=1)
        driver.step()
        server.sql(*(f"INSERT INTO m.other VALUES ({k}, REPEAT('x', 300000))" for k in range(10)))
        driver.finish()
        assert sorted(row["k"] for row in driver.rows) == list(range(1, 41))
        cuts = [read(offset, TableId("m", "kv")) for offset in driver.offsets[1:]]
        ends = [one.cut.positions["-80"].at.offset for one in cuts if one is not None]
        copied = [len(batch) for batch in driver.batches]
        last = ends[-1]
        for end, rows in zip(ends[1:], copied[1:], strict=True):
            assert rows == 0 or last - end < 2 << 20
        assert copied[1:3] == [0, 0]
