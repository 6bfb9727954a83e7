"""What the lake costs: apply an epoch, settle 5 % changed rows, read, for tables of two sizes (DESIGN 10).

Changes are spread at random over the keys. Run: `python bench/sink.py [ROWS]`.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.cut import Cut
from catchment.model.epoch import (
    Commit,
    DataFile,
    EpochRow,
    LakeColumn,
    Manifest,
    Part,
    TableDelta,
    TableShape,
)
from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.sink.delta.files import write_file
from catchment.sink.delta.layout import arrow_schema, key_columns, table_dir, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.reading.lake import state
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.upkeep.table import keep_up
from catchment.state.faults import no_fault

SMALL_ROWS = 1_000_000
CHANGES = 24_000
FILE_ROWS = 1_000_000
UNSETTLED = 0.05
FEED = "bench"
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
SHAPE = TableShape(
    TableId("shop", "stress_test_pk"),
    (
        LakeColumn(Column("id", ColumnType(Kind.BIGINT)), "id"),
        LakeColumn(Column("sig", TEXT), "sig"),
        LakeColumn(Column("c", TEXT), "c"),
    ),
    ("id", "c"),
)
QUERY = "SELECT count(*), max(sig), count(*) FILTER (WHERE c > '5'), max(_epoch) FROM state"


def run(rows: int = 16_000_000, runs: int = 3) -> list[dict[str, Any]]:
    """Seconds, medians: at `rows` rows beside a million, and reads beside those of a fresh copy."""
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory:
        small = measure(Path(directory) / "small", SMALL_ROWS, runs)
        large = measure(Path(directory) / "large", rows, runs)
    name = f"apply an epoch of {CHANGES} changes, {rows} rows"
    figures = [entry(name, large["apply"], small["apply"], runs)]
    for size, seconds in ((SMALL_ROWS, small), (rows, large)):
        for name in ("settle of 5 % changed", "DuckDB read, 5 % unsettled", "DuckDB read, settled"):
            figures.append(entry(f"{name}, {size} rows", seconds[name], seconds["fresh"], runs))
    return figures


def entry(name: str, value: float, reference: float, runs: int) -> dict[str, Any]:
    """One figure; the reference is the same at a million rows (apply) or a read of a fresh copy."""
    return {
        "name": name,
        "value": round(value, 4),
        "unit": "s",
        "reference": "at 1000000 rows" if name.startswith("apply") else "DuckDB read of a fresh copy",
        "reference_value": round(reference, 4),
        "ratio": round(value / reference, 2),
        "runs": runs,
    }


def measure(root: Path, rows: int, runs: int) -> dict[str, float]:
    """Seconds of each step on a new table of `rows` rows."""
    sink = DeltaSink(root, FEED)
    sink.apply(TableDelta(SHAPE, tuple(base(root, rows))), 1, 1)
    fresh = median(runs, lambda: read(root))
    rng = np.random.default_rng(1)
    settled(root, 1)
    epochs = range(2, 2 + max(3, round(rows * UNSETTLED / CHANGES)))
    files = [write(root, Part.CHANGES, e, np.unique(rng.integers(0, rows, CHANGES))) for e in epochs]
    applied = [
        seconds(partial(sink.apply, TableDelta(SHAPE, (f,)), e, 1))
        for e, f in zip(epochs, files, strict=True)
    ]
    until = epochs[-1]
    unsettled = median(runs, lambda: read(root, until))
    settles = []
    for run_ in range(runs):
        copy = root.parent / f"{root.name}-{run_}"
        shutil.copytree(root, copy, copy_function=os.link)
        settles.append(seconds(partial(settled, copy, until)))
    return {
        "fresh": fresh,
        "apply": statistics.median(applied),
        "settle of 5 % changed": statistics.median(settles),
        "DuckDB read, 5 % unsettled": unsettled,
        "DuckDB read, settled": median(runs, lambda: read(copy, until)),
    }


def settled(root: Path, until: int) -> None:
    """Settle the table at `root`."""
    table = SHAPE.table
    order = SettleOrder(
        DeltaLog(table_dir(root, table)), DeltaLog(tail_dir(root, table)), SHAPE, FEED, 1, until
    )
    keep_up(order, lambda _: SHAPE, no_fault)


def seconds(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median(runs: int, work: Callable[[], object]) -> float:
    """Median of several runs, after one that does not count."""
    work()
    return statistics.median(seconds(work) for _ in range(runs))


def read(root: Path, epoch: int = 1) -> None:
    """One full read of all columns."""
    versions = {str(SHAPE.table): 0}
    row = EpochRow(manifest(epoch), Commit(epoch, "", 1, versions), 1)
    with duckdb.connect() as connection:
        state(root, row, SHAPE.table, origin=True).duckdb(connection).query("state", QUERY).fetchall()


def manifest(epoch: int) -> Manifest:
    """An epoch of the table."""
    return Manifest(FEED, epoch - 1, 0, Cut(epoch, 0, {}), (SHAPE,), ())


def base(root: Path, rows: int) -> Iterator[DataFile]:
    """A copy, in files of a million rows in order of key."""
    for first in range(0, rows, FILE_ROWS):
        yield write(root, Part.BASE, 1, np.arange(first, min(first + FILE_ROWS, rows)))


def write(root: Path, part: Part, epoch: int, ids: npt.NDArray[np.int64]) -> DataFile:
    """One file of rows whose texts are pseudo-random."""
    digits = pa.array(ids * 7919 * epoch % 10**18).cast(pa.string())
    columns = [
        pa.array(np.full(len(ids), "s/0")),
        pa.array(np.full(len(ids), epoch)),
        pa.array(np.zeros(len(ids), np.bool_)),
        pa.array(ids),
        pc.binary_join_element_wise(digits, digits, "-"),
        pa.array(ids % 10**8).cast(pa.string()),
    ]
    schema = arrow_schema(SHAPE)
    rows = pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    name = f"{epoch}-bench-{ids[0]}"
    directory = tail_dir(root, SHAPE.table)
    return write_file(directory, part, name, [rows], schema, key_columns(SHAPE))


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else 16_000_000), indent=1))
