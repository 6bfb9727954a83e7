"""The stream on a log that does not name columns: the offset carries the table's definition."""

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import SourceError
from tests.layers.serve.conftest import NAMES, Drive, MakeFeed
from tests.layers.serve.direct import as_set, state
from tests.world.judge import source_rows


def test_offsets_carry_the_definition(make_feed: MakeFeed, drive: Drive) -> None:
    with PrivateServer(server_id=9, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        server.sql(
            "CREATE DATABASE m", "CREATE TABLE m.kv (k INT PRIMARY KEY, v INT UNSIGNED, w INT UNSIGNED)"
        )
        server.sql("INSERT INTO m.kv SELECT seq, seq, 4294967295 FROM m.seq_1_to_20")
        feed = make_feed(server, chunk_rows=8)
        first = drive(feed, "m.kv", maxChunksPerTrigger=1)
        first.step()
        server.sql("UPDATE m.kv SET v = 4294967295, w = 1 WHERE k < 5", "INSERT INTO m.kv VALUES (21, 7, 8)")
        first.finish()
        assert state(first.rows, ("k",)) == source_rows({NAMES[0]: server}, "m.kv", ("k",))
        server.sql(
            "INSERT INTO m.kv VALUES (22, 7, 8)", "ALTER TABLE m.kv DROP v", "INSERT INTO m.kv VALUES (23, 9)"
        )
        first.finish()
        (known,) = first.offset["cut"]["shards"][NAMES[0]]["definitions"]
        assert [c[0] for c in known["columns"]] == ["k", "w"]
        second = drive(feed, "m.kv", first.offset)
        server.sql("INSERT INTO m.kv VALUES (24, 10)", "DELETE FROM m.kv WHERE k = 1")
        second.finish()
        changed = [(row["_change_type"], row["k"], row["w"]) for row in second.rows]
        assert changed == [("insert", 24, 10), ("delete", 1, 1)]
        start, end = first.offsets[-2:]
        assert as_set(first.read(start, end)) == as_set(first.batches[-1])
        last = {row["k"]: (row["w"], row["v"]) for row in first.batches[-1]}
        assert last == {22: (8, None), 23: (9, None)}, "values of a column that was dropped are gone"


def test_a_stream_behind_gtids_reads_the_definition_from_the_catalog(
    make_feed: MakeFeed, drive: Drive
) -> None:
    with PrivateServer(server_id=9, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        server.sql(
            "CREATE DATABASE m", "CREATE TABLE m.kv (k INT PRIMARY KEY, v INT UNSIGNED, w INT UNSIGNED)"
        )
        ((backup,),) = server.sql("SELECT @@gtid_binlog_pos")
        server.sql("INSERT INTO m.kv VALUES (1, 4294967295, 2)", "CREATE INDEX v ON m.kv (v)")
        feed = make_feed(server)
        driver = drive(feed, "m.kv", startingGtids=backup)
        driver.finish()
        assert [(row["k"], row["v"], row["w"]) for row in driver.rows] == [(1, 4294967295, 2)]
        server.sql("ALTER TABLE m.kv DROP v")
        with pytest.raises(SourceError, match=r"shard -80, m\.kv: it was altered at"):
            drive(feed, "m.kv", startingGtids=backup).finish()


def test_a_log_that_stops_naming_columns(make_feed: MakeFeed, drive: Drive) -> None:
    """The offset in front has no definition: it is read from the catalog, for rows as for chunks."""
    with PrivateServer(server_id=9) as server:
        server.sql(
            "CREATE DATABASE m", "CREATE TABLE m.kv (k INT PRIMARY KEY, v INT UNSIGNED, w INT UNSIGNED)"
        )
        server.sql("INSERT INTO m.kv SELECT seq, seq, 4294967295 FROM m.seq_1_to_20")
        driver = drive(make_feed(server, chunk_rows=8), "m.kv", maxChunksPerTrigger=1)
        driver.step()
        server.sql(
            "SET GLOBAL binlog_row_metadata = NO_LOG",
            "UPDATE m.kv SET v = 4294967295, w = 1 WHERE k < 12",
            "INSERT INTO m.kv VALUES (21, 7, 8)",
        )
        driver.finish()
        assert state(driver.rows, ("k",)) == source_rows({NAMES[0]: server}, "m.kv", ("k",))
        server.sql("ALTER TABLE m.kv DROP v", "INSERT INTO m.kv VALUES (22, 9)")
        driver.finish()
        assert [(row["k"], row["v"], row["w"]) for row in driver.batches[-1]] == [(22, None, 9)]
