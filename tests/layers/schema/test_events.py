"""Statements of a stretch: each is interpreted once, against the tables as they are where it stands."""

import pytest

from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.schema import events as module
from catchment.schema.ddl import HARMLESS, Columns, Effect
from catchment.schema.events import SchemaEvents
from catchment.schema.text import read_text
from catchment.wire.log.facts import Checkpoint, Ddl, Fact, Statement

T, U = TableId("shop", "t"), TableId("shop", "u")
COLUMN = "ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT"


def at(offset: int) -> LogOffset:
    return LogOffset("binlog.000001", offset)


def ddl(offset: int, sql: str) -> Ddl:
    return Ddl(offset, "shop", sql, at(offset), 0, flagged=True, sql_mode=0)


def told(facts: list[Fact], events: SchemaEvents) -> list[Effect]:
    return [event.effect for event in events.of(facts)]


def test_a_statement_is_read_once_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(sql: str, *rest: object, **named: object) -> object:
        read.append(sql)
        return read_text(sql, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "read_text", counted)
    events = SchemaEvents([T])
    first, second = ddl(4, COLUMN), ddl(60, "DROP INDEX i ON t")
    between = Statement(1, "shop", "DELETE FROM u", at(30), 0, sql_mode=0)
    live = [events.next(first), events.next(second)]
    found = list(events.of([first, Checkpoint("binlog.000001", at(20)), between, second]))
    assert [event.fact for event in found] == [first, between, second]
    assert [found[0], found[2]] == live
    assert found[0] is live[0]
    assert list(events.of([first, between, second])) == found
    assert sorted(read) == sorted([first.sql, between.sql, second.sql])


@pytest.mark.parametrize("live", [True, False], ids=["taken as they come", "taken at the end"])
def test_columns_are_those_that_the_table_has_there(*, live: bool) -> None:
    """MySQL and MariaDB log IF NOT EXISTS as it was said; a column that is there is not added (MariaDB manual)."""
    facts: list[Fact] = [
        ddl(4, "ALTER TABLE t ADD COLUMN n INT NULL"),
        ddl(60, COLUMN),
        ddl(120, "ALTER TABLE t DROP COLUMN n"),
        ddl(180, COLUMN),
    ]
    events = SchemaEvents([T, U], {T: {"id"}, U: {"id"}})
    if live:
        for fact in facts:
            assert isinstance(fact, Ddl)
            events.next(fact)
    assert told(facts, events) == [
        Columns(T, ("n",), ()),
        HARMLESS,
        Columns(T, (), ("n",)),
        Columns(T, ("n",), ()),
    ]


def test_a_statement_between_two_others_meets_the_tables_as_they_are_there() -> None:
    events = SchemaEvents([T], {T: {"id"}})
    first, last = ddl(4, "ALTER TABLE t ADD COLUMN n INT NULL"), ddl(120, "ALTER TABLE t DROP COLUMN n")
    events.next(first)
    events.next(last)
    between = ddl(60, COLUMN)
    assert told([first, between, last], events) == [Columns(T, ("n",), ()), HARMLESS, Columns(T, (), ("n",))]
    assert [event.here for event in events.of([first, between, last])] == [
        {T: frozenset({"id"})},
        {T: frozenset({"id", "n"})},
        {T: frozenset({"id", "n"})},
    ]
