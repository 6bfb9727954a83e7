"""What the statements of a log do to the chosen tables: each is interpreted once, and travels as one event."""

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import cast

from catchment.model.epoch import TableShape
from catchment.model.of_tables import Lazily
from catchment.model.position import LogOffset, reaches
from catchment.model.table import TableId
from catchment.schema.chosen import Chosen
from catchment.schema.columns import table_on
from catchment.schema.ddl import HARMLESS, Columns, Effect, Here, Stop, effect_of, named_by
from catchment.schema.text import Text, read_text
from catchment.wire.log.facts import Ddl, Fact, Statement

_Here = ChainMap[TableId, Collection[str]]


@dataclass(frozen=True, slots=True)
class SchemaEvent:
    """A statement where it stands in the log, and what it does as DDL to the chosen tables.

    One that is no DDL is Harmless here; judge.py says more. `here`: as SchemaEvents takes it, just before it.
    """

    fact: Ddl | Statement
    text: Text
    effect: Effect
    here: Here | None

    @property
    def at(self) -> LogOffset:
        """Where the statement begins."""
        return self.fact.at

    @property
    def group(self) -> int:
        """Ordinal of its group in the stretch."""
        return self.fact.group


class SchemaEvents:
    """Interprets the statements of one stretch of log, in their order.

    `here`: those of the chosen tables that the shard has where the stretch begins, with their columns. None: it has
    all, and the columns are not known. `defined`: where the DDL stands by which they have those; it did nothing more,
    nor did any before it.
    """

    def __init__(
        self, chosen: Iterable[TableId], here: Here | None = None, defined: LogOffset | None = None
    ) -> None:
        self.chosen = chosen if isinstance(chosen, Chosen) else Chosen(chosen)
        self._defined = defined
        self._begin = None if here is None else _lower(here)
        self._now = self._begin
        self._known: dict[LogOffset, SchemaEvent] = {}

    def next(self, fact: Ddl | Statement) -> SchemaEvent:
        """The event of the statement that comes next in the log."""
        event = self._known[fact.at] = self._event(fact, self._now)
        self._now = _behind(event, self._now)
        return event

    def of(self, facts: Iterable[Fact]) -> Iterator[SchemaEvent]:
        """The events of the stretch, from its begin on: those known already, and others between them."""
        here = self._begin
        for fact in facts:
            if isinstance(fact, Ddl | Statement):
                event = self._known.get(fact.at) or self._event(fact, here)
                self._known[fact.at] = event
                here = _behind(event, here)
                yield event

    def _event(self, fact: Ddl | Statement, here: Here | None) -> SchemaEvent:
        text = text_of(fact)
        known = isinstance(fact, Ddl) and self._defined is not None and reaches(self._defined, fact.at)
        return SchemaEvent(fact, text, HARMLESS if known else effect_of(text, self.chosen, here), here)


def stops(event: SchemaEvent, chosen: Collection[TableId]) -> list[Stop]:
    """Of each of the chosen tables, what keeps the statement from being followed there: it may name several. None where
    its effect is no Stop."""
    if not isinstance(event.effect, Stop):
        return []
    here = event.here
    found = []
    for table in named_by(event.text, chosen):
        mine: Here | None = None
        if here is not None:
            mine = {table: here[table]} if table in here else {}
        alone = effect_of(event.text, [table], mine)
        if isinstance(alone, Stop):
            found.append(alone)
        elif table == event.effect.table:
            found.append(event.effect)
    return found


def _lower(here: Here) -> _Here:
    """The columns in lower case, each table's when it is looked at; in front of them there is room for those of tables
    that were altered."""
    begin = Lazily(here, lambda table: frozenset(map(str.lower, here[table])))
    return ChainMap({}, cast(MutableMapping[TableId, Collection[str]], begin))  # nobody writes to it


def _behind(event: SchemaEvent, here: _Here | None) -> _Here | None:
    """The tables with their columns behind an event; `here`: in front of it."""
    did = event.effect
    if here is None or not isinstance(did, Columns):
        return here
    gone = {name.lower() for name in (*did.dropped, *(one.old for one in did.renamed))}
    came = {name.lower() for name in (*did.added, *(one.new for one in did.renamed))}
    altered, begin = here.maps
    return ChainMap({**altered, did.table: (frozenset(here[did.table]) - gone) | came}, begin)


def text_of(fact: Ddl | Statement) -> Text:
    """The statement of a fact, read."""
    text = read_text(
        fact.sql, fact.schema, mysql=fact.mysql, sql_mode=fact.sql_mode, time=fact.timestamp, folds=fact.folds
    )
    # One inside a transaction is no TRUNCATE of a table, which ends it.
    doubtful = not isinstance(fact, Ddl) or fact.doubtful
    return replace(text, doubtful=True) if doubtful else text


def tables_here(shapes: Mapping[TableId, TableShape], shard: str) -> Here:
    """The tables that a shard has, whose lake tables are given, with their columns; each table's when it is asked."""
    return Lazily(shapes, lambda table: frozenset(c.name for c in table_on(shapes[table], shard).columns))
