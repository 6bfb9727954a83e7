"""Indexes and constraints as statements declare them: which of them may change rows. Pure."""

from collections.abc import Sequence
from typing import Final

from catchment.schema.cursor import Cursor, Untold
from catchment.schema.options import read_options_of_index
from catchment.schema.statement import Word

PRIMARY: Final = "its primary key was changed"
CASCADE: Final = (
    "it was given a foreign key that changes rows without row events (CASCADE, SET NULL, SET DEFAULT)"
)
# Reserved words: a bare one of these is no column.
_FIRST: Final = ("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CHECK", "CONSTRAINT")
_ACTIONS: Final = (("RESTRICT",), ("NO", "ACTION"), ("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"))
_LEAVE_ROWS: Final = _ACTIONS[:2]


def sees_constraint(cursor: Cursor) -> bool:
    """Whether an index or a constraint comes next."""
    return any(map(cursor.sees, _FIRST)) or (cursor.sees("VECTOR") and _indexes_vectors(cursor.rest))


def _indexes_vectors(words: Sequence[Word]) -> bool:
    """Whether words that begin with VECTOR declare an index, as on MariaDB from 11.7 on, or a column of that name:
    elsewhere the word is not reserved. A type has numbers or labels in parentheses, and an index has names."""
    keywords = [word.keyword for word in words[1:3]]
    if keywords[:1] in (["INDEX"], ["KEY"]):
        return True
    inside = words[keywords.index("(") + 2 :] if "(" in keywords else ()
    return bool(inside) and inside[0].quote != "'" and not inside[0].text.isdigit()


def read_constraint(cursor: Cursor) -> str:
    """Read an index or a constraint: why it may change rows, empty where it does not."""
    if cursor.sees("CHECK") or cursor.sees("CONSTRAINT", "CHECK"):
        read_check(cursor)
        return ""
    if cursor.took("CONSTRAINT") and not any(map(cursor.sees, _FIRST)):
        exists = cursor.took("IF", "NOT", "EXISTS")
        cursor.name()
        if exists or cursor.sees("CHECK"):  # MariaDB takes IF NOT EXISTS of others behind their own words
            read_check(cursor)
            return ""
    if cursor.took("PRIMARY"):
        return PRIMARY
    if cursor.took("FOREIGN", "KEY"):
        cursor.took("IF", "NOT", "EXISTS")
        _read_parts(cursor)
        cursor.must("REFERENCES")
        return CASCADE if cascades(cursor) else ""
    if cursor.took_one("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"):
        cursor.took_one("INDEX", "KEY")
    elif not cursor.took_one("INDEX", "KEY"):
        raise Untold("the constraint is not known")
    cursor.took("IF", "NOT", "EXISTS")
    _read_parts(cursor)
    read_options_of_index(cursor)
    return ""


def _read_parts(cursor: Cursor) -> None:
    """Read the name of an index, if it has one, and its parts: columns, and expressions over them."""
    if not cursor.sees("(") and not cursor.sees("USING"):
        cursor.name()
    if cursor.took_one("USING", "TYPE"):
        cursor.name()
    cursor.parenthesis()


def read_check(cursor: Cursor) -> None:
    """Read a CHECK, named or not: rows pass it, or the statement fails. Raises Untold where none comes."""
    if cursor.took("CONSTRAINT") and not cursor.sees("CHECK"):
        cursor.name()
    cursor.must("CHECK")
    cursor.parenthesis()
    if not cursor.took("NOT", "ENFORCED"):
        cursor.took("ENFORCED")


def cascades(cursor: Cursor) -> bool:
    """Read what stands behind REFERENCES: whether the key changes rows when its parent goes. Raises Untold."""
    cursor.names_table()
    if cursor.sees("("):
        cursor.parenthesis()
    if cursor.took("MATCH"):
        cursor.name()
    changes = False
    while cursor.took("ON", "DELETE") or cursor.took("ON", "UPDATE"):
        leaves = any(cursor.took(*action) for action in _LEAVE_ROWS)
        if not leaves:
            cursor.must(*next((action for action in _ACTIONS if cursor.sees(*action)), _ACTIONS[0]))
        changes |= not leaves
    return changes
