"""A full DuckDB read after many epochs of random changes, beside that of a fresh copy of the same table.

Run: `python -m bench --only read`.
"""

import tempfile
import time
from pathlib import Path

import duckdb

from bench.feeds import feed, run_until_caught_up, running, wait_for_copy
from bench.figures import Figure, figure
from bench.stress import TABLE, fill, writing
from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.sink.delta.reading.state import DeltaState

FULL_EPOCHS, EPOCHS = 1000, 200
FULL_ROWS = 16_000_000
PER_SECOND = 500
READS = 5
QUERY = "SELECT count(*), max(sig), count(*) FILTER (WHERE c > '5'), max(_epoch) FROM state"


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Seconds of a read over all columns; both lakes are read in turn. The long history is made once."""
    epochs = FULL_EPOCHS if rows >= FULL_ROWS else EPOCHS
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings={"innodb_buffer_pool_size": "512M"}) as server,
    ):
        fill(server, rows)
        old = feed(Path(directory) / "old", [server], epoch={"interval": "0.1s"})
        made = _age(old, server, rows, epochs)
        fresh = feed(Path(directory) / "fresh", [server])
        run_until_caught_up(fresh)
        pairs = [(_read(old), _read(fresh)) for _ in range(max(runs, READS) + 1)][1:]
        state = read(old, TABLE)
        assert isinstance(state, DeltaState)
    aged, new = zip(*pairs, strict=True)
    name = f"DuckDB read of {rows} rows after {made} epochs"
    files = [float(len(state.changes))], [float(len(state.base))]
    return [
        figure(name, aged, "s", "a fresh copy", new, 3),
        figure("files of changes in that read", files[0], "files", "files of the base", files[1]),
    ]


def _age(chosen: Feed, server: PrivateServer, rows: int, epochs: int) -> int:
    """Copy, then follow steady changes for so many epochs, settling when due; how many there were."""
    change = f"SET @k = 1 + FLOOR(RAND() * {rows}); UPDATE {TABLE} SET sig = SHA1(@n) WHERE id = @k"
    with running(chosen) as ran:
        wait_for_copy(ran)
        first = len(ran.epochs)
        with writing(server, change, PER_SECOND):
            deadline = time.monotonic() + 2.0 * epochs
            while len(ran.epochs) - first < epochs and time.monotonic() < deadline:
                time.sleep(0.1)
        return len(ran.epochs)


def _read(chosen: Feed) -> float:
    state = read(chosen, TABLE)
    began = time.perf_counter()
    with duckdb.connect() as connection:
        state.duckdb(connection).query("state", QUERY).fetchall()
    return time.perf_counter() - began
