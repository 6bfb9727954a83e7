"""Which tables the DDL of a log brings into being and takes away, chosen or not.

It serves to tell of tables that a feed does not carry. It leaves out a statement that it cannot read: when a run
begins, the look at the catalog finds its effect. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from catchment.model.birth import Birth
from catchment.model.position import LogOffset, Position
from catchment.model.table import TableId
from catchment.schema.birth import makes_empty
from catchment.schema.events import SchemaEvent
from catchment.schema.statement import Word, parted
from catchment.schema.text import Text
from catchment.wire.log.facts import Ddl

_OPTIONS = frozenset({"OR", "REPLACE", "ONLINE", "OFFLINE", "IGNORE"})
# What ALTER TABLE may rename besides the table.
_PARTS = frozenset({"COLUMN", "INDEX", "KEY"})
_TABLE = frozenset({"TABLE", "TABLES"})
_DATABASE = frozenset({"DATABASE", "SCHEMA"})


@dataclass(frozen=True, slots=True)
class Renamed:
    """A table has its name since a statement `at` a place, and had another one in front of it."""

    before: TableId
    at: LogOffset


@dataclass(frozen=True, slots=True)
class Existence:
    """What a stretch of log says of tables. First come the schemas that were dropped, then of each table named
    whether it is there where the stretch ends. `born`: of those that are there, the ones that the stretch made without
    a row. `renamed`: those that RENAME TABLE gave their name."""

    schemas_gone: frozenset[str] = frozenset()
    there: dict[TableId, bool] = field(default_factory=dict)
    born: dict[TableId, Birth] = field(default_factory=dict)
    renamed: dict[TableId, Renamed] = field(default_factory=dict)

    def after(self, table: TableId, before: bool) -> bool:
        """Whether a table is there behind the stretch; `before`: in front of it."""
        return self.there.get(table, before and table.schema not in self.schemas_gone)

    def birth_after(self, table: TableId, before: Birth | None) -> Birth | None:
        """Where a table was made that is there behind the stretch; `before`: the same in front of it. None where that
        is not known."""
        known = table in self.there or table.schema in self.schemas_gone
        return self.born.get(table) if known else before


def existence(events: Iterable[SchemaEvent], start: Position) -> Existence:
    """What the DDL of a stretch, in its order, did. It begins at `start`."""
    schemas: set[str] = set()
    there: dict[TableId, bool] = {}
    made: dict[TableId, LogOffset] = {}
    renamed: dict[TableId, Renamed] = {}
    for event in events:
        if not isinstance(event.fact, Ddl):
            continue
        for name, is_there in _changes(event.text):
            if isinstance(name, TableId):
                there[name] = is_there
                made.pop(name, None)
                renamed.pop(name, None)
                if is_there and makes_empty(event.text.words):
                    made[name] = event.at
                continue
            schemas.add(name)
            there = {table: known and table.schema != name for table, known in there.items()}
        renamed |= {name: Renamed(before, event.at) for before, name in _renames(event.text)}
    born = {table: Birth(start, at) for table, at in made.items() if there[table]}
    renamed = {table: one for table, one in renamed.items() if there[table]}
    return Existence(frozenset(schemas), there, born, renamed)


def new_in(events: Sequence[SchemaEvent], start: Position) -> set[TableId]:
    """The tables that are there behind a stretch, and were not where it begins: its first word of them makes them."""
    named: set[TableId] = set()
    new: set[TableId] = set()
    for event in events:
        did = existence([event], start)
        if did.schemas_gone:
            break
        # OR REPLACE may have taken one that was there.
        if did.born and event.text.words[1].keyword == "TABLE":
            new |= did.born.keys() - named
        named |= did.there.keys()
    return new & existence(events, start).born.keys()


def _renames(text: Text) -> Iterator[tuple[TableId, TableId]]:
    """What a RENAME TABLE renamed to what."""
    if text.words[:1] and text.words[0].keyword == "RENAME":
        names = [name for name, _ in _changes(text) if isinstance(name, TableId)]
        yield from zip(names[::2], names[1::2], strict=False)


def _changes(text: Text) -> Iterator[tuple[TableId | str, bool]]:
    """Tables made (True) and gone (False), and schemas gone, in the order in which the statement names them."""
    yield from _Statement(text.words, text).changes()


class _Statement:
    """A statement, and the place up to which it was read."""

    def __init__(self, words: Sequence[Word], text: Text) -> None:
        self._words = words
        self._text = text
        self._at = 1

    def changes(self) -> Iterator[tuple[TableId | str, bool]]:
        """As `_changes`; nothing for a statement about other things."""
        head = self._words[0].keyword if self._words else ""
        while self._next() in _OPTIONS:
            self._at += 1
        kind = self._next()
        self._at += 1
        self._skip("IF", "NOT", "EXISTS")
        if kind in _DATABASE and (head == "DROP" or (head == "CREATE" and self._words[1].keyword == "OR")):
            yield from ((self._text.name(word.text), False) for word in self._words[self._at : self._at + 1])
        if kind not in _TABLE or self._at >= len(self._words):
            return
        match head:
            case "CREATE":
                yield self._name(), True
            case "DROP":
                yield self._name(), False
                while self._took(","):
                    yield self._name(), False
            case "RENAME":
                yield from self._renames()
            case "ALTER":
                yield from self._alter()

    def _renames(self) -> Iterator[tuple[TableId, bool]]:
        while self._at < len(self._words):
            yield self._name(), False
            while self._at < len(self._words) and not self._took("TO"):  # WAIT 5, NOWAIT
                self._at += 1
            if self._at < len(self._words):
                yield self._name(), True
            self._took(",")

    def _alter(self) -> Iterator[tuple[TableId, bool]]:
        altered = self._name()
        for action in parted(self._words[self._at :]):
            one = _Statement(action, self._text)
            one._at = next(
                (at for at, w in enumerate(action) if w.keyword in ("RENAME", "CONVERT")), len(action)
            )
            if one._took("RENAME") and one._next() not in _PARTS:
                one._skip("TO", "AS", "=")
                yield altered, False
                yield one._name(), True
            elif one._took("CONVERT"):
                yield from one._conversion()

    def _conversion(self) -> Iterator[tuple[TableId, bool]]:
        """CONVERT PARTITION p TO TABLE t makes a table, CONVERT TABLE t TO PARTITION takes it (MariaDB)."""
        if self._took("TABLE"):
            yield self._name(), False
        elif self._took("PARTITION"):
            self._at += 1
            if self._took("TO") and self._took("TABLE"):
                yield self._name(), True

    def _next(self) -> str:
        return self._words[self._at].keyword if self._at < len(self._words) else ""

    def _took(self, keyword: str) -> bool:
        """Whether the next word is this one, which is read then."""
        found = self._next() == keyword
        self._at += found
        return found

    def _skip(self, *keywords: str) -> None:
        for keyword in keywords:
            self._took(keyword)

    def _name(self) -> TableId:
        """The table named here, which is read: `name` or `schema.name`."""
        names = [self._words[self._at].text if self._at < len(self._words) else ""]
        self._at += 1
        while self._took("."):
            names.append(self._words[self._at].text if self._at < len(self._words) else "")
            self._at += 1
        schema = names[-2] if len(names) > 1 else self._text.schema
        return TableId(self._text.name(schema), self._text.name(names[-1]))
