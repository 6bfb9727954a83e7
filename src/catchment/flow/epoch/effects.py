"""What the DDL of a log does to the chosen tables of a shard, statement after statement."""

from collections.abc import Collection, Iterable, Mapping

from catchment.flow.epoch.columns import table_on
from catchment.flow.epoch.ddl import Columns, Effect, effect
from catchment.model.epoch import TableShape
from catchment.model.table import TableId
from catchment.wire.facts import Ddl, Statement

Here = Mapping[TableId, Collection[str]]


class Effects:
    """Reads the DDL of one stretch of log in order.

    `here`: those of the chosen tables that the shard has where the stretch begins, with their columns; None: it has
    all, and the columns are not known.
    """

    def __init__(self, chosen: Iterable[TableId], here: Here | None = None) -> None:
        self._chosen = frozenset(chosen)
        self._here = None if here is None else {t: {n.lower() for n in names} for t, names in here.items()}

    def of(self, fact: Ddl | Statement) -> Effect:
        """What the next statement does."""
        sql_mode = fact.sql_mode if isinstance(fact, Ddl) else None
        did = effect(
            fact.sql, fact.schema, self._chosen, here=self._here, mysql=fact.mysql, sql_mode=sql_mode
        )
        if isinstance(did, Columns) and self._here is not None:
            self._here[did.table] -= {name.lower() for name in did.dropped}
            self._here[did.table] |= {name.lower() for name in did.added}
        return did


def tables_here(shapes: Iterable[TableShape], shard: str, holders: Mapping[TableId, Collection[str]]) -> Here:
    """The tables that a shard has, of those whose lake tables are given; `holders`: the shards that have each."""
    return {
        shape.table: {column.name for column in table_on(shape, shard).columns}
        for shape in shapes
        if shard in holders[shape.table]
    }
