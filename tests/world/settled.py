"""What the process beside a run does to a lake, done in this one."""

from catchment.config import Feed
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.upkeep.process import carry_out
from catchment.sink.delta.upkeep.turns import order_for
from catchment.sink.port import Settled


def settled(feed: Feed) -> Settled:
    """Settle, join, trim and clean the lake of a feed, under the fence of its newest epoch."""
    newest = EpochsTable(feed.sink.path, feed.name).newest()
    return carry_out(order_for(feed, newest.fence)) if newest is not None else Settled({}, 0)
