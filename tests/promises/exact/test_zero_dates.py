"""Keys that the lake cannot hold: zero dates and days that no calendar has. No row of them is lost without a word."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.epoch import standstill
from catchment.model.errors import SourceError, Unsupported
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here

ANY_DATE = "SET sql_mode = 'ALLOW_INVALID_DATES'"
COLUMNS = {
    "behind a text": "(n VARCHAR(9) COLLATE utf8mb4_bin, d DATE, v INT, PRIMARY KEY (n, d))",
    "alone": "(d DATE PRIMARY KEY, n VARCHAR(9), v INT)",
    "behind a number": "(v INT, d DATETIME(3), n VARCHAR(9), PRIMARY KEY (v, d))",
    "by the server's order": "(n VARCHAR(9) COLLATE utf8mb4_general_ci, d DATE, v INT, PRIMARY KEY (n, d))",
}


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    monkeypatch.setattr(standstill, "EPOCHS_MAX", 3)
    return Steps(tmp_path, servers, fresh_schema(*servers.values()))


@pytest.mark.parametrize("columns", COLUMNS)
def test_rows_without_a_key_are_told_of_and_come_when_they_are_corrected(steps: Steps, columns: str) -> None:
    rows = "('a', '0000-00-00', 1), ('a', '2023-02-30', 1), ('b', '2024-01-01', 2)"
    for shard in steps.servers:
        steps.sql(shard, ANY_DATE, f"CREATE TABLE t {COLUMNS[columns]}", "CREATE TABLE u (d INT PRIMARY KEY)")
        steps.sql(shard, "INSERT INTO u VALUES (1)")
    # In no log that the feed reads, as rows that have been there for long.
    steps.sql("-80", "SET sql_log_bin = 0", ANY_DATE, f"INSERT INTO t (n, d, v) VALUES {rows}")
    steps.sql("80-", "INSERT INTO t (n, d, v) VALUES ('a', '2024-01-01', 1)")
    named = rf"shard -80, {steps.schema}\.t.*key column 'd' holds .* no calendar has"
    with pytest.raises(SourceError, match=named):
        steps.run()
    assert steps.lake("u", "d") == steps.source("u", "d")
    steps.sql("-80", ANY_DATE, "UPDATE t SET d = '2024-01-02' WHERE d = '2023-02-30'")
    steps.sql("-80", ANY_DATE, "DELETE FROM t WHERE d = '0000-00-00'")
    steps.must_be_equal("t", "n", "d", "v")


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_row_without_a_key_in_the_log_ends_the_feed(steps: Steps, columns: str) -> None:
    for shard in steps.servers:
        steps.sql(shard, f"CREATE TABLE t {COLUMNS[columns]}", "CREATE TABLE u (d INT PRIMARY KEY)")
        steps.sql(shard, "INSERT INTO t (n, d, v) VALUES ('a', '2024-01-01', 1)")
    steps.must_be_equal("t", "n", "d", "v")
    steps.sql("80-", ANY_DATE, "UPDATE t SET d = '0000-00-00'", "INSERT INTO u VALUES (1)")
    for _ in range(2):
        with pytest.raises(
            Unsupported, match=rf"shard 80-, {steps.schema}\.t: key column 'd' holds .* in 1 rows"
        ):
            steps.run()
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.t"])
    steps.run("t")
    assert steps.lake("u", "d") == steps.source("u", "d")
