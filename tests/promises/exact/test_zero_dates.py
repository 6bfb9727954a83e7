"""Keys that the lake cannot hold: zero dates and days that no calendar has. No row of them is lost without a word."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.feed import newcomers, pauses
from catchment.feed.runner import run_feed
from catchment.source import prove
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here

ANY_DATE = "SET sql_mode = 'ALLOW_INVALID_DATES'"
NO_KEY = "key column 'd' holds a zero date or one that no calendar has, in 2 rows"
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
    monkeypatch.setattr(pauses, "SECONDS_MAX", 0.0)
    monkeypatch.setattr(newcomers, "_PAUSE_SECONDS_MAX", 0.0)
    # Each chunk that is read again waits for that long, since nobody writes meanwhile.
    monkeypatch.setattr(prove, "SECONDS_MAX", 0.02)
    return Steps(tmp_path, servers, fresh_schema(*servers.values()))


def made(steps: Steps) -> None:
    """A table of each kind of key, and one whose keys are numbers."""
    for shard in steps.servers:
        tables = (f"CREATE TABLE {table} {columns}" for table, columns in COLUMNS.items())
        steps.sql(shard, ANY_DATE, *tables, "CREATE TABLE u (d INT PRIMARY KEY)")


def left(steps: Steps) -> dict[str, str]:
    """The tables that are not as of the epoch with which a run until caught up ends, and why."""
    outcome = run_feed(steps.feed, until_caught_up=True, stop=threading.Event())
    assert not outcome.stopped
    return {
        table: line
        for line in outcome.left
        for table in COLUMNS
        if line.startswith(f"{steps.schema}.{table} ")
    }


def test_rows_without_a_key_hold_up_their_table_until_they_are_corrected(steps: Steps) -> None:
    rows = "('a', '0000-00-00', 1), ('a', '2023-02-30', 1), ('b', '2024-01-01', 2)"
    made(steps)
    steps.everywhere("INSERT INTO u VALUES (1)")
    for table in COLUMNS:
        # In no log that the feed reads, as rows that have been there for long.
        steps.sql("-80", "SET sql_log_bin = 0", ANY_DATE, f"INSERT INTO {table} (n, d, v) VALUES {rows}")
        steps.sql("80-", f"INSERT INTO {table} (n, d, v) VALUES ('a', '2024-01-01', 1)")
    waiting = {*COLUMNS}
    for number, corrected in enumerate(COLUMNS):
        steps.everywhere(f"INSERT INTO u VALUES ({10 + number})")
        found = left(steps)
        assert found.keys() == waiting
        assert all(NO_KEY in why for why in found.values())
        assert steps.lake("u", "d") == steps.source("u", "d")
        waiting.remove(corrected)
        steps.sql("-80", ANY_DATE, f"UPDATE {corrected} SET d = '2024-01-02' WHERE d = '2023-02-30'")
        steps.sql("-80", ANY_DATE, f"DELETE FROM {corrected} WHERE d = '0000-00-00'")
    assert left(steps) == {}
    for table in COLUMNS:
        assert steps.lake(table, "n", "d", "v") == steps.source(table, "n", "d", "v")


@pytest.mark.promise("a row whose key no lake can hold makes its table stale until it is corrected")
def test_a_row_without_a_key_in_the_log_makes_its_table_stale(steps: Steps) -> None:
    made(steps)
    steps.everywhere(*(f"INSERT INTO {table} (n, d, v) VALUES ('a', '2024-01-01', 1)" for table in COLUMNS))
    for table in COLUMNS:
        steps.must_be_equal(table, "n", "d", "v")
    for number, table in enumerate(COLUMNS):
        before = steps.lake(table, "n", "d", "v")
        steps.sql("80-", ANY_DATE, f"UPDATE {table} SET d = '0000-00-00'", f"INSERT INTO u VALUES ({number})")
        for row in range(2):  # the second time the run finds it stale
            assert left(steps).keys() == {table}
            assert steps.lake("u", "d") == steps.source("u", "d")
            assert steps.lake(table, "n", "d", "v") == before
            other = f"INSERT INTO u VALUES ({10 * (number + 1) + row})"
            steps.sql("80-", other)
        steps.sql("80-", ANY_DATE, f"UPDATE {table} SET d = '2024-01-02'")
        steps.renew("INSERT INTO u SELECT MAX(d) + 1000 FROM u")
        for one in COLUMNS:
            assert steps.lake(one, "n", "d", "v") == steps.source(one, "n", "d", "v")
