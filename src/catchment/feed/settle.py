"""Bringing lake and state store to where a feed stands, before anything new is read or written."""

from catchment.feed.applier import Applier
from catchment.model.epoch import Commit
from catchment.sink.delta.epochs import EpochRow
from catchment.sink.delta.restore import restore
from catchment.state.resume import Continue


def take_over(applier: Applier, decision: Continue) -> None:
    """Have lake tables and epochs table carry our fence, so that an older runner cannot write from now on."""
    applier.epochs.take_over(applier.lease.fence)
    applier.sink.take_over((shape.table for shape in decision.manifest.shapes), applier.lease.fence)


def settle(applier: Applier, decision: Continue, committed: Commit | None, lake: EpochRow | None) -> int:
    """Take back what a lost epoch left in the lake, apply an epoch that a crash left, or have the store take up the
    lake's; the highest epoch number met."""
    standing, fence = decision.manifest, applier.lease.fence
    highest = standing.epoch
    if decision.undo is not None:
        highest = max(highest, restore(applier.sink.root, applier.store.feed, decision.undo, fence))
    if decision.apply:
        applier.apply(standing)
    elif lake is not None and (committed is None or committed.epoch < lake.commit.epoch):
        applier.store.take_up(lake.manifest, lake.commit, fence)
    return highest
