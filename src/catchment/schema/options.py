"""Options of tables and of indexes, of CREATE TABLE and of ALTER TABLE: a list of those that leave all rows alone.

By the grammars of MySQL 8.0 to 9.7 and MariaDB 10.5 to 11.8. InnoDB takes no notice of many of them. Pure.
"""

from typing import Final

from catchment.schema.cursor import Cursor, Untold

ANOTHER_ENGINE: Final = "it was given another engine"
# With `=` or without, and one word, number or text behind it.
_PLAIN: Final = frozenset(
    {"AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "COMMENT", "CONNECTION", "DELAY_KEY_WRITE", "INSERT_METHOD"}
    | {"KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD", "ROW_FORMAT", "TABLE_CHECKSUM"}
    | {"STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "ALGORITHM", "LOCK"}
    | {"AUTOEXTEND_SIZE", "COMPRESSION", "ENCRYPTION", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE"}
    | {"SECONDARY_ENGINE_ATTRIBUTE", "STORAGE", "TABLESPACE"}
    | {"PAGE_CHECKSUM", "TRANSACTIONAL"}
)  # fmt: skip
# Of InnoDB on MariaDB, whose SHOW CREATE TABLE writes the names of an engine's own options in quotes.
_OF_ENGINE: Final = frozenset({"ENCRYPTED", "ENCRYPTION_KEY_ID", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL"})
_OF_INDEXES: Final = frozenset(
    {"COMMENT", "KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "USING", "TYPE"}
)
_OF_VECTORS: Final = frozenset({"M", "DISTANCE"})  # engine's own, too (MariaDB 11.7)
_CHARSET: Final = (("CHARACTER", "SET"), ("CHAR", "SET"), ("CHARSET",), ("COLLATE",))


def read_option(cursor: Cursor) -> str:
    """Read one option of a table that is there: why it may change rows, empty where it does not. Raises Untold for
    those that are not known, DEFAULT CHARACTER SET among them: what later statements declare depends on it."""
    if cursor.took_one("ENGINE", "TYPE"):
        cursor.took("=")
        # A rebuild with the same rows.
        return "" if cursor.name_or_text().upper() == "INNODB" else ANOTHER_ENGINE
    if cursor.took_one("DATA", "INDEX"):
        cursor.must("DIRECTORY")
        cursor.took("=")
        cursor.text()
        return ""
    if not cursor.took_one(*_PLAIN) and not cursor.took_named(_OF_ENGINE):
        raise Untold("an option of the table is not known")
    _read_value(cursor)
    return ""


def read_options_of_new(cursor: Cursor) -> None:
    """Read the options of a table that comes, with commas between them or without. Raises Untold for those that are not
    known."""
    while not cursor.ended and not cursor.sees("PARTITION", "BY") and not cursor.sees("START"):
        if cursor.took(","):
            continue
        begins = cursor.took("DEFAULT")
        if any(cursor.took(*words) for words in _CHARSET):
            cursor.took("=")
            cursor.word()
        elif begins or read_option(cursor):
            raise Untold("an option of the table is not known")


def read_options_of_index(cursor: Cursor) -> None:
    """Read all that stands behind the parts of an index. Raises Untold for what is not known."""
    while not cursor.ended:
        if cursor.took_one("VISIBLE", "INVISIBLE", "IGNORED") or cursor.took("NOT", "IGNORED"):
            continue
        if cursor.took("WITH", "PARSER"):
            cursor.name()
        elif cursor.took_one(*_OF_INDEXES) or cursor.took_named(_OF_VECTORS):
            _read_value(cursor)
        else:
            raise Untold("an option of the index is not known")


def _read_value(cursor: Cursor) -> None:
    cursor.took("=")
    word = cursor.word()
    if word.keyword in {"(", ")", ","}:
        raise Untold("an option has no value")
