"""What orders have set aside in a stretch of log: the tables that it may have changed are not followed behind it."""

from collections.abc import Collection, Iterable

from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.schema.passage import Stopped
from catchment.wire.log.facts import Fact, Incident, PartialImage

BY_ORDER = "it was set aside by an order"


def stops_at(shard: str, place: LogOffset, stopped: Stopped) -> bool:
    """Whether a table stopped at a place of the shard's log."""
    return stopped.reason.startswith(f"shard {shard} at {place}: ")


def set_aside(
    shard: str, facts: Iterable[Fact], mine: Collection[TableId], places: Collection[LogOffset]
) -> dict[TableId, Stopped]:
    """The tables that stop at `places`: that of a row event without all columns, and all of `mine` at an incident."""
    found: dict[TableId, Stopped] = {}
    for fact in facts if places else ():
        if isinstance(fact, PartialImage) and fact.at in places:
            reason = f"shard {shard} at {fact.at}: a row event lacks columns; {BY_ORDER}"
            found.setdefault(fact.table, Stopped(fact.table, reason))
        elif isinstance(fact, Incident) and fact.at in places:
            reason = f"shard {shard} at {fact.at}: the server logged an incident; {BY_ORDER}"
            for table in mine:
                found.setdefault(table, Stopped(table, reason))
    return found
