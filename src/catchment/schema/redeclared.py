"""The definition that MODIFY gives a column, and CHANGE, which may rename it, too.

Pure. What is not known here to leave the choice of values to the type alone is not told.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from catchment.model.errors import Unsupported
from catchment.model.table import ColumnType, Kind
from catchment.schema.attributes import attributes
from catchment.schema.declaration import attributes_of, read_column
from catchment.schema.renamed import renamed
from catchment.schema.statement import AmbiguousText, Word
from catchment.wire.cells.types import from_catalog

REDEFINED: Final = "a column was renamed or given another definition"
_OF_CHARSETS: Final = (Kind.TEXT, Kind.ENUM, Kind.SET)
# Two labels that a collation takes for one are refused in a strict mode alone. Elsewhere MariaDB makes one of both.
_LABELLED: Final = (Kind.ENUM, Kind.SET)
_ROUNDED: Final = (Kind.FLOAT, Kind.DOUBLE, Kind.YEAR)
_ANY: Final = "utf8mb4"  # stands for the table's own, until that is known


@dataclass(frozen=True, slots=True)
class Redeclared:
    """A column, the `type` that it gets, and how it is `declared`, as the catalog shows it. A type of texts without a
    character set has the table's own."""

    column: str
    type: ColumnType
    declared: str

    def with_charset(self, charset: str) -> ColumnType:
        """The type in a table of this character set."""
        if self.type.kind in _OF_CHARSETS and not self.type.charset:
            return replace(self.type, charset=charset)
        return self.type


def redeclared(action: Sequence[Word], *, strict: bool) -> Redeclared | None:
    """The column that an action of an ALTER TABLE gives a definition, under the name that it had. None where the action
    does something else, or what it does is not known. `strict`: the statement fails where a NULL or a label does not
    fit."""
    words = definition_of(action)
    if not words:
        return None
    try:
        found = declared_as(words)
        rest = attributes_of(words[1:])
        said = attributes(rest)
    except (AmbiguousText, Unsupported):
        return None
    kind = found.type.kind
    arguments = any(word.keyword == "(" for word in words[: len(words) - len(rest)])
    others = said.primary or said.computes or said.cascades
    loses = not strict and (said.null is False or kind in _LABELLED)
    # A TIMESTAMP that is NULL may become the time of the statement.
    if (
        others
        or loses
        or (kind is Kind.TIMESTAMP and said.null is not True)
        or (kind in _ROUNDED and arguments)
    ):
        return None
    was = renamed(action)
    return found if was is None else Redeclared(was.old, found.type, found.declared)


def declared_as(words: Sequence[Word]) -> Redeclared:
    """The column of the declaration `name type attributes`. Raises AmbiguousText, Unsupported."""
    column = read_column(words, "", mysql=True)
    name = re.split(r"[( ]", column.declared, maxsplit=1)[0]
    kind = from_catalog(name, column.declared, column.charset or _ANY)
    return Redeclared(column.name, kind if column.charset else replace(kind, charset=""), column.declared)


def definition_of(action: Sequence[Word]) -> Sequence[Word]:
    """`name type attributes` of MODIFY and CHANGE, with the name that the column has behind it; nothing of other
    actions."""
    head = action[0].keyword if action else ""
    rest = action[1:]
    if head not in ("MODIFY", "CHANGE"):
        return ()
    if rest and rest[0].keyword == "COLUMN":
        rest = rest[1:]
    if not rest or rest[0].keyword == "IF" or rest[0].quote == "'":
        return ()
    if head == "MODIFY":
        return rest
    return rest[1:] if len(rest) > 1 and rest[1].quote != "'" else ()
