"""What the DDL of a log does to the chosen tables of a shard, statement after statement."""

from collections.abc import Collection, Iterable, Mapping

from catchment.model.epoch import TableShape
from catchment.model.table import TableId
from catchment.schema.columns import table_on
from catchment.schema.ddl import Columns, Effect, Here, effect
from catchment.schema.judge import Text, judged, read_text
from catchment.schema.reach import Objects
from catchment.wire.log.facts import Ddl, Statement


class Effects:
    """Reads the DDL of one stretch of log in order.

    `here`: those of the chosen tables that the shard has where the stretch begins, with their columns. None: it has
    all, and the columns are not known.
    """

    def __init__(self, chosen: Iterable[TableId], here: Here | None = None) -> None:
        self.chosen = frozenset(chosen)
        self._here = None if here is None else {t: {n.lower() for n in names} for t, names in here.items()}

    def of(self, fact: Ddl | Statement) -> Effect:
        """What the next statement does to definitions; one that is no DDL is Harmless."""
        return self._after(
            effect(
                fact.sql, fact.schema, self.chosen, here=self._here, mysql=fact.mysql, sql_mode=fact.sql_mode
            )
        )

    def judged(self, text: Text, objects: Objects | None) -> Effect:
        """What the next statement does to definitions and rows; `objects` as `judge` takes it."""
        return self._after(judged(text, self.chosen, objects, here=self._here))

    def _after(self, did: Effect) -> Effect:
        if isinstance(did, Columns) and self._here is not None:
            self._here[did.table] -= {name.lower() for name in did.dropped}
            self._here[did.table] |= {name.lower() for name in did.added}
        return did


def text_of(fact: Ddl | Statement) -> Text:
    """The statement of a fact, read."""
    return read_text(fact.sql, fact.schema, mysql=fact.mysql, sql_mode=fact.sql_mode)


def tables_here(shapes: Iterable[TableShape], shard: str, holders: Mapping[TableId, Collection[str]]) -> Here:
    """The tables that a shard has, of those whose lake tables are given; `holders`: the shards that have each."""
    return {
        shape.table: {column.name for column in table_on(shape, shard).columns}
        for shape in shapes
        if shard in holders[shape.table]
    }
