"""The stream's offsets and rows against real servers, without Spark."""

import json
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from catchment.demo.workload import KEYS, load
from catchment.model.errors import CatchmentError, ConfigError, Diverged, Unsupported
from tests.conftest import Shards
from tests.layers.serve.conftest import NAMES, Drive, MakeFeed
from tests.layers.serve.direct import as_set, in_order, position, state
from tests.world.judge import source_rows
from tests.world.prepared import prepare
from tests.world.servers.gtids import gtids_up_to, newest_gtid
from tests.world.workload import create_random_tables, random_writers

FreshSchema = Callable[..., str]
KV = "CREATE TABLE kv (k INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB"


@pytest.mark.parametrize(
    "table", [pytest.param(name, marks=() if name == "orders" else pytest.mark.wide) for name in KEYS]
)
def test_copy_and_changes_lead_to_the_source(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive, table: str
) -> None:
    """Copied in many batches under random transactions, resumed halfway, and each batch read twice."""
    schema, key = fresh_schema(*shards), KEYS[table]
    create_random_tables(shards, schema)
    for server in shards:
        load(server, schema, 300)
    feed, name = make_feed(*shards, chunk_rows=25), f"{schema}.{table}"
    with random_writers(shards, schema, seed=5, keys=300, rate=30.0) as writers:
        first = drive(feed, name, maxChunksPerTrigger=2)
        while len(first.batches) < 3:
            first.step()
        second = drive(feed, name, first.offset, maxChunksPerTrigger=3)
        second.finish()
        with writers.paused():
            second.finish()
            expected = source_rows(dict(zip(NAMES, shards, strict=True)), name, key)
    rows = first.rows + second.rows
    assert state(rows, key) == expected
    assert len(second.batches) > 2
    for driver in (first, second):
        for start, end, batch in zip(driver.offsets, driver.offsets[1:], driver.batches, strict=False):
            assert as_set(driver.read(start, end)) == as_set(batch)
    assert {row["_change_type"] for row in rows} == {
        "insert",
        "delete",
        "update_preimage",
        "update_postimage",
    }


def test_changes_have_their_types_gtids_and_order(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a'), (2, 'b')", database=schema)
    driver = drive(make_feed(server), f"{schema}.kv")
    driver.finish()
    before = time.time() - 2
    server.sql(
        "UPDATE kv SET v = 'A' WHERE k = 1",
        "UPDATE kv SET k = 9 WHERE k = 2",
        "DELETE FROM kv WHERE k = 1",
        "BEGIN",
        "INSERT INTO kv VALUES (3, 'c'), (4, 'd')",
        "COMMIT",
        database=schema,
    )
    newest = newest_gtid(server)
    driver.finish()
    copied = [(row["k"], row["_change_type"], row["_gtid"], row["_order"]) for row in driver.batches[1]]
    assert copied == [(1, "insert", None, 0), (2, "insert", None, 0)]
    changed = in_order([row for batch in driver.batches[2:] for row in batch])
    assert [(row["_change_type"], row["k"], row["v"]) for row in changed] == [
        ("update_preimage", 1, "a"),
        ("update_postimage", 1, "A"),
        ("update_preimage", 2, "b"),
        ("update_postimage", 9, "b"),
        ("delete", 1, "A"),
        ("insert", 3, "c"),
        ("insert", 4, "d"),
    ]
    assert changed[-1]["_gtid"] == changed[-2]["_gtid"] == newest
    assert len({row["_gtid"] for row in changed}) == 4
    assert all(before <= row["_commit_timestamp"].timestamp() <= time.time() + 2 for row in changed)
    assert {row["_shard"] for row in changed} == {"-80"}


def test_equal_keys_of_two_shards_are_two_rows(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    schema = fresh_schema(*shards)
    for server, value in zip(shards, "ab", strict=True):
        server.sql(KV, f"INSERT INTO kv VALUES (1, '{value}')", database=schema)
    driver = drive(make_feed(*shards), f"{schema}.kv")
    driver.finish()
    shards[0].sql("DELETE FROM kv", database=schema)
    driver.finish()
    assert state(driver.rows, ("k",)) == {("80-", (1,)): {"k": 1, "v": "b"}}


def test_latest_begins_with_changes(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a')", database=schema)
    driver = drive(make_feed(server), f"{schema}.kv", startingOffset="latest")
    driver.step()
    server.sql("INSERT INTO kv VALUES (2, 'b')", database=schema)
    driver.finish()
    assert [(row["k"], row["_change_type"]) for row in driver.rows] == [(2, "insert")]
    again = drive(make_feed(server), f"{schema}.kv", startingOffset=json.dumps(driver.offsets[1]))
    again.finish()
    assert [row["k"] for row in again.rows] == [2]


def test_a_byte_limit_ends_batches_with_groups(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    """Every offset is the end of a group, with the server's own GTID for it, and overshoots by one group
    at most.
    """
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, database=schema)
    driver = drive(make_feed(server), f"{schema}.kv", startingOffset="latest", maxBytesPerTrigger="4KB")
    driver.step()
    first = server.log_end()
    server.sql(*(f"INSERT INTO kv VALUES ({n}, REPEAT('x', {n % 20}))" for n in range(200)), database=schema)
    file, last = server.log_end()
    assert first[0] == file
    driver.finish()
    ends = [position(offset).at.offset for offset in driver.offsets[1:]]
    assert ends == sorted(set(ends))
    assert ends[-1] == last
    groups = {
        row[4] for row in server.sql(f"SHOW BINLOG EVENTS IN '{file}' FROM {first[1]}") if row[2] == "Xid"
    }
    assert set(ends[1:]) <= groups
    sizes = [after - before for before, after in pairwise(ends)]
    assert len(sizes) > 5
    assert all(4096 <= size < 4096 + 400 for size in sizes[1:-1])
    for offset in driver.offsets[1:]:
        stands = position(offset)
        assert gtids_up_to(server, stands.at.file, stands.at.offset) == str(stands.gtids)
    assert sorted(row["k"] for row in driver.rows) == list(range(200))


def test_cuts_pass_from_file_to_file(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1000, 'first')", database=schema)
    feed, name = make_feed(server), f"{schema}.kv"
    driver = drive(feed, name, maxBytesPerTrigger="1KB")
    driver.finish()
    for n in range(0, 60, 20):
        server.sql("FLUSH BINARY LOGS", "FLUSH BINARY LOGS", database=schema)
        server.sql(*(f"INSERT INTO kv VALUES ({k}, 'x')" for k in range(n, n + 20)), database=schema)
    again = drive(feed, name, driver.offset, maxBytesPerTrigger="1KB")
    again.finish()
    assert sorted(row["k"] for row in again.rows) == list(range(60))
    files = {position(offset).at.file for offset in again.offsets}
    assert len(files) >= 4
    for offset in again.offsets:
        stands = position(offset)
        assert gtids_up_to(server, stands.at.file, stands.at.offset) == str(stands.gtids)


def test_an_idle_stream_stands_still(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[1], fresh_schema(shards[1])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a')", database=schema)
    driver = drive(make_feed(server), f"{schema}.kv")
    driver.finish()
    before = server.sql("SHOW GLOBAL STATUS LIKE 'Connections'")
    began = time.thread_time()
    for _ in range(50):
        assert not driver.step()
    assert time.thread_time() - began < 2, "seconds of CPU"
    after = server.sql("SHOW GLOBAL STATUS LIKE 'Connections'")
    assert int(after[0][1]) - int(before[0][1]) < 10


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("TRUNCATE TABLE kv", "kv"),
        ("ALTER TABLE kv ADD COLUMN n INT", "start the query again"),
        ("XA START 'x'; INSERT INTO kv VALUES (7, 'x'); XA END 'x'; XA COMMIT 'x' ONE PHASE", ""),
        ("SET binlog_row_image = MINIMAL; UPDATE kv SET v = 'z'", "binlog_row_image"),
    ],
)
def test_what_cannot_be_followed_is_said(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive, statement: str, said: str
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a')", database=schema)
    driver = drive(make_feed(server), f"{schema}.kv")
    driver.finish()
    server.sql(*statement.split("; "), database=schema)
    if not said:
        driver.finish()
        assert driver.rows[-1]["k"] == 7
        return
    with pytest.raises(CatchmentError, match=said):
        driver.finish()


def test_rows_of_an_xa_transaction_come_when_it_is_committed(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    """Prepared in one batch and committed in another, by a query that was started again; then in one batch."""
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a'), (2, 'b')", database=schema)
    feed, name = make_feed(server), f"{schema}.kv"
    driver = drive(feed, name)
    driver.finish()
    prepare(
        server,
        "'s1'",
        f"UPDATE {schema}.kv SET v = 'xa' WHERE k = 1",
        f"INSERT INTO {schema}.kv VALUES (3, 'c')",
    )
    prepare(server, "'s2'", f"DELETE FROM {schema}.kv WHERE k = 2")
    driver.finish()
    assert len(driver.rows) == 2
    offset = json.loads(json.dumps(driver.offset))
    again = drive(feed, name, offset)
    server.sql("INSERT INTO kv VALUES (4, 'd')", "XA COMMIT 's1'", "XA ROLLBACK 's2'", database=schema)
    prepare(server, "'s1'", f"DELETE FROM {schema}.kv WHERE k = 4")
    server.sql("UPDATE kv SET v = 'after' WHERE k = 3", "XA COMMIT 's1'", database=schema)
    again.finish()
    assert [(row["_change_type"], row["k"], row["v"]) for row in in_order(again.rows)] == [
        ("insert", 4, "d"),
        ("update_preimage", 1, "a"),
        ("update_postimage", 1, "xa"),
        ("insert", 3, "c"),
        ("update_preimage", 3, "c"),
        ("update_postimage", 3, "after"),
        ("delete", 4, "d"),
    ]
    assert as_set(again.rows) == as_set(drive(feed, name).read(offset, again.offset))
    assert not drive(feed, name, again.offset).step()


def test_an_added_column_is_there_after_a_restart(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, "INSERT INTO kv VALUES (1, 'a')", database=schema)
    feed, name = make_feed(server), f"{schema}.kv"
    driver = drive(feed, name)
    driver.finish()
    server.sql(
        "UPDATE kv SET v = 'b'",
        "ALTER TABLE kv ADD COLUMN n INT",
        "UPDATE kv SET n = 5",
        "ALTER TABLE kv DROP COLUMN v",
        "UPDATE kv SET n = 6",
        database=schema,
    )
    with pytest.raises(Unsupported, match="column n was added"):
        driver.finish()
    after = drive(feed, name, driver.offset)
    after.finish()
    assert [(row["_change_type"], row["k"], row["n"]) for row in in_order(after.rows)] == [
        ("update_preimage", 1, None),
        ("update_postimage", 1, None),
        ("update_preimage", 1, None),
        ("update_postimage", 1, 5),
        ("update_preimage", 1, 5),
        ("update_postimage", 1, 6),
    ]


def test_a_position_of_another_log_is_refused(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    server, schema = shards[0], fresh_schema(shards[0])
    server.sql(KV, database=schema)
    feed, name = make_feed(server), f"{schema}.kv"
    driver = drive(feed, name, startingOffset="latest")
    driver.step()
    server.sql("INSERT INTO kv VALUES (1, 'a')", database=schema)
    forged = json.loads(json.dumps(driver.offset))
    forged["cut"]["shards"]["-80"]["position"]["born"] -= 1000
    with pytest.raises(Diverged, match="reset"):
        drive(feed, name, forged).finish()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option feed is missing.*option table is missing"),
        ({"feed": "/nowhere.yaml", "table": "a.b"}, "cannot read the feed file"),
        ({"feed": "x", "table": "a.b", "maxBytesPerTrigger": "0", "maxChunksPerTrigger": "x"}, "max.*max"),
    ],
)
def test_wrong_options(options: dict[str, str], said: str) -> None:
    from catchment.serve.spark_source import CatchmentDataSource

    with pytest.raises(ConfigError, match=said):
        CatchmentDataSource(options).schema()


@pytest.mark.parametrize(
    "offset",
    [
        "sooner",
        "{}",
        '{"version": 3, "start": "earliest"}',
        '{"version": 1, "shards": {}}',
        '{"version": 2, "shards": {}}',
        '{"version": 2, "cut": {"epoch": 1, "time_us": 1, "shards": {}}, "batch": {"-80": {"shown": true}}}',
    ],
)
def test_wrong_starting_offsets(
    shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive, offset: str
) -> None:
    schema = fresh_schema(shards[0])
    shards[0].sql(KV, database=schema)
    with pytest.raises(ConfigError):
        drive(make_feed(shards[0]), f"{schema}.kv", startingOffset=offset)


def test_no_such_table(shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive) -> None:
    schema = fresh_schema(shards[0])
    with pytest.raises(ConfigError, match=f"no shard has the table {schema}.kv"):
        drive(make_feed(shards[0]), f"{schema}.kv")
