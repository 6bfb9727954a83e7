"""What a plain table needs from time to time: to be settled, its files joined, its tail trimmed."""

from collections.abc import Callable

from catchment.model.epoch import TableShape
from catchment.sink.delta.plain import join
from catchment.sink.delta.plain.checkpoint import checkpoint
from catchment.sink.delta.plain.settle import SettleOrder, settle
from catchment.sink.delta.plain.trim import trim
from catchment.state.faults import Fault, Injector

# Joins of one turn: others wait for the next, so that a settle comes in time.
JOINS_MAX = 8


def keep_up(order: SettleOrder, shape_at: Callable[[int], TableShape], fault: Injector) -> int:
    """Settle a table to the epoch of the order; how many changes that brought. A crash between two steps does no harm.
    `shape_at`: the table's shape as of an earlier epoch, which a settle of much reaches first.

    Raises LeaseLost, SinkConflict, SinkError.
    """
    changes = 0
    while (settled := settle(order, shape_at)) is not None:
        changes += settled.changes
        fault(Fault.DURING_SETTLE)
    log = order.plain
    for _ in range(JOINS_MAX):
        on = log.newest()
        files = [] if on is None else join.due(on)
        joined = join.prepare(log.directory, order.shape, files) if files else None
        if joined is None:
            break
        fault(Fault.DURING_SETTLE)
        join.commit(log, joined)
    checkpoint(log)
    checkpoint(order.tail)
    on = log.newest()
    if on is not None:
        trim(order, on.transactions.get(order.app, 0))
    return changes
