"""Rows as Avro's writer takes them: by columns of Arrow, so that no value of Python's own is made of what is a number
there."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from catchment.model.table import Table, TableId
from catchment.serve.formats.avro_names import avro_name
from catchment.serve.formats.avro_types import decimal_bytes
from catchment.serve.stream.events import Field, Row, Values
from catchment.serve.stream.source import ShardName

_DECIMAL_BYTES = 16  # of Arrow's decimal128, the lowest byte first


class AvroRows:
    """Makes rows for a teller, whose values are under the names that they have in Avro."""

    def sides(self, table: Table, rows: pa.Table) -> Iterable[Values]:
        """The values of each row."""
        names = [avro_name(column.name) for column in table.columns]
        values = [_values(rows.column(column.name).combine_chunks()) for column in table.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    def row(self, name: ShardName, table: TableId, before: Any, after: Any) -> Row:
        """A Row."""
        return Row(*name, table, before, after)

    def came(self, name: ShardName, table: Table, rows: pa.Table) -> Iterable[Row]:
        """Rows without `before`."""
        return (self.row(name, table.id, None, side) for side in self.sides(table, rows))


class AvroColumns:
    """The keys of each shard's tables; the values of such rows are written already."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str, TableId], tuple[str, ...]] = {}

    def take(self, field: Field) -> None:
        """The key is this from here on."""
        self._keys[field.keyspace, field.shard, field.table] = tuple(avro_name(name) for name in field.key)

    def key_of(self, row: Row) -> tuple[str, ...]:
        """The names of the key's columns in Avro."""
        return self._keys[row.keyspace, row.shard, row.table]

    def written(self, row: Row, values: Values) -> Values:
        """As they are."""
        return values


def _values(column: pa.Array) -> Sequence[Any]:
    kind = column.type
    if pa.types.is_decimal128(kind):
        return _decimals(column)
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy().tolist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _decimals(column: pa.Array) -> list[bytes | None]:
    """Each unscaled, the highest byte first, in as many bytes as the type has."""
    size = decimal_bytes(column.type.precision)
    if not len(column):
        return []
    octets = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, _DECIMAL_BYTES)
    mine = octets[column.offset : column.offset + len(column), size - 1 :: -1]
    whole = mine.tobytes()
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    if not column.null_count:
        return list(parts)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return [part if there else None for part, there in zip(parts, valid, strict=True)]
