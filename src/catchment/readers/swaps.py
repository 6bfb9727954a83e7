"""Which shadow tables have taken the place of another table in a stretch of log."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from catchment.epoch.work import Swapped
from catchment.model.epoch import TableShape
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.schema.ddl import Harmless, effect_of
from catchment.schema.events import SchemaEvent
from catchment.schema.existence import Existence
from catchment.schema.passage import Stopped
from catchment.wire.log.facts import Fact, PartialImage


def swaps(
    here: Iterable[TableShape],
    events: Sequence[SchemaEvent],
    exists: Existence,
    stopped: Mapping[TableId, Stopped],
) -> dict[TableId, Swapped]:
    """The shadow tables, of those `here`, that a RENAME gave the name of the table whose place they take.

    Nothing else of the stretch may have changed one. So all rows under its own name stand in front of the RENAME.
    """
    found: dict[TableId, Swapped] = {}
    for shape in here:
        table = shape.table
        renamed = exists.renamed.get(shape.place_of) if shape.place_of is not None else None
        if renamed is None or renamed.before != table or exists.there.get(table) is not False:
            continue
        # The table may have been found wanting before.
        by_rename = table in stopped and stopped[table].at == renamed.at
        if by_rename and _places(table, events) == [renamed.at]:
            found[table] = Swapped(table, renamed.at)
    return found


def without_columns(
    shard: str, facts: Iterable[Fact], shadows: Collection[TableId]
) -> dict[TableId, Stopped]:
    """The shadow tables of which a row event lacks columns. No reader sees them, so that ends nothing."""
    return {
        fact.table: Stopped(fact.table, f"shard {shard} at {fact.at}: a row event lacks columns")
        for fact in facts
        if isinstance(fact, PartialImage) and fact.table in shadows
    }


def _places(table: TableId, events: Iterable[SchemaEvent]) -> list[LogOffset]:
    """Where DDL stands that did something to a table."""
    return [event.at for event in events if not isinstance(effect_of(event.text, [table]), Harmless)]
