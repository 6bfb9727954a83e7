"""The upkeep of a lake as a process of its own: settles the tables, joins files, trims the tails, and cleans up.

The runner starts it, and may end before it. It imports little, to start fast. It brings tables to committed epochs
only, so it needs no lease. The runner gives it a fence, which keeps it from writing once a later runner has come.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import msgspec

from catchment.model.epoch import EpochRow, TableShape, epoch_text
from catchment.model.errors import CatchmentError, LeaseLost, SinkError
from catchment.model.table import TableId
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.plain.tail import Limits
from catchment.sink.delta.upkeep.clean import clean_feed
from catchment.sink.delta.upkeep.table import keep_up
from catchment.sink.port import Settled
from catchment.state.faults import Injector, from_environment

NICENESS = 5


class UpkeepOrder(msgspec.Struct, frozen=True):
    """What to keep up. `tables`: those alone, all if None. `cleans`: files that nobody needs are removed, too.

    `keep_seconds`: the readers' window; `attempt_seconds`: how long files that no commit has named yet are kept.
    """

    root: str
    feed: str
    fence: int
    keep_seconds: float
    attempt_seconds: float = 3600.0
    limits: Limits = Limits()
    tables: tuple[TableId, ...] | None = None
    cleans: bool = True


def carry_out(order: UpkeepOrder) -> Settled:
    """Bring the order's tables to the newest epoch, in this process. A table that cannot be settled keeps neither the
    others nor the cleaner from their turn; then the first error is raised.
    """
    epochs = EpochsTable(order.root, order.feed)
    row = epochs.newest()
    if row is None:
        return Settled({}, 0)
    changes = {}
    failures: list[Exception] = []
    fault = from_environment()
    for table in (shape.table for shape in row.manifest.shapes):
        if order.tables is not None and table not in order.tables:
            continue
        try:
            settled = _settle_table(order, epochs, row, table, fault)
        except Exception as error:
            failures.append(error)
            continue
        if settled:
            changes[str(table)] = settled
    deleted = _clean(order, epochs) if order.cleans else 0
    if failures:
        raise failures[0]
    return Settled(changes, deleted)


def _clean(order: UpkeepOrder, epochs: EpochsTable) -> int:
    """Join the files of the epochs table, and remove what nobody needs; how many files that were."""
    try:
        epochs.compact(order.fence)
    finally:
        report = clean_feed(order.root, order.feed, order.keep_seconds, order.attempt_seconds)
    return report.attempts + report.replaced


def _settle_table(
    order: UpkeepOrder, epochs: EpochsTable, row: EpochRow, table: TableId, fault: Injector
) -> int:
    """Bring a plain table to the newest epoch; the rows of changes that it took up."""

    def shape_at(epoch: int) -> TableShape:
        at = row if epoch == row.manifest.epoch else epochs.at(epoch)
        if at is None:
            raise SinkError(
                f"{table}: epoch {epoch_text(epoch)} stands in its tail, and the epochs table lacks it"
            )
        return next(shape for shape in at.manifest.shapes if shape.table == table)

    plain, tail = table_dir(order.root, table), tail_dir(order.root, table)
    until = row.manifest.epoch
    settle = SettleOrder(plain, tail, shape_at(until), order.feed, order.fence, until, order.limits)
    return keep_up(settle, shape_at, fault)


def start(order: UpkeepOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start the process; it writes to `said` what goes wrong. Ctrl-C at a terminal is for its runner alone.

    It may outlive the runner, so it holds nothing of the runner's: whoever reads a command's output sees its end.
    """
    text = msgspec.json.encode(order).decode()
    return subprocess.Popen(
        [sys.executable, "-m", "catchment.sink.delta.upkeep.process", text],
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
        carry_out(msgspec.json.decode(sys.argv[1], type=UpkeepOrder))
    except LeaseLost as error:
        return error.exit_code  # a later run has come, and settles
    except CatchmentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
