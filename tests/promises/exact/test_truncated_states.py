"""TRUNCATE of a table in each of its states: while it is copied, just created, in partitions, of a mode."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from catchment.cli.main import execute
from catchment.model.errors import Unsupported
from catchment.model.table import TableId
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_filled import never_stale
from tests.promises.exact.truncated import BEGIN, must_be_right, newest, plain
from tests.world.settled import settled


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


def test_while_the_table_is_copied(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of one row each, and TRUNCATEs between runs that have not copied all."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(copy={"chunk_rows_max": 1, "group_time": "0s", "groups_per_shard": 1})
    steps.everywhere(*BEGIN, *(f"INSERT INTO t VALUES ({key}, {key})" for key in range(11, 40)))
    copying = 0
    for fault in (Fault.AFTER_EPOCH_ROW, Fault.AFTER_MANIFEST, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW):
        steps.die_again_and_again(fault, 1)
        copying += not newest(steps).cut.copied
        steps.sql(
            "-80", "INSERT INTO t VALUES (9, 9), (0, 0)", "TRUNCATE t", "INSERT INTO t VALUES (2, 5), (7, 7)"
        )
    steps.sql("80-", "TRUNCATE t")
    assert copying > 2
    must_be_right(steps, "id", "n")


@pytest.mark.parametrize(
    "statements",
    [
        "TRUNCATE u; INSERT INTO u VALUES (1, 2), (3, 3)",
        "INSERT INTO u VALUES (1, 1); TRUNCATE u; INSERT INTO u VALUES (2, 2)",
    ],
)
def test_of_a_table_that_was_just_created(steps: Steps, statements: str) -> None:
    steps.everywhere("CREATE TABLE u (id INT PRIMARY KEY, n INT)", *statements.split(";"))
    steps.run()
    steps.everywhere("INSERT INTO t VALUES (99, 99)")
    must_be_right(steps, "id", "n", table="u")


def test_an_erasure_reaches_rows_that_are_gone(steps: Steps) -> None:
    """In the tail, too, where a TRUNCATE left them."""
    settled(steps.feed)
    steps.everywhere("INSERT INTO t VALUES (4, 40)")
    steps.run()
    steps.everywhere("TRUNCATE t", "INSERT INTO t VALUES (5, 50)")
    steps.run()
    settled(steps.feed)
    assert (
        execute(["erase", str(steps.file), "--table", f"{steps.schema}.t", "--keys", "2", "--keys", "4"]) == 0
    )
    held = [
        pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist()
        for file in Path(str(steps.feed.sink.path)).rglob("*.parquet")
        if "_delta_log" not in file.parts and f"/{steps.schema}/t/" in str(file)
    ]
    assert held
    assert not {2, 4} & {key for keys in held for key in keys}
    must_be_right(steps, "id", "n")


def test_a_truncate_of_a_table_in_partitions(steps: Steps) -> None:
    """Statements on partitions that leave all rows go by, whatever rows are written between them."""
    low = "(PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN (99))"
    for number, statement in enumerate(
        (
            f"ALTER TABLE t PARTITION BY RANGE (id) {low}",
            "ALTER TABLE t REORGANIZE PARTITION p1 INTO (PARTITION a VALUES LESS THAN (9), PARTITION b VALUES LESS THAN"
            " (99))",
            "ALTER TABLE t ADD PARTITION (PARTITION c VALUES LESS THAN (999))",
            "TRUNCATE t",
            "ALTER TABLE t OPTIMIZE PARTITION a",
            "ALTER TABLE t REMOVE PARTITIONING",
            "ALTER TABLE t PARTITION BY KEY () PARTITIONS 3",
            "ALTER TABLE t COALESCE PARTITION 1",
        )
    ):
        steps.everywhere(f"INSERT INTO t VALUES ({number + 10}, 1)", statement, "UPDATE t SET n = n + 1")
        steps.must_be_equal("t", "id", "n")
    must_be_right(steps, "id", "n")
    assert len(steps.lake("t", "id")) == 8


def test_a_partition_that_goes_copies_the_table_anew(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    steps.everywhere(
        "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN (9))"
    )
    steps.must_be_equal("t", "id", "n")
    assert never_stale(steps)
    steps.everywhere("ALTER TABLE t TRUNCATE PARTITION p0")
    steps.must_stop(caplog, "t", "not one that is known")


def test_a_table_that_is_being_copied_anew(steps: Steps) -> None:
    """The new copy goes on, without the rows that it had."""
    proof = "INSERT INTO other VALUES (NULL)"
    steps.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", proof)
    steps.renew(proof)
    steps.set(copy={"chunk_rows_max": 1, "group_time": "0s", "groups_per_shard": 1})
    steps.everywhere("ALTER TABLE t ORDER BY id", proof, proof)
    table = TableId(steps.schema, "t")
    generation = 0
    for number in range(6):
        steps.die_again_and_again(Fault.AFTER_EPOCH_ROW, 1)
        manifest = newest(steps)
        began = [shape.generation for shape in manifest.shapes if shape.table == table]
        generation = generation or (began[0] if began else 0)
        if began:
            steps.everywhere("TRUNCATE t", f"INSERT INTO t VALUES ({number}, 1), (50, 5)")
        steps.everywhere(proof)
    steps.renew(proof)
    steps.must_be_equal("t", "id", "n")
    assert newest(steps).shape(table).generation == generation > 0
    settled(steps.feed)
    assert plain(steps, "id", "n") == steps.source("t", "id", "n")


@pytest.mark.parametrize("mode", ["soft_delete", "history", "append"])
def test_a_table_that_keeps_the_past_is_stale(
    steps: Steps, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    steps.set(modes=[{"match": "*.u", "mode": mode}])
    steps.everywhere("CREATE TABLE u (id INT PRIMARY KEY, n INT)", "INSERT INTO u VALUES (1, 1)")
    steps.renew("INSERT INTO t VALUES (100 * RAND(), 5) ON DUPLICATE KEY UPDATE n = 6")
    steps.everywhere("TRUNCATE u")
    steps.must_stop(caplog, "u", f"truncated, which logs no rows, and its mode is {mode}")


@pytest.mark.parametrize(("policy", "why"), [("freeze", "it was truncated.* freeze"), ("fail", "")])
def test_other_policies(steps: Steps, caplog: pytest.LogCaptureFixture, policy: str, why: str) -> None:
    steps.set(schema_change=policy)
    steps.everywhere("TRUNCATE t")
    if policy == "freeze":
        steps.must_stop(caplog, "t", why)
    else:
        with pytest.raises(Unsupported, match=r"truncated.* schema_change is fail"):
            steps.run()
        steps.set(schema_change="evolve")
        must_be_right(steps, "id", "n")


@pytest.mark.parametrize("statement_format", ["ROW", "MIXED", "STATEMENT"])
def test_a_temporary_table_of_the_same_name(
    steps: Steps, statement_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In ROW format servers log nothing of it. Else a flag tells it, and the table is copied anew."""
    server = steps.servers["-80"]
    own = server.connect(database=steps.schema, init_command=f"SET binlog_format = {statement_format}")
    with own, own.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)")
        cursor.execute("TRUNCATE TABLE t")
        cursor.execute("DROP TEMPORARY TABLE t")
    mixed_on_mysql = statement_format == "MIXED" and server.sql("SELECT VERSION()")[0][0].startswith("8.")
    if statement_format == "ROW" or mixed_on_mysql:
        must_be_right(steps, "id", "n")
        assert len(steps.lake("t", "id")) == 6
    else:
        steps.must_stop(caplog, "t", "it was truncated")
