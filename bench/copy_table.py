"""Copying `stress_test_pk` into the lake, idle and under 1,000 transactions/s, beside MariaDB's own client.

All three are run in turn on one private server with a warm Spark session. Run: `python -m bench --only copy`.
"""

import statistics
import tempfile
import time
from pathlib import Path

from bench.feeds import Ran, feed, run_until_caught_up
from bench.figures import Figure, figure
from bench.stress import TRANSACTIONS_PER_SECOND, change_one, fill, select_all_seconds, writing
from catchment.demo.server import PrivateServer
from catchment.engine.context import context
from catchment.sink.delta.epochs.table import EpochsTable

CLIENT = "mariadb --quick -e 'select *'"


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Rates in rows/s from the start of a run to the commit of the last chunk."""
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings={"innodb_buffer_pool_size": "512M"}) as server,
    ):
        fill(server, rows)
        began = time.perf_counter()
        context("bench", "local[2]", {})
        session = time.perf_counter() - began
        cold = session + _copy(Path(directory) / "cold", server).copied_after()
        measured = [_round(Path(directory) / str(number), server, rows) for number in range(runs)]
    clients, idle, loaded, read, written = (list(values) for values in zip(*measured, strict=True))
    name = f"copy of {rows} rows into the lake"
    return [
        figure(name, idle, "rows/s", CLIENT, clients),
        figure(f"{name}, session start included", [rows / cold], "rows/s", CLIENT, clients[:1]),
        figure(f"{name}, under {_median(written)} transactions/s", loaded, "rows/s", "the same, idle", idle),
        figure("log read per byte of log while copying", read, "bytes", "read once", [1.0] * runs, 2),
    ]


def _round(directory: Path, server: PrivateServer, rows: int) -> tuple[float, float, float, float, float]:
    """Rows/s of the client, of an idle copy and of one under load; log read per byte; transactions/s."""
    client = rows / select_all_seconds(server)
    idle = rows / _copy(directory / "idle", server).copied_after()
    with writing(server, change_one(rows), TRANSACTIONS_PER_SECOND) as writer:
        time.sleep(0.5)
        ran = _copy(directory / "loaded", server)
    return (
        client,
        idle,
        rows / ran.copied_after(),
        _log_read_per_byte(ran, directory / "loaded" / "lake"),
        writer.transactions / writer.seconds,
    )


def _copy(directory: Path, server: PrivateServer) -> Ran:
    return run_until_caught_up(feed(directory, [server]))


def _log_read_per_byte(ran: Ran, lake: Path) -> float:
    """Bytes of log that segments and groups of chunks read, per byte from the feed's first cut to the last group's end.

    That end is about the cut of the epoch after the copy's last: groups read on to where the log then ends.
    """
    reports = [report.manifest for _, report in ran.epochs]
    last = next(i for i, manifest in enumerate(reports) if manifest.cut.copied)
    copying = reports[: last + 2]
    origin = EpochsTable(lake, "bench").at(copying[0].previous)
    assert origin is not None
    covered = sum(
        copying[-1].cut.positions[shard].at.offset - position.at.offset
        for shard, position in origin.manifest.cut.positions.items()
    )
    return sum(manifest.log_bytes for manifest in copying) / max(covered, 1)


def _median(values: list[float]) -> int:
    return round(statistics.median(values))
