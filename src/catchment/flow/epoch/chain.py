"""The chain rule: a position counts only when it is reached from a verified one, in the same log (DESIGN 3)."""

from catchment.model.errors import Diverged
from catchment.model.position import Gtid, GtidList, LogOffset, Order, Position, relation


def must_continue(shard: str, start: Position, born: int, first: Gtid | None) -> None:
    """Raise Diverged unless a log read from `start` goes on where the old one stood.

    `born` is the header time of the file's format event as read now; `first` the GTID of the first group met.
    """
    if start.born and born and start.born != born:
        raise Diverged(
            f"shard {shard}: log file {start.at.file} began at {born}, the one read before at "
            f"{start.born} (seconds since "
            "1970): the server's log was reset; start a new feed to copy again"
        )
    if first is None:
        return
    for known in start.gtids.gtids:
        if (
            known.domain == first.domain
            and first.sequence <= known.sequence
            and first.server_id == known.server_id
        ):
            raise Diverged(
                f"shard {shard}: the group after {start} is {first}, which is not beyond {known}: "
                "the log is not the one read before; start a new feed to copy again"
            )


def went_backwards(before: LogOffset, now: LogOffset) -> bool:
    """True when a shard's newest offset lies before one seen earlier, or in another log."""
    return relation(now, before) in (Order.BEFORE, Order.CONCURRENT)


def gtids_after(known: GtidList, newest: dict[int, Gtid]) -> GtidList:
    """The GTID list after a stretch of log whose newest GTID per domain is given."""
    for gtid in newest.values():
        known = known.with_gtid(gtid)
    return known
