"""TRUNCATE in tables with keys of all kinds, that have just come or are copied again, and beside a temporary table."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from catchment.cli.main import execute
from catchment.model.table import TableId
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch, stale_since
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.chosen import on_mysql
from tests.world.settled import settled

BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
)


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two shards that has not begun."""
    run_here(monkeypatch)
    return Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))


KEYS = {
    "composite": "(k VARCHAR(9) COLLATE utf8mb4_general_ci, id INT, n INT, PRIMARY KEY (k, id))",
    "unique_key": "(k VARCHAR(9) NOT NULL, id INT NOT NULL, n INT, UNIQUE KEY (k, id))",
    "collated": "(k VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, id INT, n INT)",
}
TURNS = (
    "UPDATE t SET n = 7; TRUNCATE t",
    "INSERT INTO t VALUES ('A', 1, 1), ('b', 3, 3)",
    "TRUNCATE t; INSERT INTO t VALUES ('A', 1, 2)",
)


def test_keys_of_all_kinds(steps: Steps) -> None:
    """Each epoch settled by itself, then all of them at once. Rows of the other shard stay, with the same keys, too."""
    rows = "INSERT INTO t VALUES ('a', 1, 1), ('B', 2, 2)"
    cases = Cases(steps, {name: (f"CREATE TABLE t {columns}", rows) for name, columns in KEYS.items()})
    cases.begin()
    for settles in (True, False):
        for statements in TURNS:
            for shards in (("-80",), ("80-",)):
                cases.turn(dict.fromkeys(KEYS, statements), *shards)
                cases.compare()
            if settles:
                cases.settle()
    cases.settle()
    cases.must_be_followed()


def test_tables_that_were_just_created(steps: Steps) -> None:
    turns = {
        "before_rows": "TRUNCATE t; INSERT INTO t VALUES (1, 2), (3, 3)",
        "among_rows": "INSERT INTO t VALUES (1, 1); TRUNCATE t; INSERT INTO t VALUES (2, 2)",
    }
    Cases(steps, {"other": BEGIN}).begin()
    cases = Cases(steps, dict.fromkeys(turns, BEGIN[:1]))
    cases.make()
    cases.write(turns)
    steps.run()
    steps.everywhere("INSERT INTO other VALUES (99, 99)")
    steps.run()
    cases.settle()
    cases.must_be_followed(*turns)
    assert not [one for row in every_epoch(steps) for one in row.manifest.stale]


def test_an_erasure_reaches_rows_that_are_gone(steps: Steps) -> None:
    """In the tail, too, where a TRUNCATE left them."""
    cases = Cases(steps, {"t": BEGIN})
    cases.begin()
    settled(steps.feed)
    cases.turn({"t": "INSERT INTO t VALUES (4, 40)"})
    cases.turn({"t": "TRUNCATE t; INSERT INTO t VALUES (5, 50)"})
    settled(steps.feed)
    name = f"{steps.schema}.t"
    assert execute(["erase", str(steps.file), "--table", name, "--keys", "2", "--keys", "4"]) == 0
    held = [
        pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist()
        for file in Path(str(steps.feed.sink.path)).rglob("*.parquet")
        if "_delta_log" not in file.parts and f"/{steps.schema}/t/" in str(file)
    ]
    assert held
    assert not {2, 4} & {key for keys in held for key in keys}
    cases.settle()
    cases.must_be_followed()


def test_a_table_that_is_being_copied_again(steps: Steps) -> None:
    """The new copy goes on, without the rows that it had."""
    proof = "INSERT INTO other VALUES (NULL)"
    cases = Cases(steps, {"t": BEGIN, "other": ("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)", proof)})
    cases.begin()
    steps.set(copy={"chunk_rows_max": 1, "group_time": "0s", "groups_per_shard": 1})
    steps.everywhere("ALTER TABLE t ORDER BY id", proof, proof)
    table = TableId(steps.schema, "t")
    generation = 0
    for number in range(6):
        steps.die_again_and_again(Fault.AFTER_EPOCH_ROW, 1)
        began = [shape.generation for shape in every_epoch(steps)[-1].manifest.shapes if shape.table == table]
        generation = generation or (began[0] if began else 0)
        if began:
            steps.everywhere("TRUNCATE t", f"INSERT INTO t VALUES ({number}, 1), (50, 5)")
        steps.everywhere(proof)
    steps.renew(proof)
    cases.settle()
    assert every_epoch(steps)[-1].manifest.shape(table).generation == generation > 0


def test_a_temporary_table_of_the_same_name(steps: Steps) -> None:
    """In ROW format servers log nothing of it. Else a flag tells it, and the table is copied again."""
    tables = dict.fromkeys(("by_row", "by_mixed", "by_statement"), BEGIN)
    cases = Cases(steps, tables)
    cases.begin()
    last = every_epoch(steps)[-1].manifest.epoch
    cases.write(
        {
            name: f"SET binlog_format = {name.removeprefix('by_').upper()};"
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY); TRUNCATE TABLE t; DROP TEMPORARY TABLE t"
            for name in tables
        },
        "-80",
    )
    steps.run()
    stale = stale_since(steps, last)
    assert stale.keys() == ({"by_statement"} if on_mysql() else {"by_mixed", "by_statement"})
    assert all("it was truncated" in reason for reason in stale.values())
    cases.compare()
