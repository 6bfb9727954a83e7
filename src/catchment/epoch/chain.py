"""The chain rule: a position counts only when it is reached from a verified one, in the same log (DESIGN 3)."""

from catchment.model.epoch_number import second_text
from catchment.model.errors import COPY_AGAIN, Diverged
from catchment.model.gtidset import GtidSet, UuidGtid
from catchment.model.position import LogOffset, Order, Position, relation


def must_continue(shard: str, start: Position, born: int, first: UuidGtid | None) -> None:
    """Raise Diverged unless a log read from `start` goes on where the old one stood.

    `born` is the header time of the file's format event as read now. `first` is the first GTID of MySQL that the reader
    met: MySQL executes none twice. MariaDB may log a GTID again, or a smaller one (gtid_strict_mode=OFF).
    """
    if start.born and born and start.born != born:
        raise Diverged(
            f"shard {shard}: log file {start.at.file} began at {second_text(born)}, the one read before at "
            f"{second_text(start.born)}: the server's log was reset; {COPY_AGAIN}"
        )
    if isinstance(start.gtids, GtidSet) and first is not None and first in start.gtids:
        raise Diverged(
            f"shard {shard}: the group after {start} is {first}, which is among those that were read before: "
            f"the log is not the one read before; {COPY_AGAIN}"
        )


def went_backwards(before: LogOffset, now: LogOffset) -> bool:
    """True when a shard's newest offset lies before one seen earlier, or in another log."""
    return relation(now, before) in (Order.BEFORE, Order.CONCURRENT)
