"""The tables of a feed, by the names that statements may have for them."""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from catchment.model.table import TableId
from catchment.schema.names import without_marks


class Chosen(frozenset[TableId]):
    """Tables that are looked for in statements. A statement names few of them, and is to cost no more than those."""

    @classmethod
    def of(cls, tables: Collection[TableId]) -> "Chosen":
        """The tables; the same object where they are some already."""
        return tables if isinstance(tables, Chosen) else cls(tables)

    @cached_property
    def by_name(self) -> Mapping[str, list[TableId]]:
        """The tables in order, by their names without marks."""
        return _grouped((table.name, table) for table in sorted(self))

    @cached_property
    def by_schema(self) -> Mapping[str, list[TableId]]:
        """The tables in order, by the names of their schemas without marks."""
        return _grouped((table.schema, table) for table in sorted(self))


def _grouped(named: Iterable[tuple[str, TableId]]) -> dict[str, list[TableId]]:
    found: dict[str, list[TableId]] = {}
    for name, table in named:
        found.setdefault(without_marks(name), []).append(table)
    return found
