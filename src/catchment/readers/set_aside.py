"""What orders have set aside in a stretch of log: the tables that it may have changed are not followed behind it."""

from collections.abc import Collection, Iterable

from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.schema.passage import Stopped
from catchment.wire.log.facts import Fact, Incident

BY_ORDER = "it was set aside by an order"


def set_aside(
    shard: str, facts: Iterable[Fact], mine: Collection[TableId], places: Collection[LogOffset]
) -> dict[TableId, Stopped]:
    """The tables that stop at `places`: all of `mine` at an incident."""
    found: dict[TableId, Stopped] = {}
    for fact in facts if places else ():
        if isinstance(fact, Incident) and fact.at in places:
            reason = f"shard {shard} at {fact.at}: the server logged an incident; {BY_ORDER}"
            for table in mine:
                found.setdefault(table, Stopped(table, reason, place=fact.at))
    return found
