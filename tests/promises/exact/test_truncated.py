"""TRUNCATE: servers log no row of it, and every epoch behind it lacks the rows all the same."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import catchment
from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.trial import SHARES, Alter, Trial
from tests.promises.exact.truncated import BEGIN, must_be_right, newest
from tests.world.settled import settled

ADD = "ALTER TABLE t ADD COLUMN m INT DEFAULT 4"


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.everywhere(*BEGIN)
    begun.run()
    return begun


ONE_EPOCH = {
    "alone": "TRUNCATE t",
    "behind rows": "UPDATE t SET n = 1 WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (9, 9);"
    "TRUNCATE TABLE t",
    "before rows": "TRUNCATE TABLE t; INSERT INTO t VALUES (2, 2), (4, 4)",
    "among rows": "INSERT INTO t VALUES (4, 4); UPDATE t SET n = 1 WHERE id = 1; TRUNCATE t;"
    "INSERT INTO t VALUES (1, 1), (5, 5), (6, 6); DELETE FROM t WHERE id = 6",
    "twice": "TRUNCATE t; INSERT INTO t VALUES (1, 1), (7, 7); TRUNCATE t; INSERT INTO t VALUES (8, 8)",
    "before a column": f"TRUNCATE t; INSERT INTO t VALUES (1, 1); {ADD}; INSERT INTO t VALUES (2, 2, 2)",
    "behind a column": f"INSERT INTO t VALUES (8, 8); {ADD}; TRUNCATE t; INSERT INTO t (id) VALUES (1)",
    "between columns": f"{ADD}; TRUNCATE t; ALTER TABLE t DROP n",
}


@pytest.mark.parametrize("settles", [True, pytest.param(False, marks=pytest.mark.wide)])
@pytest.mark.parametrize("statements", ONE_EPOCH.values(), ids=ONE_EPOCH)
def test_one_epoch(steps: Steps, statements: str, settles: bool) -> None:
    """`settles`: the rows from before stand in the plain table already."""
    if settles:
        settled(steps.feed)
    steps.everywhere(*statements.split(";"))
    columns = ("id", "m") if ADD in statements else ("id", "n")
    must_be_right(steps, *columns)
    steps.everywhere("DELETE FROM t WHERE id = 1", "INSERT INTO t (id) VALUES (1), (77)")
    must_be_right(steps, *columns)


def test_of_several_epochs_that_are_settled_at_once(steps: Steps) -> None:
    steps.everywhere("INSERT INTO t VALUES (4, 4)")
    steps.run()
    steps.everywhere("TRUNCATE t", "INSERT INTO t VALUES (4, 5), (2, 2)")
    steps.run()
    steps.sql("-80", "UPDATE t SET n = 6 WHERE id = 2", "TRUNCATE t")
    steps.run()
    steps.everywhere("INSERT INTO t VALUES (3, 3)")
    must_be_right(steps, "id", "n")


def test_one_shard_before_the_other_and_rows_that_move(steps: Steps) -> None:
    """Rows of the other shard stay, with the same keys, too."""
    settled(steps.feed)
    steps.sql("80-", "INSERT INTO t VALUES (5, 50)", "DELETE FROM t WHERE id = 1")
    steps.sql("-80", "INSERT INTO t VALUES (6, 60)", "TRUNCATE t", "INSERT INTO t VALUES (5, 1)")
    must_be_right(steps, "id", "n")
    assert len(steps.lake("t", "id")) == 4
    steps.sql("80-", "TRUNCATE t")
    steps.sql("-80", "INSERT INTO t VALUES (1, 1)")
    must_be_right(steps, "id", "n")


def test_every_engine_reads_it_before_a_settle(steps: Steps, spark: SparkContext) -> None:
    settled(steps.feed)
    steps.everywhere("INSERT INTO t VALUES (4, 4)")
    steps.run()
    steps.sql("-80", "TRUNCATE t", "INSERT INTO t VALUES (4, 5)")
    steps.run()
    wanted = steps.source("t", "id", "n")
    state = read(steps.feed, f"{steps.schema}.t")
    for rows in (
        state.arrow(),
        state.spark(SparkSession(spark)).toArrow(),
        state.duckdb().to_arrow_table(),
    ):
        assert sorted((row["_shard"], row["id"], row["n"]) for row in rows.to_pylist()) == wanted


def test_earlier_epochs_have_the_rows(steps: Steps) -> None:
    seen = {newest(steps).epoch: steps.source("t", "id", "n")}
    for number, statements in enumerate(
        (
            ["UPDATE t SET n = n + 1"],
            ["TRUNCATE t"],
            ["INSERT INTO t VALUES (5, 50)"],
            ["TRUNCATE t"],
            ["DO 0"],
        )
    ):
        steps.everywhere(*statements)
        steps.run()
        seen[newest(steps).epoch] = steps.source("t", "id", "n")
        if number % 2:
            settled(steps.feed)
    for epoch, wanted in seen.items():
        rows = catchment.read(steps.file, f"{steps.schema}.t", epoch).arrow().to_pylist()
        assert sorted((row["_shard"], row["id"], row["n"]) for row in rows) == wanted


def test_the_changes_tell_each_row(steps: Steps) -> None:
    """Of keys that have a row again the update, of others the delete."""
    steps.set(sink={**steps.feed.sink.model_dump(mode="json", exclude_defaults=True), "changes": True})
    settled(steps.feed)
    steps.everywhere("UPDATE t SET n = 11 WHERE id = 1")
    steps.run()
    settled(steps.feed)
    since = newest(steps).epoch
    steps.sql("-80", "INSERT INTO t VALUES (4, 4)", "TRUNCATE t", "INSERT INTO t VALUES (2, 2), (5, 5)")
    steps.run()
    settled(steps.feed)
    told = catchment.changes(steps.file, f"{steps.schema}.t", since).arrow().to_pylist()
    assert sorted((row["_shard"], row["id"], row["n"], row["_change_type"]) for row in told) == [
        ("-80", 1, 11, "delete"),
        ("-80", 2, 2, "update_postimage"),
        ("-80", 2, 20, "update_preimage"),
        ("-80", 3, 30, "delete"),
        ("-80", 5, 5, "insert"),
    ]


TABLES = {
    "composite": "(k VARCHAR(9) COLLATE utf8mb4_general_ci, id INT, n INT, PRIMARY KEY (k, id))",
    "unique": "(k VARCHAR(9) NOT NULL, id INT NOT NULL, n INT, UNIQUE KEY (k, id))",
    "collated": "(k VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, id INT, n INT)",
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_keys_of_all_kinds(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.everywhere(f"CREATE TABLE t {table}", "INSERT INTO t VALUES ('a', 1, 1), ('B', 2, 2)")
    steps.run()
    for statements in (
        ["UPDATE t SET n = 7", "TRUNCATE t"],
        ["INSERT INTO t VALUES ('A', 1, 1), ('b', 3, 3)"],
        ["TRUNCATE t", "INSERT INTO t VALUES ('A', 1, 2)"],
    ):
        steps.everywhere(*statements)
        must_be_right(steps, "k", "id", "n")


FAULTS = [
    Fault.AFTER_MANIFEST,
    Fault.BETWEEN_APPLIES,
    *(
        pytest.param(fault, marks=pytest.mark.wide)
        for fault in (Fault.AFTER_PLAN, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW)
    ),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_dies_anywhere_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    settled(steps.feed)
    steps.everywhere("UPDATE t SET n = 5 WHERE id = 3", "TRUNCATE t", "INSERT INTO t VALUES (3, 60)")
    steps.die_again_and_again(fault, 8)
    must_be_right(steps, "id", "n")


@pytest.mark.mariadb("MySQL logs the names of columns or nothing that a table could be described by")
@pytest.mark.parametrize("statements", ONE_EPOCH.values(), ids=ONE_EPOCH)
def test_a_log_that_names_no_columns(
    statements: str,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nameless: PrivateServer,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": nameless}, fresh_schema(nameless))
    steps.everywhere(*BEGIN)
    steps.run()
    steps.everywhere(*statements.split(";"))
    column = "m" if ADD in statements else "n"
    steps.must_be_equal("t", "id", column)
    steps.everywhere("INSERT INTO t (id) VALUES (77)")
    must_be_right(steps, "id", column)


@pytest.fixture(scope="module")
def nameless() -> Iterator[PrivateServer]:
    """A server whose log does not name columns."""
    with PrivateServer(server_id=7, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        yield server


@pytest.mark.parametrize("share", SHARES)
def test_every_epoch_is_exact_while_tables_are_truncated(
    servers: Servers, spark: SparkContext, fresh_schema: Callable[..., str], tmp_path: Path, share: float
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=47, chunk_rows=6)
    alters = [
        Alter(2, "-80", "TRUNCATE orders"),
        Alter(5, "80-", "TRUNCATE TABLE people"),
        Alter(9, "80-", "TRUNCATE items"),
        Alter(10, "-80", "TRUNCATE items"),
        Alter(14, "-80", "TRUNCATE TABLE people"),
        Alter(19, "-80", "TRUNCATE TABLE orders"),
        Alter(20, "-80", "TRUNCATE TABLE orders"),
        Alter(26, "80-", "TRUNCATE TABLE orders"),
        Alter(30, "80-", "TRUNCATE items"),
    ]
    verdict = trial.run(epochs=36, rest_every=8, alters=alters, share=share)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 36
    assert verdict.stale == 0
    assert verdict.plain > 10
    assert verdict.told > 10
