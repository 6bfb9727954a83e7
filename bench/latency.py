"""Seconds from a commit until a reader finds the row in the lake, at 100 transactions/s with defaults.

Two readers: `catchment.read`, which has the tail, and DuckDB's delta_scan, which sees what is settled. Run:
`python -m bench --only latency`.
"""

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.world.delta_scan import DeltaScan

from bench.feeds import feed, running, wait_for_copy
from bench.figures import Figure, figure, percentile
from bench.stress import writing
from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.model.errors import CatchmentError

LIMIT_SECONDS = 1.5
PER_SECOND = 100
# Several settles.
SECONDS = 45.0
WARM_SECONDS = 5.0
POLL_SECONDS = 0.05
SCAN_SECONDS = 0.5
# Until the first settle has made the plain table.
SETTLED_WITHIN_SECONDS = 60.0
TABLE = "bench.commits"

# The rows behind a key: key and time, in order of key.
RowsAfter = Callable[[int], list[tuple[int, float]]]


@dataclass
class Ages:
    """Of each row when a reader first found it, by `catchment.read` and by delta_scan; seconds between settles."""

    own: list[float]
    scanned: list[float]
    settle: float


def run(runs: int = 3) -> list[Figure]:
    """The 95th percentile and the median over all rows of a run; medians over the runs."""
    measured = [_measure() for _ in range(runs)]
    own, others = [ages.own for ages in measured], [ages.scanned for ages in measured]
    settle = measured[0].settle
    name = f"at {PER_SECOND} transactions/s"
    limits, settled = [LIMIT_SECONDS] * runs, [settle + 2.0] * runs
    return [
        _told(f"commit to readable {name}, p95", own, 0.95, "agreed", limits),
        _told(f"commit to readable {name}, p50", own, 0.50, "agreed", limits),
        _told(f"commit to delta_scan {name}, p95", others, 0.95, f"settle of {settle:g} s + 2 s", settled),
        _told(f"commit to delta_scan {name}, p50", others, 0.50, f"settle of {settle:g} s + 2 s", settled),
    ]


def _told(name: str, ages: list[list[float]], share: float, reference: str, limits: list[float]) -> Figure:
    return figure(name, [percentile(found, share) for found in ages], "s", reference, limits, 3)


def _measure() -> Ages:
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer() as server,
        DeltaScan() as scan,
        ThreadPoolExecutor(2) as readers,
    ):
        server.sql(
            "CREATE DATABASE bench",
            f"CREATE TABLE {TABLE} (id bigint AUTO_INCREMENT PRIMARY KEY, written datetime(6), sig varchar(40))",
            f"INSERT INTO {TABLE} (written, sig) VALUES (UTC_TIMESTAMP(6), 'first')",
        )
        chosen = feed(Path(directory), [server])
        lake = Path(str(chosen.sink.path))
        plain = lake / TABLE.replace(".", "/")
        now = "CONVERT_TZ(SYSDATE(6), @@time_zone, '+00:00')"
        insert = f"INSERT INTO {TABLE} (written, sig) VALUES ({now}, SHA1(@n))"
        with running(chosen) as ran:
            wait_for_copy(ran)
            with writing(server, insert, PER_SECOND):
                time.sleep(WARM_SECONDS)
                _wait_for(plain / "_delta_log")
                own = readers.submit(_poll, lambda newest: _read(lake, newest), POLL_SECONDS)
                others = readers.submit(_poll, lambda newest: _scanned(scan, plain, newest), SCAN_SECONDS)
                return Ages(own.result(), others.result(), chosen.sink.settle)


def _poll(rows_after: RowsAfter, pause: float) -> list[float]:
    """Ages of the rows when a reader first found them; the read itself counts."""
    ages: list[float] = []
    found = rows_after(0)
    newest = found[-1][0] if found else 0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        rows = rows_after(newest)
        now = time.time()
        if rows:
            ages += [now - written for _, written in rows]
            newest = rows[-1][0]
        time.sleep(pause)
    return ages


def _wait_for(log: Path) -> None:
    """Return when a log has its first version."""
    deadline = time.monotonic() + SETTLED_WITHIN_SECONDS
    while not any(log.glob("*.json")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no version of a plain table in {SETTLED_WITHIN_SECONDS:g} s: {log}")
        time.sleep(POLL_SECONDS)


def _scanned(scan: DeltaScan, plain: Path, newest: int) -> list[tuple[int, float]]:
    query = f"SELECT id, epoch(written) AS at FROM delta_scan('{plain}') WHERE id > {newest} ORDER BY id"
    return [(int(row["id"]), float(row["at"])) for row in scan.query("", query).to_pylist()]


def _read(lake: Path, newest: int) -> list[tuple[int, float]]:
    try:
        state = read(lake, TABLE).duckdb()
        found = state.filter(f"id > {newest}").project("id, epoch(written)").order("id").fetchall()
        return [(int(key), float(written)) for key, written in found]
    except CatchmentError:
        return []
