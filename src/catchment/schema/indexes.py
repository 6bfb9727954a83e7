"""Which statements may take from a table the index that tells its rows apart, and which may give it one."""

from dataclasses import dataclass

from catchment.model.table import TableId
from catchment.schema.ddl import altered_table
from catchment.schema.statement import Unreadable, readings
from catchment.wire.log.facts import Ddl

_AN_INDEX = frozenset({"INDEX", "KEY", "CONSTRAINT"})
_UNIQUE = frozenset({"UNIQUE", "PRIMARY", "SERIAL"})


@dataclass(frozen=True, slots=True)
class Touch:
    """What the words of a statement allow: that it drops a column or an index, an index, adds a unique index."""

    drops: bool = False
    drops_index: bool = False
    adds_unique: bool = False


def touch(fact: Ddl, table: TableId) -> Touch:
    """What a statement may do to the indexes of `table`."""
    # A feed may have hundreds of tables and an epoch hundreds of statements: few are worth reading.
    if table.name.casefold() not in fact.sql.replace("``", "`").casefold():
        return Touch()
    try:
        read = readings(fact.sql, mysql=fact.mysql, sql_mode=fact.sql_mode)
    except Unreadable:
        return Touch()  # one that names the table stops the feed (ddl.effect)
    words = {w.keyword for words in read if altered_table(words, fact.schema, [table]) for w in words}
    drops = not words.isdisjoint(("DROP", "REPLACE"))
    return Touch(drops, drops and not words.isdisjoint(_AN_INDEX), not words.isdisjoint(_UNIQUE))
