"""Lines for people."""

from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.serve.formats.table_lines import TableLines
from catchment.serve.stream.events import Begin, Commit, Ddl, Event, Field, LastPk, Restart, Row, Values
from tests.layers.serve.formats.told import lines_of

T = TableId("shop", "orders")
AT = ("shop", "-80")
COLUMNS = (Column("id", ColumnType(Kind.INT)), Column("name", ColumnType(Kind.TEXT)))


def transaction(*events: Event, time: int = 1_764_081_000) -> list[Event]:
    return [Begin(*AT, "0-1-5", time), *events, Commit(*AT, "0-1-5", time)]


def row(before: Values | None, after: Values | None) -> Row:
    return Row(*AT, T, before, after)


FIELD = Field(*AT, T, COLUMNS, ("id",))


def test_each_operation() -> None:
    events = [
        Begin(*AT, copied=True),
        *(FIELD, row(None, {"id": 1, "name": "a"}), LastPk(*AT, T, None), Commit(*AT)),
        *transaction(
            row(None, {"id": 12345, "name": "b"}),
            row({"id": 1, "name": "a"}, {"id": 2, "name": None}),
            row({"id": 2, "name": None}, None),
        ),
        *transaction(Ddl(*AT, T, "TRUNCATE TABLE orders", {}, emptied=True)),
        Restart(*AT, T, "why"),
    ]
    assert lines_of(TableLines(), events) == [
        "-                    shop/-80  shop.orders  copy     id=1  name='a'",
        "2025-11-25 14:30:00  shop/-80  shop.orders  insert   id=12345  name='b'",
        "2025-11-25 14:30:00  shop/-80  shop.orders  update   id=1      id=1 -> 2 name='a' -> NULL",
        "2025-11-25 14:30:00  shop/-80  shop.orders  delete   id=2      name=NULL",
        "2025-11-25 14:30:00  shop/-80  shop.orders  ddl                TRUNCATE TABLE orders",
        "-                    shop/-80  shop.orders  restart            its rows are copied again",
    ]


def test_no_value_commands_the_terminal() -> None:
    odd = "\x1b[2J\x9b\n\u202e"
    (line,) = lines_of(TableLines(), transaction(FIELD, row(None, {"id": 1, "name": odd})))
    assert line.isprintable()


def test_long_values_are_cut_and_still_differ() -> None:
    old, new = "x" * 5000 + "a", "x" * 5000 + "b"
    events = transaction(FIELD, row({"id": 1, "name": old}, {"id": 1, "name": new}))
    (line,) = lines_of(TableLines(), events)
    assert "name='xxx" in line
    assert "…" in line
    assert len(line) < 250
