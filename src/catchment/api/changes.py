"""What changed in a lake table between two epochs, for jobs that take only that."""

from catchment.api.epochs import Lake, committed
from catchment.api.moment import Epoch
from catchment.api.read import named
from catchment.model.table import TableId
from catchment.sink.reading import TableChanges


def changes(
    lake: Lake,
    table: str | TableId,
    since: Epoch | None = None,
    until: Epoch | None = None,
    *,
    feed: str | None = None,
) -> TableChanges:
    """What changed in `table` (`schema.name`) behind epoch `since`, up to `until`, by default the newest settled one.

    Without `since` all rows of `until` are inserts: so a job begins. Next time it gives the `until` that it got. The
    feed needs `sink.changes: true`. `lake` and `feed` are those of `read`, and so is what is raised. Raises SinkError,
    too, for changes that were never written or are gone, and for an epoch that was not settled as such.
    """
    found = committed(lake, until, feed=feed, tables=[table])
    place, row = found.place, found.row
    name = table if isinstance(table, TableId) else named(row, table)
    begin = None if since is None else committed(lake, since, feed=row.manifest.feed).row
    return place.reading.changes(row.manifest.feed, name, begin, None if until is None else row)
