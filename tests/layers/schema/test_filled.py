"""Columns that come with a value: what the shape of a lake table notes of rows that servers filled and did not log."""

import pytest

from catchment.model.column_rule import ColumnRule, Masking
from catchment.model.epoch import TableShape
from catchment.model.errors import SourceError
from catchment.model.fill import Fill
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.model.treatment import PLAIN, Mode, Treatment
from catchment.schema.columns import shape_after
from catchment.schema.ddl import Columns, effect
from catchment.schema.passage import Passage
from catchment.schema.shape import first_shape

T = TableId("shop", "t")
INT, TEXT = ColumnType(Kind.INT), ColumnType(Kind.TEXT, charset="utf8mb4")
SHARDS = ("a", "b", "c")
EPOCH = 7 << 32


def table(**more: ColumnType) -> Table:
    columns = {"id": INT, "n": INT, **more}
    return Table(T, tuple(Column(name, kind) for name, kind in columns.items()), ("id",))


def begun(treatment: Treatment = PLAIN) -> TableShape:
    return first_shape(table(), dict.fromkeys(SHARDS, table()), treatment)


def parsed(*actions: str) -> tuple[Columns, ...]:
    found = [effect(f"ALTER TABLE t {action}", "shop", [T], sql_mode=0) for action in actions]
    assert all(isinstance(one, Columns) for one in found), found
    return tuple(one for one in found if isinstance(one, Columns))


def met(shape: TableShape, shard: str, *actions: str, epoch: int = EPOCH, **more: ColumnType) -> TableShape:
    """The shape where a shard has run statements, and a row follows them, of a table with `more` columns."""
    return shape_after(shape, shard, SHARDS, Passage(parsed(*actions), table(**more)), epoch)


def test_rows_of_the_epoch_have_the_value_where_one_follows_the_statement() -> None:
    """Its task gives it to the rows that came before. Where no row follows, no task knows the column's type."""
    add = "ADD m INT DEFAULT 4"
    assert met(begun(), "a", add, m=INT).fills == (Fill("m", ("a",), EPOCH, "4"),)
    unmet = Passage(behind=parsed(add), catalog=table(m=INT))
    assert shape_after(begun(), "a", SHARDS, unmet, EPOCH).fills == (Fill("m", ("a",), EPOCH + 1, "4"),)


def test_shards_have_their_own_values_and_epochs() -> None:
    shape = met(begun(), "a", "ADD m INT DEFAULT 4", m=INT)
    shape = met(shape, "b", "ADD m INT DEFAULT 5", m=INT)
    assert shape.fills == (Fill("m", ("a",), EPOCH, "4"), Fill("m", ("b",), EPOCH, "5"))
    later = met(shape, "c", "ADD m INT DEFAULT 5", epoch=EPOCH + 1, m=INT)
    assert later.fills == (*shape.fills, Fill("m", ("c",), EPOCH + 1, "5"))
    same = met(shape, "c", "ADD m INT DEFAULT 4", m=INT)
    assert set(same.fills) == {Fill("m", ("a", "c"), EPOCH, "4"), Fill("m", ("b",), EPOCH, "5")}


def test_a_value_is_that_of_the_column_which_is_left() -> None:
    """A column that is dropped takes its value along, also where another one of its name comes: that is `m__7`."""
    assert met(begun(), "a", "ADD m INT DEFAULT 4", "DROP m").fills == ()
    plain = met(begun(), "a", "ADD m INT DEFAULT 4", "DROP m", "ADD m INT", m=INT)
    assert plain.fills == ()
    again = met(begun(), "a", "ADD m INT DEFAULT 4", "DROP m", "ADD m INT DEFAULT 6", m=INT)
    assert again.fills == (Fill("m__7", ("a",), EPOCH, "6"),)
    text = met(begun(), "a", "ADD m INT DEFAULT 4", "DROP m, ADD m VARCHAR(9) DEFAULT 'x'", m=TEXT)
    assert text.fills == (Fill("m__7", ("a",), EPOCH, "x"),)


def test_a_name_in_another_case_is_the_same() -> None:
    assert met(begun(), "a", "ADD M INT DEFAULT 4", M=INT).fills == (Fill("M", ("a",), EPOCH, "4"),)


@pytest.mark.parametrize(
    ("treatment", "kind", "why"),
    [
        (PLAIN, TEXT, "given another definition or name before a row showed it"),
        (Treatment(Mode.APPEND), INT, "with a value in every row, and it would be new in changes of before"),
        (
            Treatment(rules=(ColumnRule("m", masking=Masking.HMAC),)),
            INT,
            "with a value in every row, and it is masked",
        ),
    ],
)
def test_what_is_not_followed(treatment: Treatment, kind: ColumnType, why: str) -> None:
    with pytest.raises(SourceError, match=rf"column m of shop\.t was added.* {why}"):
        met(begun(treatment), "a", "ADD m INT DEFAULT 4", m=kind)
