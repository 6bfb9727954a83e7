"""The columns of each shard's tables, as a stream told them last, with what writes a value of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from catchment.model.table import ColumnType, TableId
from catchment.serve.stream.events import Field, Row, Values

Writer = Callable[[Any], Any]
WriterOf = Callable[[ColumnType], Writer]


@dataclass(frozen=True, slots=True)
class _Told:
    writers: dict[str, Writer]
    key: tuple[str, ...]


class Columns:
    """`writer_of` gives what writes values of a type; NULL is None for all of them."""

    def __init__(self, writer_of: WriterOf) -> None:
        self._writer_of = writer_of
        self._told: dict[tuple[str, str, TableId], _Told] = {}

    def take(self, field: Field) -> None:
        """The columns are these from here on."""
        writers = {column.name: self._writer_of(column.type) for column in field.columns}
        self._told[field.keyspace, field.shard, field.table] = _Told(writers, field.key)

    def key_of(self, row: Row) -> tuple[str, ...]:
        """The names of the key's columns."""
        return self._of(row).key

    def written(self, row: Row, values: Values) -> Values:
        """One side of a row, with the values as they are written."""
        writers = self._of(row).writers
        return {name: None if value is None else writers[name](value) for name, value in values.items()}

    def _of(self, row: Row) -> _Told:
        return self._told[row.keyspace, row.shard, row.table]
