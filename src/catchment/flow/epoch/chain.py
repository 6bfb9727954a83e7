"""The chain rule: a position counts only when it is reached from a verified one, in the same log (DESIGN 3)."""

from catchment.model.errors import NEW_FEED, Diverged
from catchment.model.gtidset import GtidSet, UuidGtid
from catchment.model.position import Gtid, Gtids, LogOffset, Order, Position, relation


def must_continue(shard: str, start: Position, born: int, first: Gtid | UuidGtid | None) -> None:
    """Raise Diverged unless a log read from `start` goes on where the old one stood.

    `born` is the header time of the file's format event as read now; `first` the GTID of the first group met.
    """
    if start.born and born and start.born != born:
        raise Diverged(
            f"shard {shard}: log file {start.at.file} began at {born}, the one read before at "
            f"{start.born} (seconds since "
            f"1970): the server's log was reset; start {NEW_FEED} to copy again"
        )
    known = _not_before(start.gtids, first)
    if known is not None:
        raise Diverged(
            f"shard {shard}: the group after {start} is {first}, which is not beyond {known}: "
            f"the log is not the one read before; start {NEW_FEED} to copy again"
        )


def _not_before(known: Gtids, first: Gtid | UuidGtid | None) -> Gtid | GtidSet | None:
    """What shows that a group's GTID was in the log before; None when nothing does."""
    if isinstance(known, GtidSet):
        return known if isinstance(first, UuidGtid) and first in known else None
    if not isinstance(first, Gtid):
        return None
    for gtid in known.gtids:
        same = gtid.domain == first.domain and gtid.server_id == first.server_id
        if same and first.sequence <= gtid.sequence:
            return gtid
    return None


def went_backwards(before: LogOffset, now: LogOffset) -> bool:
    """True when a shard's newest offset lies before one seen earlier, or in another log."""
    return relation(now, before) in (Order.BEFORE, Order.CONCURRENT)
