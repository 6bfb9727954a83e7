"""Which statements may take from a table the index that tells its rows apart, and which may give it one."""

from dataclasses import dataclass

from catchment.model.table import TableId
from catchment.schema.ddl import altered_table
from catchment.schema.events import SchemaEvent

_AN_INDEX = frozenset({"INDEX", "KEY", "CONSTRAINT"})
_UNIQUE = frozenset({"UNIQUE", "PRIMARY", "SERIAL"})


@dataclass(frozen=True, slots=True)
class Touch:
    """What the words of a statement allow: that it drops a column or an index, an index, adds a unique index."""

    drops: bool = False
    drops_index: bool = False
    adds_unique: bool = False


def touch(event: SchemaEvent, table: TableId) -> Touch:
    """What a statement may do to the indexes of `table`; one that cannot be read stops the feed if it names the
    table."""
    text = event.text
    # A feed may have hundreds of tables and an epoch hundreds of statements: few are worth a look.
    if table.name.casefold() not in text.sql.replace("``", "`").casefold():
        return Touch()
    if altered_table(text.words, text.schema, [table]) is None:
        return Touch()
    words = {word.keyword for word in text.words}
    drops = not words.isdisjoint(("DROP", "REPLACE"))
    return Touch(drops, drops and not words.isdisjoint(_AN_INDEX), not words.isdisjoint(_UNIQUE))
