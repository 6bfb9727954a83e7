"""Chunks of a table, and how far the copy of a table has come on one shard."""

from enum import Enum

import msgspec

from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, Column, ColumnType, Kind, Table, TableId

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


class Chunk(msgspec.Struct, frozen=True):
    """Rows of `table` on `shard` with `lo < key <= hi`; None is unbounded on that side."""

    shard: str
    table: TableId
    lo: Bound | None
    hi: Bound | None
    last: bool = False

    def __str__(self) -> str:
        return f"{self.table} on {self.shard}, keys ({self.lo}, {self.hi}]"


class Phase(Enum):
    """Where the copy of a table stands; derived from the durable facts, for people and metrics."""

    COPYING = "copying"
    FOLLOWING = "following"


class Progress(msgspec.Struct, frozen=True):
    """How much of a table is copied from a shard, as of a committed epoch.

    Rows with `key <= copied` are in the lake and follow the log. So do rows with `key > born_after`, the largest
    key when the copy began: later rows come from the log alone. Both None: nothing copied, no upper limit.
    """

    shard: str
    table: TableId
    copied: Bound | None = None
    born_after: Bound | None = None
    done: bool = False
    rows: int = 0
    rows_expected: int = 0

    @property
    def phase(self) -> Phase:
        """COPYING until every chunk is in the lake."""
        return Phase.FOLLOWING if self.done else Phase.COPYING
