"""What a feed does about DDL on its tables, as tasks are told."""

from collections.abc import Callable, Iterable

from catchment.model.epoch import TableShape
from catchment.model.table import TableId
from catchment.model.treatment import Changes


class Policies:
    """Of one run, as `changes_for` tells it of tables. They are looked at again only where there are others."""

    def __init__(self, changes_for: Callable[[Iterable[TableId]], Changes]) -> None:
        self._changes_for = changes_for
        self._shapes: tuple[TableShape, ...] = ()
        self._changes = changes_for(())

    def of(self, shapes: tuple[TableShape, ...]) -> Changes:
        """What is done about DDL on the tables with these shapes."""
        if self._shapes is not shapes:
            self._shapes, self._changes = shapes, self._changes_for(shape.table for shape in shapes)
        return self._changes

    def follows(self, table: TableId) -> bool:
        """Whether a run goes on behind DDL on a table."""
        return self._changes_for([table]).follows(table)
