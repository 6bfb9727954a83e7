"""Whole commands, from the shell to their end: a start, a copy, and backlogs, with each engine.

`catchment run` in processes of its own; Java, workers and imports count. Run: `python -m bench --only start`.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.commands import caught_up, command, epochs, first_epoch
from bench.feeds import feed
from bench.figures import Figure, figure
from bench.stress import TABLE, change_at_random, fill
from catchment.config import Feed
from catchment.demo.server import PrivateServer

ENGINES = ("local", "spark")
BULK_CHANGES = 1_000_000
ONE_ROW_TRANSACTIONS = 200_000
# Seconds that were agreed, by what is done and with which engine.
AGREED = {
    ("to the first epoch", "local"): 2.0,
    ("to the first epoch", "spark"): 8.0,
    ("copy", "local"): 4.0,
    ("copy", "spark"): 10.0,
    ("bulk", "local"): 7.0,
    ("one-row", "local"): 5.0,
}


def run(rows: int = 2_000_000, runs: int = 4) -> list[Figure]:
    """Seconds of whole commands: of the first run, which finds nothing in the machine's caches, and of the others."""
    took: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory, _server() as server:
        fill(server, rows)
        for number in range(runs):
            feeds = {e: feed(Path(directory) / f"{e}{number}", [server], engine=e) for e in ENGINES}
            for engine, chosen in feeds.items():
                took.setdefault(("copy", engine), []).append(caught_up(chosen).wall)
            server.sql(f"UPDATE {TABLE} SET sig = 'b' WHERE id = {number + 1}")
            for engine, chosen in feeds.items():
                took.setdefault(("to the first epoch", engine), []).append(_start(chosen))
            change_at_random(server, rows, BULK_CHANGES)
            for engine, chosen in feeds.items():
                took.setdefault(("bulk", engine), []).append(caught_up(chosen).wall)
            _one_row_transactions(server, rows)
            for engine, chosen in feeds.items():
                took.setdefault(("one-row", engine), []).append(caught_up(chosen).wall)
    names = {
        "to the first epoch": "a start to the first epoch",
        "copy": f"a copy of {rows} rows, whole command",
        "bulk": f"a backlog of {BULK_CHANGES} changes, whole command",
        "one-row": f"a backlog of {ONE_ROW_TRANSACTIONS} one-row transactions, whole command",
    }
    figures = []
    for what, name in names.items():
        for engine in ENGINES:
            agreed, beside = AGREED.get((what, engine)), took[what, "local"]
            cold, *warm = took[what, engine]
            figures.append(_beside(f"{name}, {engine}, cold", [cold], agreed, beside[:1]))
            figures.append(_beside(f"{name}, {engine}", warm, agreed, beside[1:]))
    return figures


def _beside(name: str, values: Sequence[float], agreed: float | None, local: Sequence[float]) -> Figure:
    if agreed is None:
        return figure(name, values, "s", "local", local, 2)
    return figure(name, values, "s", "agreed", [agreed] * len(values), 2)


def _server() -> PrivateServer:
    return PrivateServer(settings={"innodb_buffer_pool_size": "512M"})


def _start(chosen: Feed) -> float:
    """Seconds from the command to the first epoch of a run that finds a change in the log."""
    before = epochs(chosen)
    with command(chosen) as process:
        return first_epoch(chosen, process, before)["wall"]


def _one_row_transactions(server: PrivateServer, rows: int) -> None:
    """Log updates of one row each, spread at random, each a transaction."""
    server.sql(
        f"BEGIN NOT ATOMIC FOR i IN 1..{ONE_ROW_TRANSACTIONS} DO SET @k = 1 + FLOOR(RAND() * {rows});"
        f" UPDATE {TABLE} SET sig = SHA1(CONCAT(id, '-', UUID_SHORT())) WHERE id = @k; END FOR; END"
    )
