"""A source at rest whose last statement was DDL: its tables are copied and verified, with nothing behind it."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.api.read import read
from catchment.epoch import standstill
from catchment.feed.verify import verify
from catchment.model.table import TableId
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import Steps, run_here
from tests.world.checkpoints import ended_by_checkpoint
from tests.world.engines import Here
from tests.world.servers.chosen import on_mysql


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    monkeypatch.setattr(standstill, "STILL_FROM", 5)
    return Steps(tmp_path, servers, fresh_schema(*servers.values()))


LAST = {
    "ADD COLUMN": "ALTER TABLE t ADD COLUMN w INT NULL",
    "DROP COLUMN": "ALTER TABLE t DROP COLUMN x",
    "CREATE TABLE": "CREATE TABLE w (id INT PRIMARY KEY)",
    "CREATE INDEX": "CREATE INDEX i ON t (v)",
}
AGAIN = {
    "ADD COLUMN": "ALTER TABLE t ADD COLUMN y INT NULL",
    "DROP COLUMN": "ALTER TABLE t DROP COLUMN z",
    "CREATE TABLE": "CREATE TABLE y (id INT PRIMARY KEY)",
    "CREATE INDEX": "CREATE INDEX j ON t (v)",
}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(
            last,
            marks=[pytest.mark.promise("an idle source can be copied and verified")] * (last == "ADD COLUMN"),
        )
        for last in LAST
    ],
)
def test_a_copy_and_verify_behind_a_last_ddl(steps: Steps, last: str) -> None:
    """The DDL is the last statement of the log: behind rows that are copied, and in a new file behind changes that are
    compared. Nothing else proves visible what stands in front of it."""
    steps.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, x INT, z INT)",
        "INSERT INTO t VALUES (1, 1, 1, 1), (2, 2, 2, 2)",
        LAST[last],
    )
    steps.must_be_equal("t", "id", "v")
    must_be_verified(steps, 4)
    for shard, server in steps.servers.items():
        server.sql("FLUSH BINARY LOGS")
        if not on_mysql():
            ended_by_checkpoint(server)
        rows = "INSERT INTO t (id, v) VALUES (3, 3), (4, 4)", "UPDATE t SET v = 7 WHERE id = 1"
        steps.sql(shard, *rows, AGAIN[last])
    steps.must_be_equal("t", "id", "v")
    must_be_verified(steps, 8)


def must_be_verified(steps: Steps, rows: int) -> None:
    verdict = verify(steps.feed, {e.shard: e for e in steps.feed.endpoints()}, Here())
    assert verdict.differences == 0
    assert verdict.rows[TableId(steps.schema, "t")] == rows


def test_rows_changed_behind_an_alter_are_rewound(steps: Steps) -> None:
    """Every UPDATE gives all rows one value, behind the cut of an epoch that copies some of them: so an epoch that
    shows two values of a shard has not rewound a chunk. The log of each epoch's chunks begins before the last ALTER."""
    rows = ", ".join(f"({n}, 0)" for n in range(40))
    for shard in steps.servers:
        steps.sql(shard, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", f"INSERT INTO t VALUES {rows}")
    steps.set(copy={"chunk_rows_max": 2, "group_time": "0s", "groups_per_shard": 1})
    plans = itertools.count(1)

    def change(place: Fault) -> None:
        if place is Fault.AFTER_PLAN:
            number = next(plans)
            for shard in steps.servers:
                if number % 3 == 0:
                    verb = "ADD COLUMN w INT NULL" if number % 2 else "DROP COLUMN w"
                    steps.sql(shard, f"ALTER TABLE t {verb}")
                else:
                    steps.sql(shard, f"UPDATE t SET v = {number}")

    with FeedRun(steps.feed, change) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
    behind = 0
    for manifest in run.epochs:
        found = read(steps.feed, f"{steps.schema}.t", manifest.epoch).arrow().to_pylist()
        for shard in steps.servers:
            values = {row["v"] for row in found if row["_shard"] == shard}
            assert len(values) <= 1, f"epoch {manifest.epoch}: {values}"
            behind += bool(values)
    assert behind > 10


# Each makes the table stale, since no row event tells what it did to the rows.
COPIED_AGAIN = {
    "ADD COLUMN of the time": "ALTER TABLE t ADD w DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ORDER BY": "ALTER TABLE t ORDER BY v",
    "RENAME": "RENAME TABLE t TO t_old, t_new TO t",
    "EXCHANGE PARTITION": "ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE t",
    "CREATE OR REPLACE": "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, v INT)",
}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(
            last,
            marks=[pytest.mark.promise("a table that DDL made stale is copied again on an idle source")]
            * (last == "ORDER BY"),
        )
        for last in COPIED_AGAIN
    ],
)
def test_a_table_that_ddl_made_stale_is_copied_again_at_rest(steps: Steps, last: str) -> None:
    """One run copies it, whether the DDL is the last statement of the log or others follow it in a new file. Without a
    checkpoint event that names the new file nothing is proven there."""
    steps.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        "CREATE TABLE t_new LIKE t",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE TABLE parts (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9))",
    )
    steps.run()
    a, b = steps.servers
    for server in steps.servers.values():
        server.sql(f"DELETE FROM {steps.schema}.t WHERE id = 1", "FLUSH BINARY LOGS")
        if not on_mysql():
            ended_by_checkpoint(server)
    steps.sql(a, COPIED_AGAIN[last])
    steps.sql(b, COPIED_AGAIN[last], *(f"INSERT INTO other VALUES ({n})" for n in range(5)))
    steps.must_be_equal("t", "id", "v")
