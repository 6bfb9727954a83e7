"""Tables, columns and column types as the source declares them, from the catalog or from a table map."""

from enum import Enum
from typing import NamedTuple

import msgspec


class Kind(Enum):
    """Families of column types of MariaDB and MySQL; the width or unit is in `ColumnType`."""

    TINYINT = "tinyint"
    SMALLINT = "smallint"
    MEDIUMINT = "mediumint"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    BIT = "bit"
    YEAR = "year"
    DATE = "date"
    TIME = "time"
    DATETIME = "datetime"
    TIMESTAMP = "timestamp"
    TEXT = "text"  # CHAR, VARCHAR and the TEXT family, JSON of MariaDB included
    BINARY = "binary"  # BINARY(n): padded with zero bytes to `length`
    BLOB = "blob"  # VARBINARY and the BLOB family
    ENUM = "enum"
    SET = "set"
    JSON = "json"  # of MySQL, carried as the text that SELECT gives
    UUID = "uuid"
    INET4 = "inet4"
    INET6 = "inet6"
    GEOMETRY = "geometry"  # all spatial types: 4 bytes of SRID, then WKB


INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.MEDIUMINT, Kind.INT, Kind.BIGINT)


# Names of columns that every lake table has of its own (DESIGN 10), `without_case`.
RESERVED = ("_shard", "_epoch", "_deleted", "_part")
# And those of one that keeps each version of a row: the epoch that ended it, and the times of both epochs.
ENDED, VALID_FROM, VALID_TO = "_epoch_to", "_valid_from", "_valid_to"

DECIMAL_DIGITS_MAX = 38  # of decimal128, the widest of a lake; a longer DECIMAL is carried as its text


def without_case(name: str) -> str:
    """A name without the differences that some reader of a lake does not see. Some compare lower case, Spark also
    upper case, of all of Unicode. Servers know the case of fewer letters, so they tell more names apart."""
    return name.upper().casefold()


class ColumnType(msgspec.Struct, frozen=True, cache_hash=True):
    """One column's type.

    `length`: digits of a DECIMAL, bits of a BIT, bytes of a BINARY; else 0. `scale`: digits after the point
    of a DECIMAL, fractional digits (0-6) of TIME, DATETIME, TIMESTAMP; else 0. `charset`: the character set
    of TEXT, ENUM and SET (`utf8mb3`, `utf8mb4`, `latin1`, `ascii`, ...). `labels`: of ENUM and SET, in order.
    """

    kind: Kind
    unsigned: bool = False
    length: int = 0
    scale: int = 0
    charset: str = ""
    labels: tuple[str, ...] = ()


class Column(msgspec.Struct, frozen=True, cache_hash=True):
    """A column: its name and type."""

    name: str
    type: ColumnType


class TableId(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """`schema.name`; the same on every shard of a keyspace."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> "TableId":
        """Read `schema.name`; raises ValueError when there is no dot."""
        schema, dot, name = text.partition(".")
        if not (schema and dot and name):
            raise ValueError(f"{text} is not of the form schema.name")
        return cls(schema, name)


class ColumnComment(msgspec.Struct, frozen=True):
    """What the source says of a column."""

    column: str
    text: str


class Comments(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the source says of a table, and of its columns. None stands for those of which it says nothing."""

    table: str = ""
    columns: tuple[ColumnComment, ...] = ()

    def of(self, column: str) -> str | None:
        """That of a column, by its name at the source."""
        return next((one.text for one in self.columns if one.column == column), None)


class Wording(msgspec.Struct, frozen=True):
    """How a table is declared on one shard: COLUMN_TYPE of its `columns` of texts and bytes, by their names. `charset`
    is that of columns that are added without one. `computes`: whether some are computed from others."""

    columns: dict[str, str] = {}
    charset: str = ""
    computes: bool = False


class ShardTable(NamedTuple):
    """A table as one shard has it."""

    shard: str
    table: TableId


class Table(msgspec.Struct, frozen=True, cache_hash=True):
    """A table's columns in order, and the names of its key columns in key order (empty: no usable key)."""

    id: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def column(self, name: str) -> Column:
        """The column of that name; raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.id} has no column {name}")

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """Columns of the key, in key order."""
        return tuple(self.column(name) for name in self.key)
