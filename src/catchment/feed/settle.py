"""Bringing lake and state store to where a feed stands, before anything new is read or written."""

from collections.abc import Iterable

from catchment.feed.applier import Applier
from catchment.model.epoch import Commit, EpochRow, TableShape
from catchment.model.errors import LeaseHeld
from catchment.state.resume import Continue


def take_over(applier: Applier, shapes: Iterable[TableShape], lake: EpochRow | None) -> None:
    """Have lake tables and epochs table carry our fence, so that an older runner cannot write from now on.

    `lake`: the newest epoch by which it was decided what to do. Raises LeaseHeld when another one has come since: where
    the state store was lost, an older runner does not know that it has a successor.
    """
    applier.sink.take_over(shapes, applier.lease.fence)
    if applier.sink.newest() != lake:
        raise LeaseHeld(
            f"feed {applier.store.feed}: another runner committed an epoch while this one began; start it again"
        )


def settle(applier: Applier, decision: Continue, committed: Commit | None, lake: EpochRow | None) -> int:
    """Take back what a lost epoch left in the lake, apply an epoch that a crash left, or have the store take up the
    lake's. Returns the highest epoch number met."""
    standing, fence = decision.manifest, applier.lease.fence
    highest = standing.epoch
    if decision.undo is not None:
        applies = standing.epoch if decision.apply else None
        highest = max(highest, applier.sink.restore(decision.undo, fence, applies))
    if decision.apply:
        applier.sink.must_have_files(standing)
        applier.apply(standing)
    elif lake is not None and (committed is None or committed.epoch < lake.commit.epoch):
        applier.store.take_up(lake.manifest, lake.commit, fence)
    return highest
