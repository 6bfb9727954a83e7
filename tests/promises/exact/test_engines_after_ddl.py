"""Every engine reads what DDL did to rows before a settle, with the values that row events show afterwards."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from catchment.api.read import read
from tests.conftest import Shards
from tests.promises.exact.cases import Cases
from tests.promises.exact.ddl_cases import BIG, FILLED, RENAMED, TRUNCATED, WIDE, WIDENED
from tests.promises.exact.steps import Steps, run_here

TYPES = (
    "BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615",
    "DECIMAL(9,2) NOT NULL DEFAULT '-0.5'",
    "DOUBLE NOT NULL DEFAULT 3",
    "FLOAT DEFAULT 16777216",
    "DOUBLE NOT NULL DEFAULT 0.1",
    "FLOAT NOT NULL DEFAULT '-12.3456789'",
    "TIME(3) NOT NULL DEFAULT '-08:30:00.25'",
    "VARCHAR(30) NOT NULL DEFAULT 'it''s {new} \"%s\" `x`'",
    "VARCHAR(9) CHARACTER SET latin1 NOT NULL",
    "TEXT NOT NULL",
    "VARBINARY(9) NOT NULL",
    "ENUM('x','y') NOT NULL",
    "SET('x','y') DEFAULT 'y'",
    "DATE NOT NULL DEFAULT '2026-02-28'",
    "DATETIME(6) DEFAULT '2026-02-28 01:02:03.000004'",
    "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
    "BIT(9) DEFAULT 300",
    "VARBINARY(9) NOT NULL DEFAULT x'00ff27'",
    "BINARY(3) NOT NULL DEFAULT b'1'",
    "YEAR DEFAULT 1999",
    "BOOLEAN NOT NULL DEFAULT TRUE",
)
ADDED = ", ".join(f"ADD COLUMN c{number} {kind}" for number, kind in enumerate(TYPES))
TABLES = {"filled": FILLED, "truncated": TRUNCATED, "renamed": RENAMED, "wider": WIDENED}
TURNS = (
    {
        "filled": f"ALTER TABLE t {ADDED}",
        "truncated": "INSERT INTO t VALUES (4, 4)",
        "renamed": "ALTER TABLE t CHANGE a `c{d}` BIGINT; UPDATE t SET `c{d}` = 12345678901 WHERE id = 1",
        "wider": f"{WIDE}; UPDATE t SET {BIG} WHERE id = 1",
    },
    {
        "truncated": "TRUNCATE t; INSERT INTO t VALUES (4, 5)",
        "renamed": "ALTER TABLE t RENAME COLUMN `c{d}` TO e",
    },
)


def test_every_engine_reads_it_before_a_settle(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkContext,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    cases = Cases(steps, {name: kind.begin for name, kind in TABLES.items()})
    cases.begin()
    for turn in TURNS:
        cases.turn(turn)
        cases.compare("truncated", "renamed", "wider")
    states = read(steps.feed, [f"{steps.schema}.{table}" for table in TABLES])
    session = SparkSession(spark)
    told: dict[str, pa.Table] = {}
    for table, state in zip(TABLES, states, strict=True):
        rows = told[table] = sorted_rows(state.arrow())
        for other in (
            state.spark(session).toArrow(),
            state.duckdb().to_arrow_table(),
            state.polars().to_arrow(),
        ):
            assert sorted_rows(other).to_pylist() == rows.to_pylist(), table
    names = [f"c{number}" for number in range(len(TYPES))]
    assert not any(told["filled"][name].null_count for name in names)
    cases.turn({"filled": "UPDATE t SET n = n + 1"})
    logged = sorted_rows(read(steps.feed, f"{steps.schema}.filled").arrow())
    assert logged.select(names).equals(told["filled"].select(names))
    cases.must_be_followed()


def sorted_rows(rows: pa.Table) -> pa.Table:
    """The rows in the order of their keys."""
    return rows.sort_by([("_shard", "ascending"), ("id", "ascending")])
