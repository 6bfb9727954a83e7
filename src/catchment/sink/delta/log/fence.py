"""Who may write a table: its log carries the fence of the last runner."""

from catchment.model.errors import LeaseLost
from catchment.sink.delta.layout import fence_app
from catchment.sink.delta.log.delta_log import Snapshot


def must_lead(on: Snapshot, feed: str, fence: int, name: str) -> None:
    """Raise LeaseLost when a later runner has written the table."""
    known = on.transactions.get(fence_app(feed), 0)
    if known > fence:
        raise LeaseLost(
            f"{name}: written under fence {known}, this runner of feed {feed} has fence {fence}; another runner took "
            "over, stop this one"
        )
