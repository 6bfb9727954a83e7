"""A table as of an epoch that is kept beyond the readers' window: a version of the plain table alone."""

from bisect import bisect_left

from catchment.model.epoch import EpochRow
from catchment.model.epoch_number import epoch_text
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.kept.record import KeptEpochs
from catchment.sink.delta.kept.retained import retained
from catchment.sink.delta.layout import epoch_app, settled_app
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.plain.complete import is_complete
from catchment.sink.delta.tail.older import Places


def is_kept(root: Location, row: EpochRow) -> bool:
    """Whether an epoch is kept. Raises SinkError."""
    return row.commit.epoch in KeptEpochs(root, row.manifest.feed).epochs()


def version_at(at: Places, row: EpochRow, table: TableId) -> tuple[Snapshot | None, bool]:
    """The version of a plain table that a kept epoch is, None before its first; and whether all of it is there.

    Raises SinkError.
    """
    feed, log = row.manifest.feed, DeltaLog(at.plain)
    found = retained(log, epoch_app(feed, table), row.commit.epoch)
    if found is None:
        tail = DeltaLog(at.tail).newest()
        trimmed = 0 if tail is None else tail.transactions.get(settled_app(feed, table), 0)
        return None, log.newest() is not None or not trimmed
    then = log.at(found.version)
    return then, then is not None and is_complete(at.plain, then)


def nearest(root: Location, feed: str, epoch: int) -> str:
    """For messages: the kept epochs before and after another one; empty where none is kept."""
    kept = KeptEpochs(root, feed).epochs()
    place = bisect_left(kept, epoch)
    before = f"{epoch_text(kept[place - 1])} before it" if place else ""
    after = f"{epoch_text(kept[place])} after it" if place < len(kept) else ""
    return " and ".join(side for side in (before, after) if side)
