"""Full reads after many epochs of random changes, beside those of a fresh copy of the same table; what they wrote.

By `catchment.read` at the newest epoch, and by DuckDB's delta extension, which knows nothing of Catchment. Bytes
written: files that came while changes were followed, of data, vectors and logs, in plain table, tail and epochs table;
a run removes none within `sink.keep`. Run: `python -m bench --only read`.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
from tests.world.delta_scan import DeltaScan

from bench.feeds import feed, run_until_caught_up, running, wait_for_copy
from bench.figures import Figure, figure
from bench.stress import TABLE, change_one, fill, writing
from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.sink.delta.reading.state import DeltaState

FULL_EPOCHS, EPOCHS = 1000, 200
FULL_ROWS = 16_000_000
PER_SECOND = 500
READS = 5
COLUMNS = "count(*), max(sig), count(*) FILTER (WHERE c > '5'), max(_epoch)"
# Of a row of the table as the source has it: id, a digest of 40 characters, c.
ROW_BYTES = 8 + 40 + 8
WRITTEN_MAX = 6


@dataclass
class Aged:
    """What steady changes made of a lake: epochs, changes, and bytes of the files that came."""

    epochs: int
    changes: int
    written: int


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Seconds of reads over all columns; both lakes are read in turn. The long history is made once."""
    epochs = FULL_EPOCHS if rows >= FULL_ROWS else EPOCHS
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings={"innodb_buffer_pool_size": "512M"}) as server,
    ):
        fill(server, rows)
        old = feed(Path(directory) / "old", [server], epoch={"interval": "0.1s"})
        aged = _age(old, server, rows, epochs)
        fresh = feed(Path(directory) / "fresh", [server])
        run_until_caught_up(fresh)
        times = max(runs, READS) + 1
        pairs = [(_read(old), _read(fresh)) for _ in range(times)][1:]
        with DeltaScan() as scan:
            plain = [(_scan(scan, old), _scan(scan, fresh)) for _ in range(times)][1:]
        state = read(old, TABLE)
        assert isinstance(state, DeltaState)
    name = f"of {rows} rows after {aged.epochs} epochs"
    changed = [float(aged.changes * ROW_BYTES)]
    ratio = [aged.written / changed[0]]
    return [
        figure(f"catchment.read {name}", *_told(pairs, "s", "a fresh copy"), 3),
        figure(f"DuckDB's delta_scan {name}", *_told(plain, "s", "a fresh copy"), 3),
        figure(
            f"bytes written per byte of {aged.changes} changes", ratio, "bytes", "agreed", [WRITTEN_MAX], 2
        ),
        figure(
            "files of changes in that read",
            [len(state.changes)],
            "files",
            "files of the base",
            [len(state.base)],
        ),
    ]


def _told(
    pairs: Sequence[tuple[float, float]], unit: str, reference: str
) -> tuple[Sequence[float], str, str, Sequence[float]]:
    """Pairs of (value, reference) as `figure` takes them."""
    values, references = zip(*pairs, strict=True)
    return values, unit, reference, references


def _age(chosen: Feed, server: PrivateServer, rows: int, epochs: int) -> Aged:
    """Copy, then follow steady changes for so many epochs, settling when due."""
    with running(chosen) as ran:
        wait_for_copy(ran)
        first, before = len(ran.epochs), _bytes(chosen)
        with writing(server, change_one(rows), PER_SECOND):
            deadline = time.monotonic() + 2.0 * epochs
            while len(ran.epochs) - first < epochs and time.monotonic() < deadline:
                time.sleep(0.1)
    followed = ran.epochs[first:]
    changes = sum(report.manifest.changes for _, report in followed)
    return Aged(len(ran.epochs), changes, _bytes(chosen) - before)


def _bytes(chosen: Feed) -> int:
    """Bytes of a lake's files, each counted once however many names it has."""
    found = [file.stat() for file in Path(str(chosen.sink.path)).rglob("*") if file.is_file()]
    return sum({one.st_ino: one.st_size for one in found}.values())


def _read(chosen: Feed) -> float:
    state = read(chosen, TABLE)
    began = time.perf_counter()
    with duckdb.connect() as connection:
        state.duckdb(connection).query("state", f"SELECT {COLUMNS} FROM state").fetchall()
    return time.perf_counter() - began


def _scan(scan: DeltaScan, chosen: Feed) -> float:
    place = Path(str(chosen.sink.path)) / TABLE.replace(".", "/")
    began = time.perf_counter()
    scan.query("", f"SELECT {COLUMNS} FROM delta_scan('{place}')")
    return time.perf_counter() - began
