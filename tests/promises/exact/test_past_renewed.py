"""Tables that keep their past and are copied again: what stands is compared, and only the differences are written.

What is expected is worked out here from what the plain tables had before and what the shards have now.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import catchment
from catchment.feed import verify as verification
from catchment.model.epoch import Manifest
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun, Thread
from tests.promises.exact.kept_past import (
    Row,
    alike,
    exact_since,
    expected,
    last_of,
    must_be,
    newest,
    plain,
    source,
)
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.settled import settled

MODES = {"kept": "soft_delete", "logged": "append", "aged": "history"}
PROOF = ("INSERT INTO other VALUES (NULL)",)
PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two shards with a table in each mode that keeps the past. It is settled, and rows have one."""
    run_here(monkeypatch)
    found = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    found.set(modes=[{"match": f"*.{table}", "mode": mode} for table, mode in MODES.items()])
    found.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", *PROOF)
    for table in MODES:
        for shard in servers:
            found.sql(
                shard,
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), n INT) {PARTS}",
                f"INSERT INTO {table} SELECT seq, CONCAT('{shard}', seq), seq FROM seq_1_to_20",
            )
    found.run()
    for table in MODES:
        found.everywhere(
            f"DELETE FROM {table} WHERE id IN (3, 13)", f"UPDATE {table} SET v = 'b' WHERE id IN (4, 14)"
        )
    found.run()
    settled(found.feed)
    return found


def must_renew(steps: Steps, *columns: str, then: int) -> None:
    """Copy all tables again, which are exact as of `then`, with what the shards have now. They keep their past."""
    before = {table: plain(steps, table) for table in MODES}
    steps.renew(*PROOF)
    for table in MODES:
        assert plain(steps, table) == before[table], "no reader sees a part of it"
        assert steps.lake(table, "id", *columns) == steps.source(table, "id", *columns)
    settled(steps.feed)
    must_go_on(steps, before, then, *columns)


def must_go_on(steps: Steps, before: Mapping[str, list[Row]], then: int, *columns: str) -> None:
    """The plain tables have what they had `before`, and what differs; older epochs are what they were."""
    for table, mode in MODES.items():
        epoch = exact_since(steps, table)
        wanted = expected(mode, before[table], source(steps, table, *columns), epoch)
        assert len(wanted) > len(before[table]) or mode == "soft_delete"
        must_be(plain(steps, table), wanted)
        assert steps.lake(table, "id", *columns) == steps.source(table, "id", *columns)
        old = catchment.read(steps.feed, f"{steps.schema}.{table}", then).arrow().to_pylist()
        assert {(row["_shard"], row["id"]) for row in old} == {
            (shard, id_) for shard in steps.servers for id_ in {*range(1, 21)} - {3, 13}
        }


def stale_in(steps: Steps) -> int:
    """Have the feed read what makes the tables stale, and leave them so; the epoch as of which they stand."""
    steps.set(schema_change="freeze")
    steps.everywhere(*PROOF)
    steps.run()
    assert {one.table.name for one in newest(steps).stale} == set(MODES)
    (then,) = {one.epoch for one in newest(steps).stale}
    with pytest.raises(SinkError, match="stands as of epoch"):
        catchment.read(steps.file, f"{steps.schema}.aged", strict=True)
    assert catchment.read(steps.file, f"{steps.schema}.aged").as_of == then
    settled(steps.feed)
    steps.set(schema_change="evolve")
    return then


def write_more(steps: Steps) -> None:
    """What the feed does not see, or sees in the log of a new copy."""
    for table in MODES:
        steps.everywhere(
            f"UPDATE {table} SET v = 'late' WHERE id IN (15, 4)",
            f"INSERT INTO {table} VALUES (13, 'again', 1), (50, 'new', NULL)",
            f"DELETE FROM {table} WHERE id = 16",
        )


def must_be_verified(steps: Steps) -> None:
    """`verify` finds all tables, and no difference."""
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    verdict = verification.verify(steps.feed, endpoints, Here())
    assert verdict.differences == 0, verdict.found
    assert len(verdict.rows) == len(MODES) + 1


def must_tell(steps: Steps, table: str, then: int, before: list[Row]) -> None:
    """The changes of a plain table since an epoch lead to what it is from what it had before."""
    rows = Counter(alike(before, [*before[0]]))
    for change in catchment.changes(steps.file, f"{steps.schema}.{table}", since=then).arrow().to_pylist():
        (row,) = alike([change], [*before[0]])
        rows[row] += -1 if change["_change_type"] in ("delete", "update_preimage") else 1
    assert min(rows.values()) >= 0, rows
    assert sorted(rows.elements()) == alike(plain(steps, table), [*before[0]])


def test_partitions_that_are_dropped(steps: Steps) -> None:
    for table in MODES:
        steps.sql("-80", f"ALTER TABLE {table} DROP PARTITION p0")
    write_more(steps)
    then = stale_in(steps)
    before = {table: plain(steps, table) for table in MODES}
    must_renew(steps, "v", "n", then=then)
    must_be_verified(steps)
    for table in MODES:
        must_tell(steps, table, then, before[table])
    for table in MODES:
        steps.everywhere(
            f"UPDATE {table} SET v = 'later' WHERE id = 17", f"DELETE FROM {table} WHERE id = 18"
        )
        steps.must_be_equal(table, "id", "v", "n")
    settled(steps.feed)
    for table in MODES:
        steps.must_be_equal(table, "id", "v", "n")


@pytest.mark.wide
def test_an_order_with_which_a_run_dies_while_it_copies(steps: Steps) -> None:
    steps.set(copy={"chunk_rows_max": 5, "group_time": "0s", "groups_per_shard": 1})
    then = newest(steps).epoch
    for table in MODES:
        catchment.dump(steps.file, "restart", f"{steps.schema}.{table}")
    write_more(steps)
    before = {table: plain(steps, table) for table in MODES}
    for fault in (Fault.AFTER_MANIFEST, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW):
        steps.die_again_and_again(fault, 3)
        settled(steps.feed)
        for one in newest(steps).stale:
            assert plain(steps, one.table.name) == before[one.table.name]
    steps.renew(*PROOF)
    settled(steps.feed)
    must_go_on(steps, before, then, "v", "n")


# What a MODIFY may do to values, and what stands in the lake's column then.
LOSSY = {
    "shorter": ("MODIFY v VARCHAR(2)", "v", pl.String),
    "narrower": ("MODIFY n TINYINT", "n", pl.Int32),
    "wider": ("MODIFY n BIGINT DEFAULT (1 + 1)", "n", pl.Int64),
    "wider key": ("MODIFY id BIGINT", "id", pl.Int64),
    "character set": ("MODIFY v VARCHAR(20) CHARACTER SET latin1", "v", pl.String),
    "renamed": ("CHANGE v w VARCHAR(30) DEFAULT (1 + 1)", "w", pl.String),
}


@pytest.mark.parametrize("way", [pytest.param(way, marks=pytest.mark.wide) for way in LOSSY])
def test_a_column_that_goes_on(steps: Steps, way: str) -> None:
    statement, name, kind = LOSSY[way]
    steps.everywhere("SET GLOBAL sql_mode = ''")
    for table in MODES:
        steps.everywhere(f"ALTER TABLE {table} {statement}", f"INSERT INTO {table} VALUES (30, 'z', 7)")
    columns = steps.columns("-80", "aged")[1:]
    must_renew(steps, *columns, then=stale_in(steps))
    for table in MODES:
        found = pl.read_delta(str(table_dir(steps.feed.sink.path, TableId(steps.schema, table))))
        assert found.schema[name] == kind
        steps.everywhere(f"UPDATE {table} SET n = 9 WHERE id = 30")
        steps.must_be_equal(table, "id", *columns)
    settled(steps.feed)
    for table in MODES:
        steps.must_be_equal(table, "id", *columns)


@pytest.mark.wide
def test_values_that_cannot_stand_together_wait_for_an_order(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    for table in MODES:
        steps.everywhere(
            f"ALTER TABLE {table} MODIFY n VARCHAR(9)", f"UPDATE {table} SET n = 'x' WHERE id = 5"
        )
    before = {table: plain(steps, table) for table in MODES}
    steps.everywhere(*PROOF)
    for _ in range(2):
        steps.run()
        steps.everywhere(*PROOF)
    assert "column n is int there, and text now: values of both cannot stand in one column" in caplog.text
    assert {one.table.name for one in newest(steps).stale} == set(MODES)
    settled(steps.feed)
    assert before == {table: plain(steps, table) for table in MODES}
    for table in MODES:
        catchment.dump(steps.file, "start", f"{steps.schema}.{table}")
    steps.renew(*PROOF)
    settled(steps.feed)
    for table, mode in MODES.items():
        names = {
            c.column.name: c.physical for s in newest(steps).shapes if s.table.name == table for c in s.kept
        }
        hidden = [{k: v for k, v in row.items() if k != "n"} for row in before[table]]
        now = source(steps, table, "v", "n")
        now = {key: {names[name]: value for name, value in row.items()} for key, row in now.items()}
        wanted = expected(mode, [{**row, names["n"]: None} for row in hidden], now, exact_since(steps, table))
        must_be(plain(steps, table), wanted)
        steps.must_be_equal(table, "id", "v", "n")


@pytest.mark.wide
def test_another_key_keeps_it_as_it_is(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    steps.everywhere(
        "ALTER TABLE aged REMOVE PARTITIONING", "ALTER TABLE aged DROP PRIMARY KEY, ADD PRIMARY KEY (n)"
    )
    before = plain(steps, "aged")
    for _ in range(2):
        catchment.dump(steps.file, "start", f"{steps.schema}.aged")
        steps.everywhere(*PROOF)
        steps.run()
    assert "its key is (id) in the lake, and (n) now; put back the key" in caplog.text
    settled(steps.feed)
    assert plain(steps, "aged") == before
    steps.everywhere("ALTER TABLE aged DROP PRIMARY KEY, ADD PRIMARY KEY (id)", *PROOF)
    steps.renew(*PROOF)
    settled(steps.feed)
    must_be(
        plain(steps, "aged"),
        expected("history", before, source(steps, "aged", "v", "n"), exact_since(steps, "aged")),
    )


@pytest.mark.wide
def test_a_table_that_is_dropped_and_made_again_goes_on(steps: Steps) -> None:
    for table in MODES:
        steps.everywhere(f"DROP TABLE {table}")
    steps.everywhere(*PROOF)
    steps.run()
    assert {one.table.name for one in newest(steps).stale} == set(MODES)
    (then,) = {one.epoch for one in newest(steps).stale}
    settled(steps.feed)
    for table in MODES:
        steps.everywhere(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), n INT, m INT)",
            f"INSERT INTO {table} VALUES (1, 'new', 1, 1), (2, '-802', 2, NULL)",
        )
    must_renew(steps, "v", "n", "m", then=then)


@pytest.mark.wide
def test_every_epoch_stays_what_it_was_while_rows_change_and_copies_begin_again(steps: Steps) -> None:
    """What each epoch was to readers is what the past of the plain tables says of it in the end."""
    steps.set(copy={"chunk_rows_max": 50, "group_time": "0s", "groups_per_shard": 1})
    rng, end = random.Random(5), 200
    for table in MODES:
        steps.everywhere(f"INSERT INTO {table} SELECT seq, 'x', seq FROM seq_60_to_{end}")
    settle = Thread("settle", lambda: settle_now_and_then(steps))
    writers = [Thread(shard, partial(write_one, steps, rng, shard, end)) for shard in steps.servers]
    with FeedRun(steps.feed) as run:
        for thread in (*writers, settle):
            thread.start()
        for table in MODES:
            steps.sql("-80", f"ALTER TABLE {table} DROP PARTITION p0")
        must_be_exact_again(run, 1)
        for table in MODES:
            catchment.dump(steps.file, "restart", f"{steps.schema}.{table}")
        must_be_exact_again(run, 2)
        for table in MODES:
            steps.everywhere(f"ALTER TABLE {table} MODIFY n BIGINT DEFAULT (1 + 1)")
        must_be_exact_again(run, 3)
        run.wait_for_epochs(len(run.epochs) + 10)
        for thread in writers:
            thread.stop()
        run.wait_for_log(steps.servers)
        settle.stop()
    settled(steps.feed)
    for table in MODES:
        steps.must_be_equal(table, "id", "v", "n")
    exact = [one.epoch for one in run.epochs if not one.stale]
    for epoch in rng.sample(exact, min(25, len(exact))):
        for table in ("aged", "logged"):
            then = catchment.read(steps.feed, f"{steps.schema}.{table}", epoch).arrow().to_pylist()
            past = {(row["_shard"], row["id"]): (row["v"], row["n"]) for row in as_of(steps, table, epoch)}
            assert past == {(row["_shard"], row["id"]): (row["v"], row["n"]) for row in then}, (table, epoch)


def settle_now_and_then(steps: Steps) -> None:
    settled(steps.feed)
    time.sleep(1)


def write_one(steps: Steps, rng: random.Random, shard: str, end: int) -> None:
    """A change of some table. The log of what is dropped or locked meanwhile is as the server has it."""
    table, key = rng.choice([*MODES]), rng.randrange(1, end + 20)
    statement = rng.choice(
        (
            f"UPDATE {table} SET v = '{rng.randrange(99)}' WHERE id BETWEEN {key} AND {key + 3}",
            f"DELETE FROM {table} WHERE id = {key}",
            f"REPLACE INTO {table} VALUES ({key}, 'w', {key})",
            *PROOF,
        )
    )
    steps.sql(shard, statement)
    time.sleep(0.03)


def must_be_exact_again(run: FeedRun, times: int) -> None:
    """Wait until each table has been stale so often, and is not any more."""

    def holds(epochs: list[Manifest]) -> bool:
        generations = [
            {shape.generation for one in epochs for shape in one.shapes if shape.table.name == table}
            for table in MODES
        ]
        return not epochs[-1].stale and all(len(found - {0}) >= times for found in generations)

    run.wait(f"{times} new copies", holds)


def as_of(steps: Steps, table: str, epoch: int) -> list[Row]:
    """The rows of an epoch, as the past of the plain table says."""
    rows = [row for row in plain(steps, table) if row["_epoch"] <= epoch]
    if MODES[table] == "history":
        return [row for row in rows if row["_epoch_to"] is None or row["_epoch_to"] > epoch]
    return [*filter(last_of(rows), rows)]
