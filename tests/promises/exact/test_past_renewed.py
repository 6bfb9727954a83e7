"""Tables that keep their past and are copied again: what stands is compared, and only the differences are written.

What is expected is worked out here from what the plain tables had before and what the shards have now.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun, Thread
from tests.promises.exact.kept_past import (
    Row,
    exact_since,
    expected,
    last_of,
    must_be,
    must_tell,
    plain,
    source,
)
from tests.promises.exact.manifests import carried, must_be_equal, newest, stale
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.settled import settled

MODES = {"kept": "soft_delete", "logged": "append", "aged": "history"}
PROOF = ("INSERT INTO other VALUES (NULL)",)
PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"
MADE = "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(20), n INT)"
KEYS = {*range(1, 21)} - {3, 13}
# What a MODIFY may do to values, the column, and what stands in the lake then.
LOSSY = {
    "shorter": ("MODIFY v VARCHAR(2)", "v", pl.String),
    "narrower": ("MODIFY n TINYINT", "n", pl.Int32),
    "wider": ("MODIFY n BIGINT, ORDER BY id", "n", pl.Int64),
    "by_key": ("MODIFY id BIGINT", "id", pl.Int64),
    "charset": ("MODIFY v VARCHAR(20) CHARACTER SET latin1", "v", pl.String),
    "renamed": ("CHANGE v w VARCHAR(30), ORDER BY id", "w", pl.String),
}
MADE_AGAIN = (
    "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(20), n INT, m INT)",
    "INSERT INTO {t} VALUES (1, 'new', 1, 1), (2, '-802', 2, NULL)",
)


def named(way: str) -> list[str]:
    """The tables of a way, one in each mode."""
    return [f"{name}_{way}" for name in MODES]


def mode_of(table: str) -> str:
    return MODES[table.partition("_")[0]]


def begun(
    directory: Path, servers: Servers, schema: str, patch: pytest.MonkeyPatch, ways: Iterable[str]
) -> tuple[Steps, list[str]]:
    """A feed with tables in each mode that keeps the past. It is settled, and rows have one."""
    run_here(patch)
    steps, tables = Steps(directory, servers, schema), [table for way in ways for table in named(way)]
    steps.set(modes=[{"match": f"*.{name}_*", "mode": mode} for name, mode in MODES.items()])
    steps.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", *PROOF)
    for table in tables:
        made = MADE.format(t=table) + (f" {PARTS}" if table.endswith("parts") else "")
        for shard in servers:
            steps.sql(
                shard, made, f"INSERT INTO {table} SELECT seq, CONCAT('{shard}', seq), seq FROM seq_1_to_20"
            )
    steps.run()
    for table in tables:
        steps.everywhere(
            f"DELETE FROM {table} WHERE id IN (3, 13)", f"UPDATE {table} SET v = 'b' WHERE id IN (4, 14)"
        )
    steps.run()
    settled(steps.feed)
    return steps, tables


def columns_of(steps: Steps, tables: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What the shards have now."""
    return {table: steps.columns("-80", table) for table in tables}


def must_go_on(steps: Steps, before: Mapping[str, list[Row]], then: int) -> None:
    """The plain tables have what they had `before`, and what differs; older epochs are what they were."""
    columns = columns_of(steps, before)
    for table, rows in before.items():
        mode, epoch = mode_of(table), exact_since(steps, table)
        wanted = expected(mode, rows, source(steps, table, *columns[table][1:]), epoch)
        assert len(wanted) > len(rows) or mode == "soft_delete"
        must_be(plain(steps, table), wanted)
        old = catchment.read(steps.feed, f"{steps.schema}.{table}", then).arrow().to_pylist()
        assert {(row["_shard"], row["id"]) for row in old} == {
            (shard, key) for shard in steps.servers for key in KEYS
        }
    must_be_equal(steps, columns)


def stale_in(steps: Steps, tables: Sequence[str]) -> int:
    """Have the feed read what makes these tables stale, and leave them so; the epoch as of which they stand."""
    steps.set(schema_change="freeze")
    steps.everywhere(*PROOF)
    steps.run()
    assert stale(newest(steps)) == {*tables}
    (then,) = {one.epoch for one in newest(steps).stale}
    with pytest.raises(SinkError, match="is stale"):
        catchment.read(steps.file, f"{steps.schema}.{tables[0]}", strict=True)
    assert catchment.read(steps.file, f"{steps.schema}.{tables[0]}").as_of == then
    settled(steps.feed)
    steps.set(schema_change="evolve")
    return then


@pytest.mark.promise("a table that keeps its history still has it after it is copied again")
def test_the_past_of_tables_that_are_copied_again_stays(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, tables = begun(tmp_path, servers, fresh_schema(*servers.values()), monkeypatch, ["parts"])
    for table in tables:
        steps.sql("-80", f"ALTER TABLE {table} DROP PARTITION p0")
        # What the feed does not see, or sees in the log of a new copy.
        steps.everywhere(
            f"UPDATE {table} SET v = 'late' WHERE id IN (15, 4)",
            f"INSERT INTO {table} VALUES (13, 'again', 1), (50, 'new', NULL)",
            f"DELETE FROM {table} WHERE id = 16",
        )
    then = stale_in(steps, tables)
    before = {table: plain(steps, table) for table in tables}
    steps.renew(*PROOF)
    assert {table: plain(steps, table) for table in tables} == before, "no reader sees a part of it"
    must_be_equal(steps, columns_of(steps, tables))
    settled(steps.feed)
    must_go_on(steps, before, then)
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    verdict = verification.verify(steps.feed, endpoints, Here())
    assert verdict.differences == 0, verdict.found
    assert len(verdict.rows) == len(tables) + 1
    for table in tables:
        must_tell(steps, table, then, before[table])
        steps.everywhere(
            f"UPDATE {table} SET v = 'later' WHERE id = 17", f"DELETE FROM {table} WHERE id = 18"
        )
    for _ in range(2):
        steps.run()
        must_be_equal(steps, columns_of(steps, tables))
        settled(steps.feed)


def test_columns_go_on_and_what_cannot_stand_together_waits(
    servers: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Columns of other types, a table that is made again; values of two types, and another key."""
    ways = (*LOSSY, "made_again", "unlike", "rekeyed")
    steps, tables = begun(tmp_path, servers, fresh_schema(*servers.values()), monkeypatch, ways)
    steps.everywhere("SET GLOBAL sql_mode = ''")
    for way, (statement, _, _) in LOSSY.items():
        for table in named(way):
            steps.everywhere(f"ALTER TABLE {table} {statement}", f"INSERT INTO {table} VALUES (30, 'z', 7)")
    for table in named("unlike"):
        steps.everywhere(
            f"ALTER TABLE {table} MODIFY n VARCHAR(9)", f"UPDATE {table} SET n = 'x' WHERE id = 5"
        )
    for table in named("rekeyed"):
        steps.everywhere(f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (n)")
    steps.everywhere(*(f"DROP TABLE {table}" for table in named("made_again")))
    then = stale_in(steps, tables)
    before = {table: plain(steps, table) for table in tables}
    for table in named("made_again"):
        steps.everywhere(*(sql.format(t=table) for sql in MADE_AGAIN))
    steps.everywhere(*PROOF)
    waiting = [*named("unlike"), *named("rekeyed")]
    enter_all_but(steps, waiting)
    assert "column n is int there, and text now: values of both cannot stand in one column" in caplog.text
    assert "its key is (id) in the lake, and (n) now; put back the key" in caplog.text
    assert {table: plain(steps, table) for table in tables} == before, "no reader sees a part of it"
    settled(steps.feed)
    assert {table: plain(steps, table) for table in waiting} == {table: before[table] for table in waiting}
    gone_on = {table: rows for table, rows in before.items() if table not in waiting}
    must_go_on(steps, gone_on, then)
    for way, (_, name, kind) in LOSSY.items():
        for table in named(way):
            found = pl.read_delta(str(table_dir(steps.feed.sink.path, TableId(steps.schema, table))))
            assert found.schema[name] == kind, table
            steps.everywhere(f"UPDATE {table} SET n = 9 WHERE id = 30")

    for table in waiting:
        catchment.dump(steps.file, "start", f"{steps.schema}.{table}", wait=0)
    steps.everywhere(*PROOF)
    enter_all_but(steps, named("rekeyed"))
    assert stale(newest(steps)) == {*named("rekeyed")}, "no order helps against another key"
    for table in named("rekeyed"):
        steps.everywhere(f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (id)")
    steps.everywhere(*PROOF)
    steps.renew(*PROOF)
    settled(steps.feed)
    for table in named("unlike"):
        must_have_hidden(steps, table, before[table])
    for table in named("rekeyed"):
        rows = source(steps, table, "v", "n")
        must_be(plain(steps, table), expected(mode_of(table), before[table], rows, exact_since(steps, table)))
    must_be_equal(steps, columns_of(steps, tables))


def enter_all_but(steps: Steps, waiting: Sequence[str]) -> None:
    """Run the feed until all stale tables but these are copied."""
    for _ in range(10):
        steps.run()
        if stale(newest(steps)) <= {*waiting}:
            return
        steps.everywhere(*PROOF)
    raise AssertionError(f"{stale(newest(steps))} are stale, of which {carried(newest(steps))} are copied")


def must_have_hidden(steps: Steps, table: str, before: list[Row]) -> None:
    """The former values of `n`, which cannot stand beside those of now, are hidden as those of a dropped column."""
    names = {c.column.name: c.physical for s in newest(steps).shapes if s.table.name == table for c in s.kept}
    hidden = [{k: v for k, v in row.items() if k != "n"} for row in before]
    now = {
        key: {names[name]: value for name, value in row.items()}
        for key, row in source(steps, table, "v", "n").items()
    }
    wanted = expected(
        mode_of(table), [{**row, names["n"]: None} for row in hidden], now, exact_since(steps, table)
    )
    must_be(plain(steps, table), wanted)


def test_every_epoch_stays_what_it_was_while_rows_change_and_copies_begin_again(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each epoch was to readers is what the past of the plain tables says of it in the end."""
    steps, tables = begun(tmp_path, servers, fresh_schema(*servers.values()), monkeypatch, ["parts"])
    steps.set(copy={"chunk_rows_max": 50, "group_time": "0s", "groups_per_shard": 1})
    rng, end = random.Random(5), 200
    for table in tables:
        steps.everywhere(f"INSERT INTO {table} SELECT seq, 'x', seq FROM seq_60_to_{end}")
    run, over = FeedRun(steps.feed), threading.Event()
    settle = Thread("settle", lambda: run_settles(steps, run, over))
    writers = [Thread(shard, partial(write_one, steps, tables, rng, shard, end)) for shard in steps.servers]
    with run:
        for thread in (*writers, settle):
            thread.start()
        for table in tables:
            steps.sql("-80", f"ALTER TABLE {table} DROP PARTITION p0")
        must_be_exact_again(run, tables, 1)
        for table in tables:
            catchment.dump(steps.file, "restart", f"{steps.schema}.{table}")
        must_be_exact_again(run, tables, 2)
        for table in tables:
            steps.everywhere(f"ALTER TABLE {table} MODIFY n BIGINT, ORDER BY id")
        must_be_exact_again(run, tables, 3)
        run.wait_for_epochs(len(run.epochs) + 10)
        for thread in writers:
            thread.stop()
        run.wait_for_log(steps.servers)
        over.set()
        settle.stop()
    settled(steps.feed)
    for table in tables:
        steps.must_be_equal(table, "id", "v", "n")
    exact = [one.epoch for one in run.epochs if not one.stale]
    for epoch in rng.sample(exact, min(25, len(exact))):
        for table in ("aged_parts", "logged_parts"):
            then = catchment.read(steps.feed, f"{steps.schema}.{table}", epoch).arrow().to_pylist()
            past = {(row["_shard"], row["id"]): (row["v"], row["n"]) for row in as_of(steps, table, epoch)}
            assert past == {(row["_shard"], row["id"]): (row["v"], row["n"]) for row in then}, (table, epoch)


def run_settles(steps: Steps, run: FeedRun, over: threading.Event) -> None:
    """Settle, and wait for some epochs: a settle that never rests takes the processor from the feed."""
    settled(steps.feed)
    enough = len(run.epochs) + 5
    run.wait("some epochs", lambda epochs: over.is_set() or len(epochs) >= enough)


def write_one(steps: Steps, tables: Sequence[str], rng: random.Random, shard: str, end: int) -> None:
    """A change of some table. The log of what is dropped or locked meanwhile is as the server has it."""
    table, key = rng.choice(tables), rng.randrange(1, end + 20)
    statement = rng.choice(
        (
            f"UPDATE {table} SET v = '{rng.randrange(99)}' WHERE id BETWEEN {key} AND {key + 3}",
            f"DELETE FROM {table} WHERE id = {key}",
            f"REPLACE INTO {table} VALUES ({key}, 'w', {key})",
            *PROOF,
        )
    )
    steps.sql(shard, statement)
    time.sleep(0.03)  # so that the feed keeps up on a slow machine, too


def must_be_exact_again(run: FeedRun, tables: Sequence[str], times: int) -> None:
    """Wait until each table has been stale so often, and is not any more."""

    def holds(epochs: list[Manifest]) -> bool:
        generations = [
            {shape.generation for one in epochs for shape in one.shapes if shape.table.name == table}
            for table in tables
        ]
        return not epochs[-1].stale and all(len(found - {0}) >= times for found in generations)

    run.wait(f"{times} new copies", holds)


def as_of(steps: Steps, table: str, epoch: int) -> list[Row]:
    """The rows of an epoch, as the past of the plain table says."""
    rows = [row for row in plain(steps, table) if row["_epoch"] <= epoch]
    if mode_of(table) == "history":
        return [row for row in rows if row["_epoch_to"] is None or row["_epoch_to"] > epoch]
    return [*filter(last_of(rows), rows)]
