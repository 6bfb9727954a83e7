"""Keys that the lake cannot hold: zero dates and days that no calendar has. No row of them is lost without a word."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.epoch import standstill
from catchment.model.errors import SourceError, Unsupported
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here

ANY_DATE = "SET sql_mode = 'ALLOW_INVALID_DATES'"
COLUMNS = {
    "text": "(n VARCHAR(9) COLLATE utf8mb4_bin, d DATE, v INT, PRIMARY KEY (n, d))",
    "lone": "(d DATE PRIMARY KEY, n VARCHAR(9), v INT)",
    "number": "(v INT, d DATETIME(3), n VARCHAR(9), PRIMARY KEY (v, d))",
    "collated": "(n VARCHAR(9) COLLATE utf8mb4_general_ci, d DATE, v INT, PRIMARY KEY (n, d))",
}


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    monkeypatch.setattr(standstill, "EPOCHS_MAX", 3)
    return Steps(tmp_path, servers, fresh_schema(*servers.values()))


def made(steps: Steps) -> None:
    """A table of each kind of key, and one whose keys are numbers."""
    for shard in steps.servers:
        tables = (f"CREATE TABLE {table} {columns}" for table, columns in COLUMNS.items())
        steps.sql(shard, ANY_DATE, *tables, "CREATE TABLE u (d INT PRIMARY KEY)")


def test_rows_without_a_key_are_told_of_and_come_when_they_are_corrected(steps: Steps) -> None:
    rows = "('a', '0000-00-00', 1), ('a', '2023-02-30', 1), ('b', '2024-01-01', 2)"
    made(steps)
    steps.everywhere("INSERT INTO u VALUES (1)")
    for table in COLUMNS:
        # In no log that the feed reads, as rows that have been there for long.
        steps.sql("-80", "SET sql_log_bin = 0", ANY_DATE, f"INSERT INTO {table} (n, d, v) VALUES {rows}")
        steps.sql("80-", f"INSERT INTO {table} (n, d, v) VALUES ('a', '2024-01-01', 1)")
    named = re.compile(
        rf"shard -80, {steps.schema}\.(\w+): .*key column 'd' holds .* no calendar has, in 2 rows"
    )
    left = {*COLUMNS}
    while left:
        with pytest.raises(SourceError, match=named) as told:
            steps.run()
        assert steps.lake("u", "d") == steps.source("u", "d")
        found = named.search(str(told.value))
        assert found is not None
        left.remove(table := found[1])
        steps.sql("-80", ANY_DATE, f"UPDATE {table} SET d = '2024-01-02' WHERE d = '2023-02-30'")
        steps.sql("-80", ANY_DATE, f"DELETE FROM {table} WHERE d = '0000-00-00'")
    steps.run()
    for table in COLUMNS:
        assert steps.lake(table, "n", "d", "v") == steps.source(table, "n", "d", "v")


def test_a_row_without_a_key_in_the_log_ends_the_feed(steps: Steps) -> None:
    made(steps)
    steps.everywhere(*(f"INSERT INTO {table} (n, d, v) VALUES ('a', '2024-01-01', 1)" for table in COLUMNS))
    for number, table in enumerate(COLUMNS):
        steps.must_be_equal(table, "n", "d", "v")
        update = f"UPDATE {table} SET d = '0000-00-00'"
        steps.sql("80-", ANY_DATE, update, f"INSERT INTO u VALUES ({number})")
        for _ in range(2):
            with pytest.raises(
                Unsupported, match=rf"shard 80-, {steps.schema}\.{table}: key column 'd' holds .* in 1 rows"
            ):
                steps.run()
        gone = [f"!{steps.schema}.{one}" for one in list(COLUMNS)[: number + 1]]
        steps.set(tables=[f"{steps.schema}.*", *gone])
        steps.run(table)
        assert steps.lake("u", "d") == steps.source("u", "d")
