"""Catching up with changes that are in the log already: rate, and what the size of the table does to it.

A table is copied; while the feed is stopped, rows spread at random are changed; then a run catches up, settles
included. Run: `python -m bench --only follow`.
"""

import tempfile
from pathlib import Path

from bench.feeds import feed, run_until_caught_up
from bench.figures import Figure, figure
from bench.stress import change_at_random, fill
from catchment.config import Feed
from catchment.demo.server import PrivateServer

TARGET = 80_000
CHANGES_MIN = 500_000
FULL_ROWS = 16_000_000


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Changes/s from the start of a run to its end, with its settles; a short and a long backlog."""
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
            rates: dict[int, list[float]] = {small: [], large: []}
            for _ in range(runs):
                for size, server in ((small, little), (large, big)):
                    rates[size].append(_catch_up(feeds[size], server, size, changes))
            name = f"follow {changes} changes at random, table of"
            agreed = [TARGET] * runs
            figures += [
                figure(f"{name} {small} rows", rates[small], "changes/s", "agreed", agreed),
                figure(f"{name} {large} rows", rates[large], "changes/s", f"{small} rows", rates[small]),
            ]
    return figures


def _copied(directory: Path, server: PrivateServer, rows: int) -> Feed:
    fill(server, rows)
    chosen = feed(directory, [server])
    run_until_caught_up(chosen)
    return chosen


def _catch_up(chosen: Feed, server: PrivateServer, rows: int, changes: int) -> float:
    """Changes per second of a run that finds them in the log."""
    change_at_random(server, rows, changes)
    ran = run_until_caught_up(chosen)
    followed = sum(report.manifest.changes for _, report in ran.epochs)
    assert followed > 0, "no change was followed"
    return changes / ran.seconds
