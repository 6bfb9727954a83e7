"""Which CREATE TABLE makes a table without rows: what it holds later is in the log, from the statement on.

A list of known forms. A statement with SELECT, as a session logs it that logs statements, brings rows in no event.
"""

from collections.abc import Sequence

from catchment.schema.cursor import Cursor
from catchment.schema.options import read_options_of_new
from catchment.schema.partitions import keeps_rows
from catchment.schema.statement import AmbiguousText, Word, parted

_QUERIES = frozenset({"SELECT", "TABLE", "VALUES", "WITH", "("})

# What an ALTER TABLE may do to a table without a row and bring none. EXCHANGE PARTITION brings rows of elsewhere.
_BRINGS_NONE = frozenset(
    {
        "ADD",
        "DROP",
        "MODIFY",
        "CHANGE",
        "ALTER",
        "CONVERT",
        "DEFAULT",
        "CHARACTER",
        "CHARSET",
        "COLLATE",
        "COMMENT",
    }
    | {"AUTO_INCREMENT", "ROW_FORMAT", "ENGINE", "FORCE", "ALGORITHM", "LOCK"}
)
_NOT_OF_COLUMNS = frozenset({"PARTITION", "SYSTEM", "PERIOD", "TABLE"})
_RENAMES_A_PART = frozenset({"COLUMN", "INDEX", "KEY"})


def makes_empty(words: Sequence[Word]) -> bool:
    """Whether a CREATE TABLE makes a table that has no row behind the statement itself.

    With IF NOT EXISTS it may have been there, which MySQL logs, too.
    """
    cursor = Cursor(words)
    try:
        cursor.must("CREATE")
        cursor.took("OR", "REPLACE")
        cursor.must("TABLE")
        if cursor.sees("IF"):
            return False
        cursor.names_table()
        return _is_like(cursor) or _is_defined(cursor)
    except AmbiguousText:
        return False


def _is_like(cursor: Cursor) -> bool:
    """Whether LIKE and another table come next, in parentheses or not, and nothing more. They are read then."""
    if cursor.sees("(", "LIKE"):
        like = Cursor(cursor.parenthesis())
        return _is_like(like) and cursor.ended
    if not cursor.took("LIKE"):
        return False
    cursor.names_table()
    return cursor.ended


def _is_defined(cursor: Cursor) -> bool:
    """Whether definitions in parentheses, options and partitions are all that comes next. What is defined does not
    matter here. Raises AmbiguousText for options that are not known."""
    definitions = cursor.parenthesis()
    if not definitions or definitions[0].keyword in _QUERIES:
        return False
    read_options_of_new(cursor)
    # MySQL logs CREATE TABLE ... SELECT as a CREATE with these words, and its rows in the same group (since 8.0.21).
    if cursor.took("START", "TRANSACTION"):
        read_options_of_new(cursor)
    return cursor.ended or (cursor.sees("PARTITION", "BY") and keeps_rows(cursor.rest))


def leaves_empty(actions: Sequence[Word]) -> bool:
    """Whether the actions of an ALTER TABLE leave a table without a row that has none."""
    return bool(actions) and all(
        _brings_none([word.keyword for word in action[:2]]) for action in parted(actions)
    )


def _brings_none(keywords: Sequence[str]) -> bool:
    match keywords:
        case ["RENAME", what]:
            return what in _RENAMES_A_PART
        case [what, of]:
            return what in _BRINGS_NONE and of not in _NOT_OF_COLUMNS
        case [what]:
            return what == "FORCE"
    return False
