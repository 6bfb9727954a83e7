"""What the lake costs: apply an epoch, fold 5 % changed rows, read, for tables of two sizes (DESIGN 10).

Changes are spread at random over the keys. Run: `python bench/sink.py [ROWS]`.
"""

import json
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

from catchment.model.epoch import DataFile, LakeColumn, Part, TableDelta, TableShape
from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.sink.delta.apply import DeltaSink
from catchment.sink.delta.commit import file_lists, open_table
from catchment.sink.delta.files import write_file
from catchment.sink.delta.fold.fold import FoldOptions, PreparedFold, commit, prepare
from catchment.sink.delta.layout import arrow_schema, key_columns, tail_dir
from catchment.sink.delta.reading.state import DeltaState

SMALL_ROWS = 1_000_000
CHANGES = 24_000
FILE_ROWS = 1_000_000
UNFOLDED = 0.05
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
        for name in ("fold of 5 % changed", "DuckDB read, 5 % un-folded", "DuckDB read, folded"):
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
    sink = DeltaSink(root, "bench")
    sink.apply(TableDelta(SHAPE, tuple(base(root, rows))), 1, 1)
    fresh = median(runs, lambda: read(root))
    rng = np.random.default_rng(1)
    epochs = range(2, 2 + max(3, round(rows * UNFOLDED / CHANGES)))
    files = [write(root, Part.CHANGES, e, np.unique(rng.integers(0, rows, CHANGES))) for e in epochs]
    applied = [
        seconds(partial(sink.apply, TableDelta(SHAPE, (f,)), e, 1))
        for e, f in zip(epochs, files, strict=True)
    ]
    unfolded = median(runs, lambda: read(root))
    prepared: list[PreparedFold | None] = []
    folded = median(runs, lambda: prepared.append(prepare(root, SHAPE, FoldOptions())))
    assert prepared[-1] is not None
    newest = prepared[-1]
    folded += seconds(lambda: commit(root, newest, "bench", 1))
    return {
        "fresh": fresh,
        "apply": statistics.median(applied),
        "fold of 5 % changed": folded,
        "DuckDB read, 5 % un-folded": unfolded,
        "DuckDB read, folded": median(runs, lambda: read(root)),
    }


def seconds(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median(runs: int, work: Callable[[], object]) -> float:
    """Median of several runs, after one that does not count."""
    work()
    return statistics.median(seconds(work) for _ in range(runs))


def read(root: Path) -> None:
    """One full read of all columns."""
    directory = tail_dir(root, SHAPE.table)
    handle = open_table(directory)
    assert handle is not None
    files = file_lists(handle)
    names = {part: tuple(str(directory / f["path"]) for f in files[part]) for part in Part}
    state = DeltaState(SHAPE, 0, handle.version(), names[Part.BASE], names[Part.CHANGES])
    with duckdb.connect() as connection:
        state.duckdb(connection).query("state", QUERY).fetchall()


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
    return write_file(directory, part, name, [rows], schema, key_columns(SHAPE), ordered=part is Part.BASE)


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else 16_000_000), indent=1))
