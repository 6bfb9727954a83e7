"""Tables whose rows a stretch of log holds in a form that cannot be read: they stop there, and others go on."""

from collections.abc import Iterable

from catchment.model.table import TableId
from catchment.schema.passage import Stopped
from catchment.wire.log.facts import Fact, PartialImage, Unreadable

LACKS_COLUMNS = (
    "a row event lacks columns; set binlog_row_image=FULL globally and end the sessions that still write otherwise; a "
    "server whose log leaves generated columns out in any case (MariaDB 11.8.9) cannot serve a table that has some"
)


def unread(shard: str, facts: Iterable[Fact]) -> dict[TableId, Stopped]:
    """The tables with a value or a label that is no text, with a type that is not carried, or with a row event that
    lacks columns."""
    found: dict[TableId, Stopped] = {}
    for fact in facts:
        if isinstance(fact, Unreadable | PartialImage):
            why = fact.why if isinstance(fact, Unreadable) else f"{fact.table}: {LACKS_COLUMNS}"
            reason = f"shard {shard} at {fact.at}: {why}"
            found.setdefault(fact.table, Stopped(fact.table, reason, place=fact.at))
    return found
