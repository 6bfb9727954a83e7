"""Opening a plain table after a day of settles, one every ten seconds: 8,640 versions.

By delta-rs, by DuckDB's delta extension, which reads a row as well, and by `catchment.read`. Beside it the same table
after its first settles. Run: `python -m bench --only open`.
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from deltalake import DeltaTable
from msgspec.structs import replace
from tests.world.delta_scan import DeltaScan

from bench.figures import Figure, figure
from bench.sink import SHAPE, base, manifest, seconds, write
from catchment.model.epoch import Commit, EpochRow, Part, TableDelta
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.reading.lake import state
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.upkeep.table import keep_up
from catchment.state.faults import no_fault

SETTLES = 8_640
FIRST_SETTLES = 100
ROWS = 100_000
CHANGES = 100
LIMIT_SECONDS = 0.5
READS = 7


def run(runs: int = READS) -> list[Figure]:
    """Seconds; medians over the runs."""
    with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory, DeltaScan() as scan:
        root = Path(directory) / "lake"
        sink = DeltaSink(root, "bench")
        sink.apply(TableDelta(SHAPE, tuple(base(root, ROWS))), 1, 1)
        order = SettleOrder(
            DeltaLog(table_dir(root, SHAPE.table)),
            DeltaLog(tail_dir(root, SHAPE.table)),
            SHAPE,
            "bench",
            1,
            1,
        )
        keep_up(order, lambda _: SHAPE, no_fault)
        rng = np.random.default_rng(1)
        took = []
        for epoch in range(2, SETTLES + 1):
            ids = np.unique(rng.integers(0, ROWS, CHANGES))
            sink.apply(TableDelta(SHAPE, (write(root, Part.CHANGES, epoch, ids),)), epoch, 1)
            due = replace(order, until=epoch)
            took.append(seconds(partial(keep_up, due, lambda _: SHAPE, no_fault)))
        place = table_dir(root, SHAPE.table)
        version = DeltaTable(place).version()
        opens = {
            "delta-rs": lambda: DeltaTable(place),
            "DuckDB's delta_scan, one row": lambda: scan.query(
                "", f"SELECT id FROM delta_scan('{place}') LIMIT 1"
            ),
            "catchment.read": lambda: _state(root),
        }
        limits = [LIMIT_SECONDS] * runs
        name = f"open after {SETTLES} settles, {version} versions, by"
        return [
            *(
                figure(
                    f"{name} {reader}",
                    [seconds(open_) for _ in range(runs + 1)][1:],
                    "s",
                    "agreed",
                    limits,
                    4,
                )
                for reader, open_ in opens.items()
            ),
            figure(
                f"settle of {CHANGES} changes, the last {FIRST_SETTLES}",
                [statistics.median(took[-FIRST_SETTLES:])],
                "s",
                "the first",
                [statistics.median(took[:FIRST_SETTLES])],
                4,
            ),
        ]


def _state(root: Path) -> None:
    row = EpochRow(manifest(SETTLES), Commit(SETTLES, "", 1, {str(SHAPE.table): 0}), 1)
    state(root, row, SHAPE.table, origin=True)
