"""Catching up with changes that are in the log already: rate, and what the size of the table does to it.

A table is copied; while the feed is stopped, rows spread at random are changed; then a run catches up. The rate is
told to the last commit, from which on `catchment.read` has the changes, and to the run's end, from which on every
reader has them. Run: `python -m bench --only follow`.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.feeds import feed, run_until_caught_up
from bench.figures import Figure, figure
from bench.stress import change_at_random, fill
from catchment.config import Feed
from catchment.demo.server import PrivateServer

TARGET = 80_000
CHANGES_MIN = 500_000
FULL_ROWS = 16_000_000


@dataclass
class Rates:
    """Changes/s from the start of a run to its last commit, and to its end, with its settles."""

    committed: float
    settled: float


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Rates of a short and a long backlog, in a small and a large table."""
    large = FULL_ROWS if rows >= FULL_ROWS else 2 * rows
    small = large // 16
    backlogs = [max(CHANGES_MIN, large // 16), large // 4]
    figures: list[Figure] = []
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings={"innodb_buffer_pool_size": "512M"}) as little,
        PrivateServer(settings={"innodb_buffer_pool_size": "2G"}) as big,
    ):
        feeds = {
            small: _copied(Path(directory) / "small", little, small),
            large: _copied(Path(directory) / "large", big, large),
        }
        for changes in backlogs:
            rates: dict[int, list[Rates]] = {small: [], large: []}
            for _ in range(runs):
                for size, server in ((small, little), (large, big)):
                    rates[size].append(_catch_up(feeds[size], server, size, changes))
            for until in ("committed", "settled"):
                name = f"follow {changes} changes at random until {until}, table of"
                of = {size: [getattr(rate, until) for rate in found] for size, found in rates.items()}
                figures += [
                    figure(f"{name} {small} rows", of[small], "changes/s", "agreed", [TARGET] * runs),
                    figure(f"{name} {large} rows", of[large], "changes/s", f"{small} rows", of[small]),
                ]
    return figures


def _copied(directory: Path, server: PrivateServer, rows: int) -> Feed:
    fill(server, rows)
    chosen = feed(directory, [server])
    run_until_caught_up(chosen)
    return chosen


def _catch_up(chosen: Feed, server: PrivateServer, rows: int, changes: int) -> Rates:
    """Rates of a run that finds the changes in the log."""
    change_at_random(server, rows, changes)
    ran = run_until_caught_up(chosen)
    followed = sum(report.manifest.changes for _, report in ran.epochs)
    assert followed > 0, "no change was followed"
    return Rates(changes / ran.epochs[-1][0], changes / ran.seconds)
