"""What a plain table needs from time to time: to be settled, its files joined, its tail trimmed."""

from collections.abc import Callable
from functools import partial

from catchment.model.epoch import TableShape
from catchment.sink.delta.log.checkpoint import checkpoint
from catchment.sink.delta.plain import join
from catchment.sink.delta.plain.due import FileSize, due
from catchment.sink.delta.plain.parallel import each
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
    _join(order, fault)
    checkpoint(log)
    checkpoint(order.tail)
    on = log.newest()
    if on is not None:
        if order.index is not None:
            order.index.keep_only(on.files)
        trim(order, on.transactions.get(order.app, 0))
    return changes


def _join(order: SettleOrder, fault: Injector) -> None:
    """Join and rewrite the files that are due, until none is or the turn has done enough."""
    left, size = JOINS_MAX, FileSize(order.shape.arrangement.file_bytes)
    while left > 0:
        on = order.plain.newest()
        if on is None or on.transactions.get(order.app, 0) > order.until:
            return  # somebody has settled a later epoch, which may have other columns and types
        chosen = due(on, size)[:left]
        joins = list(each(partial(join.prepare, order.plain.directory, order.shape, on), chosen))
        if not any(joins):
            return
        fault(Fault.DURING_SETTLE)
        for joined in joins:
            if joined is not None:
                join.commit(order, joined)
        left -= len(chosen)
