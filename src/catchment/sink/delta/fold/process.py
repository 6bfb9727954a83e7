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

from catchment.model.epoch import TableShape
from catchment.model.errors import CatchmentError, LeaseLost
from catchment.sink.delta.clean import clean_feed
from catchment.sink.delta.commit import open_table
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.fold.due import FoldLimits, should_fold, should_gather, table_stats
from catchment.sink.delta.fold.fold import (
    FoldOptions,
    PreparedFold,
    commit,
    prepare,
    prepare_division,
    prepare_gathering,
)
from catchment.sink.delta.layout import table_dir
from catchment.sink.port import Folded
from catchment.state.faults import Fault, Injector, from_environment

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
            folded = _fold_table(order, shape, fault)
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


def _fold_table(order: FoldOrder, shape: TableShape, fault: Injector) -> int:
    """Fold a table that is due, else gather its small files of changes; the changes it took up."""
    table = open_table(table_dir(order.root, shape.table))
    if table is None:
        return 0
    stats = table_stats(table)
    if not (order.all_tables or should_fold(stats, order.limits)):
        return _gather(order, shape, fault) if should_gather(stats) else 0
    _commit(order, prepare_division(order.root, shape, order.options), fault)
    folded = taken = _commit(order, prepare(order.root, shape, order.options), fault)
    # One fold takes up what fits into memory; changes that come meanwhile wait for the next process.
    while taken and folded < stats.changes_rows:
        taken = _commit(order, prepare(order.root, shape, order.options), fault)
        folded += taken
    return folded


def _gather(order: FoldOrder, shape: TableShape, fault: Injector) -> int:
    return _commit(order, prepare_gathering(order.root, shape, order.options), fault)


def _commit(order: FoldOrder, prepared: PreparedFold | None, fault: Injector) -> int:
    """Commit a prepared fold; the changes that it took up, 0 when there was none or another was faster."""
    if prepared is None:
        return 0
    fault(Fault.DURING_FOLD)
    report = commit(order.root, prepared, order.feed, order.fence)
    return report.changes if report is not None else 0


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
