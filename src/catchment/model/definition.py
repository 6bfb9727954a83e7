"""What a log that does not describe itself leaves out: the definition of a table at one position of a log."""

import msgspec

from catchment.model.table import TableId

# Columns that no SELECT shows, but the log: the hash columns that MariaDB keeps for a UNIQUE key of long columns, and,
# with this in front of their names, those that MySQL 8.0 keeps for an index over an expression.
HIDDEN = "DB_ROW_HASH_"


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
        return self.name.startswith(HIDDEN)


class Definition(msgspec.Struct, frozen=True):
    """A table of one shard: its columns in the order of the log, hidden ones last, and the names of its key.

    `charset` is the character set of columns that are added without one.
    """

    table: TableId
    columns: tuple[DefinedColumn, ...]
    key: tuple[str, ...]
    charset: str
