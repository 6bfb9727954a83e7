"""Chunks of a table: ranges of its keys that are copied one after another."""

import msgspec

from catchment.model.table import (
    DECIMAL_DIGITS_MAX,
    INTEGERS,
    Column,
    ColumnType,
    Kind,
    ShardTable,
    Table,
    TableId,
)

# A bound is a prefix of a key: integers as int, everything else as the server's text (bytes as hexadecimal).
Bound = tuple[int | str, ...]

# Kinds whose order on the server is the order of the encoded bytes, whatever the collation.
_ORDERED = (
    *INTEGERS,
    Kind.DECIMAL,
    Kind.DATE,
    Kind.DATETIME,
    Kind.TIMESTAMP,
    Kind.BINARY,
    Kind.BLOB,
    Kind.YEAR,
)


class ChunkKey(msgspec.Struct, frozen=True):
    """The key columns by which a table is cut into chunks.

    `ordered`: we can compare values of these columns as the server does. Then `columns` is the longest such
    prefix of the key; otherwise it is the whole key, in the server's own order only.
    """

    columns: tuple[Column, ...]
    ordered: bool


def _ordered(kind: ColumnType) -> bool:
    """A DECIMAL of more digits than decimal128 has is carried as text, whose order is another one."""
    return kind.kind in _ORDERED and (kind.kind is not Kind.DECIMAL or kind.length <= DECIMAL_DIGITS_MAX)


def chunk_key(table: Table) -> ChunkKey:
    """Columns by which `table` is chunked; the table must have a key."""
    prefix: list[Column] = []
    for column in table.key_columns:
        if not _ordered(column.type):
            break
        prefix.append(column)
    if prefix:
        return ChunkKey(tuple(prefix), ordered=True)
    return ChunkKey(table.key_columns, ordered=False)


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rows of `table` on `shard` with `lo < key <= hi`; None is unbounded on that side. `keys`: those of these keys
    alone, of which rewind/key_chunks.py packs the columns; empty: all between the bounds."""

    shard: str
    table: TableId
    lo: Bound | None
    hi: Bound | None
    last: bool = False
    keys: bytes = b""

    @property
    def of(self) -> ShardTable:
        """The table whose rows they are, and its shard."""
        return ShardTable(self.shard, self.table)

    def __str__(self) -> str:
        what = "chosen keys" if self.keys else f"keys ({self.lo}, {self.hi}]"
        return f"{self.table} on {self.shard}, {what}"
