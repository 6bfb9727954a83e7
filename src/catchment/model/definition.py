"""What a log that does not describe itself leaves out: the definition of a table at one position of a log."""

from typing import Final

import msgspec

from catchment.model.table import TableId

UNKNOWN: Final = (
    "the log stopped naming the columns of its rows (binlog_row_metadata is not FULL any more), and the table was "
    "altered after that and before its definition was read, so what its columns were here is not known"
)


def hidden_name(name: str) -> str:
    """The name here of a column that the log shows and no SELECT does. MariaDB keeps such columns for a UNIQUE key of
    long columns (`DB_ROW_HASH_1`), MySQL 8.0 for an index over an expression. The name ends with a space, as no
    column of a user does (model/image.py)."""
    return f"{name} "


def is_hidden(name: str) -> bool:
    """Whether `hidden_name` made the name."""
    return name.endswith(" ")


class DefinedColumn(msgspec.Struct, frozen=True, array_like=True):
    """A column as the catalog declares it.

    `declared` is COLUMN_TYPE of information_schema.COLUMNS (`int(10) unsigned`), `charset` its
    CHARACTER_SET_NAME, empty where it has none.
    """

    name: str
    declared: str
    charset: str = ""
    nullable: bool = True

    @property
    def hidden(self) -> bool:
        """Whether the column is one that only the log shows."""
        return is_hidden(self.name)


class Definition(msgspec.Struct, frozen=True):
    """A table of one shard: its columns in the order of the log, hidden ones last, and the names of its key.

    `charset` is the character set of columns that are added without one. A definition without columns: what the table
    was like is not known, and none of its rows can be read.
    """

    table: TableId
    columns: tuple[DefinedColumn, ...]
    key: tuple[str, ...]
    charset: str

    @classmethod
    def unknown(cls, table: TableId) -> "Definition":
        """Of a table that was altered since, where nobody knows what it was like before."""
        return cls(table, (), (), "")

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows what the table was like."""
        return not self.columns
