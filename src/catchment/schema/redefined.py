"""Which statements of a log change what is stored on a server: views, triggers, routines and foreign keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from catchment.schema.names import without_marks
from catchment.schema.reach import Reach
from catchment.schema.statement import Word
from catchment.schema.text import Text
from catchment.schema.verbs import DATABASES, Act, object_of

_STORED = frozenset({"VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE"})
_TABLES = frozenset({"TABLE", "TABLES"})
# What of a table others lead to: its name, triggers and foreign keys.
_OF_TABLES = frozenset({"RENAME", "EXCHANGE", "CONVERT", "FOREIGN", "REFERENCES", "CONSTRAINT"})
_NO_NAMES = frozenset({"IF", "NOT", "EXISTS", "TO", "CASCADE", "RESTRICT", "BODY", "WAIT", "NOWAIT"})


@dataclass(frozen=True, slots=True)
class Redefined:
    """What a statement defines: objects of these names, or of whole schemas, or it is not known what. Names are
    `without_marks`.

    `only_adds`: whatever was there before is there still.
    """

    names: frozenset[str] = frozenset()
    schemas: frozenset[str] = frozenset()
    unknown: bool = False
    only_adds: bool = False

    def takes_from(self, reach: Reach) -> bool:
        """Whether a statement that leads to `reach` now may have led elsewhere before this one."""
        if self.only_adds:
            return False
        return (
            self.unknown
            or not self.names.isdisjoint(name for _, name in reach.names)
            or not self.schemas.isdisjoint(schema for schema, _ in reach.names)
        )


def redefined(text: Text) -> Redefined | None:
    """What a statement defines of what is stored; None when nothing."""
    if text.unreadable or Act.NOT_KNOWN in text.kinds:
        return Redefined(unknown=True)
    words, head = text.words, text.words[0].keyword if text.words else ""
    kind, place = object_of(words) if head in ("CREATE", "ALTER", "DROP", "RENAME") else ("", 1)
    before, behind = {word.keyword for word in words[:place]}, words[place:]
    found = None
    if kind in DATABASES:
        found = Redefined(schemas=_names(behind))
    elif kind == "TRIGGER":  # it does not say of which table
        named = [word for word in behind if word.keyword not in _NO_NAMES]
        own = named[0].text if named[1:2] == [Word(".")] else text.schema
        found = Redefined(schemas=frozenset({without_marks(own)}))
    elif kind in _STORED:
        found = Redefined(_names(behind if head == "DROP" else _first(behind)))
    elif kind in _TABLES and "TEMPORARY" not in before:
        whole = head in ("DROP", "RENAME") or "REPLACE" in before
        if whole or not _OF_TABLES.isdisjoint(word.keyword for word in words):
            found = Redefined(_names(behind))
    return found and replace(found, only_adds=head == "CREATE" and "REPLACE" not in before)


def _first(words: Sequence[Word]) -> Sequence[Word]:
    """The first name, with its schema."""
    start = next((place for place, word in enumerate(words) if word.keyword not in _NO_NAMES), len(words))
    return (
        words[start : start + 3] if words[start + 1 : start + 2] == [Word(".")] else words[start : start + 1]
    )


def _names(words: Iterable[Word]) -> frozenset[str]:
    return frozenset(
        without_marks(word.text) for word in words if word.quote != "'" and word.keyword not in _NO_NAMES
    )
