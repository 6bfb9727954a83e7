"""Seconds from a commit until a reader finds the row in the lake, at 100 transactions/s with defaults.

Run: `python -m bench --only latency`.
"""

import tempfile
import time
from pathlib import Path

from bench.feeds import feed, running, wait_for_copy
from bench.figures import Figure, figure, percentile
from bench.stress import writing
from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.model.errors import CatchmentError

LIMIT_SECONDS = 2.5
PER_SECOND = 100
SECONDS = 20.0
WARM_SECONDS = 5.0
POLL_SECONDS = 0.05
TABLE = "bench.commits"


def run(runs: int = 3) -> list[Figure]:
    """The 95th percentile and the median over all rows of a run; medians over the runs."""
    measured = [_measure() for _ in range(runs)]
    name = f"commit to readable at {PER_SECOND} transactions/s"
    limits = [LIMIT_SECONDS] * runs
    return [
        figure(f"{name}, p95", [percentile(m, 0.95) for m in measured], "s", "agreed", limits, 3),
        figure(f"{name}, p50", [percentile(m, 0.50) for m in measured], "s", "agreed", limits, 3),
    ]


def _measure() -> list[float]:
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer() as server,
    ):
        server.sql(
            "CREATE DATABASE bench",
            f"CREATE TABLE {TABLE} (id bigint AUTO_INCREMENT PRIMARY KEY, written datetime(6), sig varchar(40))",
            f"INSERT INTO {TABLE} (written, sig) VALUES (UTC_TIMESTAMP(6), 'first')",
        )
        chosen = feed(Path(directory), [server])
        now = "CONVERT_TZ(SYSDATE(6), @@time_zone, '+00:00')"
        insert = f"INSERT INTO {TABLE} (written, sig) VALUES ({now}, SHA1(@n))"
        with running(chosen) as ran:
            wait_for_copy(ran)
            with writing(server, insert, PER_SECOND):
                time.sleep(WARM_SECONDS)
                return _poll(Path(str(chosen.sink.path)))


def _poll(lake: Path) -> list[float]:
    """Ages of the rows when the newest epoch first showed them; the read itself counts."""
    ages: list[float] = []
    newest = _rows_after(lake, 0)[-1][0]
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        rows = _rows_after(lake, newest)
        now = time.time()
        if rows:
            ages += [now - written for _, written in rows]
            newest = rows[-1][0]
        time.sleep(POLL_SECONDS)
    return ages


def _rows_after(lake: Path, newest: int) -> list[tuple[int, float]]:
    try:
        state = read(lake, TABLE).duckdb()
        found = state.filter(f"id > {newest}").project("id, epoch(written)").order("id").fetchall()
        return [(int(key), float(written)) for key, written in found]
    except CatchmentError:
        return []
