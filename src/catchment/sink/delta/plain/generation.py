"""Of which copy of a table a plain table is: the first settle of a new copy replaces all of it."""

from catchment.model.table import TableId
from catchment.sink.delta.layout import epoch_app, generation_app
from catchment.sink.delta.log.delta_log import Snapshot


def generation(plain: Snapshot | None, feed: str, table: TableId) -> int:
    """The generation of a version of a plain table; 0 before its first."""
    return 0 if plain is None else plain.transactions.get(generation_app(epoch_app(feed, table)), 0)
