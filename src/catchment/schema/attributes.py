"""What the attributes of a column's declaration say, by the grammars of MySQL 8.0 to 9.7 and MariaDB 10.5 to 11.8.

Each attribute must be known. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from catchment.schema.constraints import cascades, read_check
from catchment.schema.cursor import Cursor, Untold
from catchment.schema.defaults import Default, Form, read_default, read_now
from catchment.schema.statement import Word

# What says nothing about the values that rows have: alone, with a text, and with a word or number behind it.
_ALONE: Final = ("SIGNED", "VISIBLE", "INVISIBLE", "FIRST", "BINARY")
_WITH_TEXT: Final = ("COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE")
_WITH_WORD: Final = ("COLUMN_FORMAT", "STORAGE", "SRID", "REF_SYSTEM_ID", "AFTER")
_CHARSET_WORDS: Final = {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary"}


@dataclass(frozen=True, slots=True)
class Attributes:
    """The `default` that a declaration says, and whether the column may be `null`; None where it says nothing.

    `charset` and `collation`: the names of them in lower case, empty where none is said. `primary`: the column becomes
    the primary key. `computes`: the server makes values of the column. `cascades`: a foreign key of it changes rows.
    """

    default: Default | None = None
    null: bool | None = None
    unsigned: bool = False
    charset: str = ""
    collation: str = ""
    primary: bool = False
    computes: bool = False
    cascades: bool = False

    @property
    def leaves_null(self) -> bool:
        """Whether rows that are there have NULL in such a column, as far as its type does not decide."""
        return self.null is not False and (self.default is None or self.default.form is Form.NULL)


def attributes(words: Sequence[Word]) -> Attributes:
    """What the words behind a type say; of two that contradict each other the last one holds, as for servers. Raises
    Untold where one of them is not known."""
    said: dict[str, Any] = {}
    cursor = Cursor(words)
    while not cursor.ended:
        one = _attribute(cursor)
        if "default" in one and "default" in said:
            raise Untold("the column has two defaults")
        said |= one
    return Attributes(**said)


def _attribute(cursor: Cursor) -> Mapping[str, Any]:  # noqa: PLR0911
    """What the attribute says that comes next, which is read."""
    if cursor.took("NOT", "NULL"):
        return {"null": False}
    if cursor.took("NULL"):
        return {"null": True}
    if cursor.took("DEFAULT"):
        return {"default": read_default(cursor)}
    if cursor.took_one("UNSIGNED", "ZEROFILL"):
        return {"unsigned": True}
    if cursor.took("UNIQUE"):
        cursor.took("KEY")
        return {}
    if cursor.took("PRIMARY") or cursor.sees("KEY"):
        cursor.took("KEY")
        return {"primary": True}
    if cursor.took("REFERENCES"):
        return {"cascades": True} if cascades(cursor) else {}
    return _computed(cursor) or _charset(cursor) or _silent(cursor)


def _computed(cursor: Cursor) -> Mapping[str, Any]:
    """An attribute by which the server makes the values."""
    if cursor.took("SERIAL", "DEFAULT", "VALUE") or cursor.took("AUTO_INCREMENT"):
        return {"computes": True}
    if cursor.took("GENERATED", "ALWAYS", "AS") or cursor.took("AS"):
        cursor.parenthesis()
        cursor.took_one("VIRTUAL", "STORED", "PERSISTENT")
        return {"computes": True}
    return {}


def _charset(cursor: Cursor) -> Mapping[str, Any]:
    word = cursor.took_one(*_CHARSET_WORDS)
    if word:
        return {"charset": _CHARSET_WORDS[word]}
    if cursor.took("CHARACTER", "SET") or cursor.took("CHAR", "SET") or cursor.took("CHARSET"):
        return {"charset": cursor.word().text.lower()}
    return {"collation": cursor.word().text.lower()} if cursor.took("COLLATE") else {}


def _silent(cursor: Cursor) -> Mapping[str, Any]:
    """Read an attribute that says nothing about values. Raises Untold."""
    if cursor.took_one(*_ALONE) or cursor.took("NOT", "SECONDARY"):
        return {}
    if cursor.took_one(*_WITH_TEXT):
        cursor.took("=")
        cursor.text()
    elif cursor.took_one(*_WITH_WORD):
        cursor.took("=")
        cursor.word()
    elif cursor.took("COMPRESSED"):  # how MariaDB stores the bytes
        if cursor.took("="):
            cursor.name()
    elif cursor.took("ON", "UPDATE"):  # for statements to come
        if read_now(cursor) is None:
            raise Untold("it is not known what the column gets ON UPDATE")
    else:
        read_check(cursor)
    return {}
