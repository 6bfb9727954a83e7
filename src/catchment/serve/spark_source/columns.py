"""Columns that were dropped, and those that come back: a new column of the same name, empty in every row.

The log has no row for that, so a consumer keeps the former values in the rows that it does not touch.
"""

from collections.abc import Iterable, Sequence

from catchment.model.errors import Unsupported
from catchment.model.table import TableId
from catchment.schema.ddl import Columns
from catchment.schema.events import SchemaEvent
from catchment.schema.passage import Alteration


def dropped_after(dropped: Sequence[str], events: Iterable[SchemaEvent]) -> tuple[str, ...]:
    """The names, in lower case, that the table's columns had before they were dropped, `dropped` before the events."""
    known = set(dropped)
    for event in events:
        if isinstance(event.effect, Columns):
            known |= {name.lower() for name in event.effect.dropped}
    return tuple(sorted(known))


def must_be_new(shard: str, table: TableId, dropped: Sequence[str], altered: Sequence[Alteration]) -> None:
    """Raise Unsupported when a column was added that has the name of one dropped before."""
    gone = set(dropped)
    for alteration in altered:
        gone |= {name.lower() for name in alteration.effect.dropped}
        again = sorted(gone & {name.lower() for name in alteration.effect.added})
        if again:
            raise Unsupported(
                f"shard {shard}, {table}: column {', '.join(again)} was dropped and added again, so it is empty in "
                "every row, and no change says so: start with a new checkpoint and an empty target"
            )
