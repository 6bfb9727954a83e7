"""What keeps up the lake of a run, done in this process."""

from catchment.config import Feed
from catchment.model.location import Location
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.upkeep.clean import Cleaner, Keeping
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.logs import Logs
from catchment.sink.delta.upkeep.turns import order_for
from catchment.sink.port import Settled


def settled(feed: Feed) -> Settled:
    """Settle, join, trim and clean the lake of a feed, under the fence of its last run."""
    fence = EpochsTable(feed.sink.path, feed.name).fence()
    return carry_out(order_for(feed, fence)) if fence else Settled({}, 0)


def carry_out(order: UpkeepOrder) -> Settled:
    """Do all that an order asks, as `catchment settle` does."""
    return Keeper(order.root, order.feed).carry_out(order)


def clean_feed(root: Location, feed: str, keeping: Keeping) -> int:
    """Clean the lake of a feed and nothing else; how many files were deleted, those of logs apart."""
    return Cleaner(root, feed, EpochsTable(root, feed), Logs(root)).clean(keeping)
