"""The fold as a process of its own: folds the tables that are due, gathers small files of changes, cleans up.

The runner starts it, and may end before it. It imports little, to start fast. It changes files and no row, so it needs
no lease. The runner gives it a fence, which keeps it from writing once a later runner has come.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import msgspec

from catchment.model.epoch import EpochRow, TableShape
from catchment.model.errors import CatchmentError, LeaseLost
from catchment.sink.delta.clean import clean_feed
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.fold.due import FoldLimits
from catchment.sink.delta.fold.fold import FoldOptions
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.sink.delta.plain.keep_up import keep_up
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.port import Folded
from catchment.state.faults import Injector, from_environment

NICENESS = 5


class FoldOrder(msgspec.Struct, frozen=True):
    """What to fold. `all_tables`: also those that are not due. `keep_seconds`: the readers' window; `attempt_seconds`:
    how long files that no commit has named yet are kept."""

    root: str
    feed: str
    fence: int
    limits: FoldLimits
    keep_seconds: float
    all_tables: bool = False
    attempt_seconds: float = 3600.0
    options: FoldOptions = FoldOptions()


def carry_out(order: FoldOrder) -> Folded:
    """Fold in this process. A table that cannot be folded keeps neither the others nor the cleaner from their
    turn; then the first error is raised.
    """
    epochs = EpochsTable(order.root, order.feed)
    row = epochs.newest()
    if row is None:
        return Folded({}, 0)
    changes = {}
    failures: list[Exception] = []
    fault = from_environment()
    for shape in row.manifest.shapes:
        try:
            folded = _keep_up(order, row, shape, fault)
        except Exception as error:
            failures.append(error)
            continue
        if folded:
            changes[str(shape.table)] = folded
    try:
        epochs.compact(order.fence)
    finally:
        cleaned = clean_feed(order.root, order.feed, order.keep_seconds, order.attempt_seconds)
    if failures:
        raise failures[0]
    return Folded(changes, cleaned.attempts + cleaned.replaced)


def _keep_up(order: FoldOrder, row: EpochRow, shape: TableShape, fault: Injector) -> int:
    """Bring a table's plain table to the newest epoch; the changes that it took up."""
    plain, tail = table_dir(order.root, shape.table), tail_dir(order.root, shape.table)
    return keep_up(SettleOrder(plain, tail, shape, order.feed, order.fence, row.manifest.epoch), fault)


def start(order: FoldOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start the process; it writes to `said` what goes wrong. Ctrl-C at a terminal is for its runner alone.

    It may outlive the runner, so it holds nothing of the runner's: whoever reads a command's output sees its end.
    """
    text = msgspec.json.encode(order).decode()
    return subprocess.Popen(
        [sys.executable, "-m", "catchment.sink.delta.fold.process", text],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        cwd=Path.cwd(),
        process_group=0,
    )


def main() -> int:
    """Entry of the process; its exit code is that of the error."""
    os.nice(NICENESS)
    try:
        carry_out(msgspec.json.decode(sys.argv[1], type=FoldOrder))
    except LeaseLost as error:
        return error.exit_code  # a later run has come, and folds
    except CatchmentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
