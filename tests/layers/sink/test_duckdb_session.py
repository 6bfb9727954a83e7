"""Sessions of DuckDB share what a process set up once, and nothing that one of them asks."""

import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from catchment.sink.delta.reading.duckdb_session import session_over
from tests.world.patience import PATIENCE_SECONDS


def told(setting: str, threads: int | None = None) -> object:
    with session_over([], threads) as connection:
        row = connection.execute(f"SELECT current_setting('{setting}')").fetchone()
    assert row is not None
    return row[0]


def test_they_are_in_utc_wherever_the_process_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert told("TimeZone") == "UTC"


def test_threads_are_those_of_its_own_instance() -> None:
    assert told("threads", 1) == 1
    assert told("threads", 3) == 3
    assert told("threads", 1) == 1


def test_one_knows_nothing_of_another() -> None:
    with session_over([], 1) as first, session_over([], 1) as second:
        first.register("asked", pa.table({"id": [1]}))
        first.execute("SET TimeZone = 'Asia/Tokyo'")
        assert second.execute("SELECT current_setting('TimeZone')").fetchone() == ("UTC",)
        with pytest.raises(duckdb.CatalogException):
            second.execute("SELECT * FROM asked")


def test_of_many_threads_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    with session_over([]) as connection:
        connection.execute(f"COPY (SELECT range AS id FROM range(100000)) TO '{file}'")
    sums: list[object] = []

    def add_up() -> None:
        for _ in range(20):
            with session_over([str(file)], 1) as connection:
                sums.append(connection.execute(f"SELECT sum(id) FROM '{file}'").fetchone())

    threads = [threading.Thread(target=add_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert sums == [(4999950000,)] * 80


def test_a_file_that_another_replaced_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    for number in (1, 2):
        with session_over([]) as connection:
            connection.execute(f"COPY (SELECT {number} AS id) TO '{file}'")
        with session_over([str(file)]) as connection:
            assert connection.execute(f"SELECT id FROM '{file}'").fetchone() == (number,)


FORK = """
import os, sys
from catchment.sink.delta.reading.duckdb_session import session_over

def added_up():
    with session_over([], 2) as connection:
        return connection.execute("SELECT sum(range) FROM range(1000000)").fetchone()

assert added_up() == (499999500000,)
if os.fork() == 0:
    assert added_up() == (499999500000,)
    sys.exit()
assert os.wait()[1] == 0
"""


def test_a_fork_has_its_own() -> None:
    """Without that it crashes at its end, for want of the threads."""
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=PATIENCE_SECONDS)
