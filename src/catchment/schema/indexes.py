"""Which statements may take from a table the index that tells its rows apart, and which may give it one."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from catchment.model.table import TableId
from catchment.schema.chosen import Chosen
from catchment.schema.ddl import altered_table, named_by
from catchment.schema.events import SchemaEvent
from catchment.wire.log.facts import Ddl

_AN_INDEX = frozenset({"INDEX", "KEY", "CONSTRAINT"})
_UNIQUE = frozenset({"UNIQUE", "PRIMARY", "SERIAL"})


@dataclass(frozen=True, slots=True)
class Touch:
    """What the words of a statement allow: that it drops a column or an index, an index, adds a unique index."""

    drops: bool = False
    drops_index: bool = False
    adds_unique: bool = False


def touched_by(events: Iterable[SchemaEvent], tables: Collection[TableId]) -> set[TableId]:
    """The tables, of these, from which some DDL may drop something."""
    chosen = Chosen.of(tables)
    return {
        table
        for event in events
        if isinstance(event.fact, Ddl)
        for table in named_by(event.text, chosen)
        if touch(event, table).drops
    }


def touch(event: SchemaEvent, table: TableId) -> Touch:
    """What a statement may do to the indexes of `table`; one that cannot be read stops the feed if it names the
    table."""
    text = event.text
    # An epoch may have hundreds of statements: few are worth a look.
    if table.name.casefold() not in text.sql.replace("``", "`").casefold():
        return Touch()
    if altered_table(text.words, text.schema, [table]) is None:
        return Touch()
    words = {word.keyword for word in text.words}
    drops = not words.isdisjoint(("DROP", "REPLACE"))
    return Touch(drops, drops and not words.isdisjoint(_AN_INDEX), not words.isdisjoint(_UNIQUE))
