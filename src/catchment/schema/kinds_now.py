"""The columns that a log declares as BINARY and that are something else, as its DDL changes them.

The catalog says at a feed's start what they are, and the statement of a column that comes. Pure.
"""

from collections.abc import Iterator, Mapping

from catchment.model.table import Kind, TableId
from catchment.schema.ddl import Columns
from catchment.wire.cells.types import LOGGED_AS_BINARY

Kinds = Mapping[str, Kind]


class KindsNow(Mapping[TableId, Kinds]):
    """Such columns of each table, by their names as of the place in the log where its reader stands. The decoder asks
    again at each table map that it has not met."""

    def __init__(self, at_start: Mapping[TableId, Kinds]) -> None:
        self._start = at_start
        self._changed: dict[TableId, Kinds] = {}

    def alter(self, did: Columns) -> None:
        """A statement did this to a table."""
        before = self.get(did.table, {})
        after = _after(before, did)
        if after != before:
            self._changed[did.table] = after

    def __getitem__(self, table: TableId) -> Kinds:
        found = self._changed.get(table)
        return self._start[table] if found is None else found

    def __iter__(self) -> Iterator[TableId]:
        return iter(self._start)

    def __len__(self) -> int:
        return len(self._start)


def _after(before: Kinds, did: Columns) -> Kinds:
    """Servers tell names apart without regard to case, and write them as the last statement did."""
    gone = {name.lower() for name in did.dropped}
    names = {one.old.lower(): one.new for one in did.renamed}
    left = {names.get(name.lower(), name): kind for name, kind in before.items() if name.lower() not in gone}
    return left | {one.column: one.type.kind for one in did.declared if one.type.kind in LOGGED_AS_BINARY}
