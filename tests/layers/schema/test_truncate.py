"""TRUNCATE in the spellings of both servers: which of them surely takes all rows, and what the shape says then."""

from dataclasses import replace

import pyarrow as pa
import pytest

from catchment.model.emptied import Emptied
from catchment.model.epoch import TableShape
from catchment.model.errors import SourceError
from catchment.model.image import GROUP
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.model.treatment import Mode, Treatment
from catchment.rewind.states import behind
from catchment.schema.columns import shape_after
from catchment.schema.ddl import HARMLESS, Columns, Effect, Stop, effect_of
from catchment.schema.passage import Passage
from catchment.schema.shape import first_shape
from catchment.schema.text import read_text

T, QUOTED = TableId("shop", "t"), TableId("shop", "my`table")
CHOSEN = (T, QUOTED)


def of(sql: str, schema: str = "shop", *, mysql: bool = False, doubtful: bool = False) -> Effect:
    return effect_of(replace(read_text(sql, schema, mysql=mysql), doubtful=doubtful), CHOSEN)


TAKES = {
    "TRUNCATE t": T,
    "truncate table t": T,
    "TRUNCATE shop.t": T,
    "TRUNCATE TABLE `shop` . `t`": T,
    "TRUNCATE `my``table`": QUOTED,
    "TRUNCATE t NOWAIT": T,
    "TRUNCATE TABLE t WAIT 15": T,
    "SET STATEMENT lock_wait_timeout=5 FOR TRUNCATE t": T,
    "/*! TRUNCATE t */": T,
    "TRUNCATE /* all of */ TABLE t -- now": T,
    "TRUNCATE TABLE /*!50000 t */": T,
}
STOPS = [
    "TRUNCATE T",
    "TRUNCATE TABLE SHOP.t",
    "TRUNCATE .t",
    "TRUNCATE t, o",
    "TRUNCATE o t",
    "TRUNCATE TABLE t WAIT",
    "TRUNCATE TABLE t WAIT 5 NOWAIT",
    "TRUNCATE TABLE t DROP STORAGE",
    "TRUNCATE TABLE IF EXISTS t",
    "TRUNCATE",
]


@pytest.mark.parametrize("mysql", [False, True])
def test_takes_all_rows(mysql: bool) -> None:
    found = {sql: of(sql, mysql=mysql) for sql in TAKES}
    assert found == {sql: Columns(table, (), (), emptied=True) for sql, table in TAKES.items()}


def test_of_a_temporary_table_perhaps() -> None:
    for sql, table in TAKES.items():
        stop = of(sql, doubtful=True)
        assert isinstance(stop, Stop), sql
        assert (stop.table, stop.reason) == (table, "it was truncated, which logs no rows"), sql


def test_what_is_not_known_stops() -> None:
    for sql in STOPS[:-1]:
        found = of(sql)
        assert isinstance(found, Stop), sql
        assert found.table == T, sql


@pytest.mark.parametrize(
    ("sql", "mariadb", "mysql"),
    [
        ("TRUNCATE /*M! TABLE */ t", True, True),
        ("TRUNCATE t /*M! NOWAIT */", True, True),
        ("TRUNCATE /*!80000 TABLE */ t", True, True),
        ("TRUNCATE /*!80000 o. */ t", False, True),
        ("TRUNCATE /*!99999 o. */ t", False, False),
        ("TRUNCATE o /*!99999 . t */", False, False),
    ],
)
def test_comments_with_code(sql: str, mariadb: bool, mysql: bool) -> None:
    """`TRUNCATE o.t` is another schema's table where the comment is run, and where it may be the table stops."""
    assert isinstance(of(sql), Columns) is mariadb
    if "80000 o" not in sql:
        assert isinstance(of(sql, mysql=True), Columns) is mysql


def test_other_tables_are_not_concerned() -> None:
    assert of("TRUNCATE o") == of("TRUNCATE elsewhere.t") == of("TRUNCATE t", "elsewhere") == HARMLESS
    assert of("TRUNCATE TABLE truncate.t") == HARMLESS


ID, N = Column("id", ColumnType(Kind.INT)), Column("n", ColumnType(Kind.INT))
TABLE = Table(T, (ID, N), ("id",))
TRUNCATED = Columns(T, (), (), emptied=True)
ADDED = Columns(T, ("m",), ())
WITH_M = Table(T, (*TABLE.columns, Column("m", ColumnType(Kind.INT))), ("id",))
EPOCH = 77


def after(shape: TableShape, passage: Passage) -> TableShape:
    return shape_after(shape, "b", ("a", "b"), passage, EPOCH)


@pytest.mark.parametrize(
    "passage",
    [
        Passage(behind=(TRUNCATED,)),
        Passage(behind=(TRUNCATED,), catalog=TABLE),
        Passage((TRUNCATED,), TABLE),
        Passage((), TABLE, (TRUNCATED,)),
        Passage((TRUNCATED, TRUNCATED), TABLE, (TRUNCATED,)),
        Passage((ADDED, TRUNCATED), WITH_M),
        Passage(behind=(TRUNCATED, ADDED), catalog=WITH_M),
        Passage(behind=(ADDED, TRUNCATED), catalog=None),
        Passage(behind=(ADDED, TRUNCATED), catalog=TABLE),
    ],
)
def test_the_shape_says_whose_rows_are_gone(passage: Passage) -> None:
    """Those of earlier epochs, wherever it stands among rows and ALTERs, also where a column's type is not known."""
    shape = first_shape(TABLE, {"a": TABLE, "b": TABLE})
    assert after(shape, passage).emptied == (Emptied(("b",), EPOCH),)


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.MIRROR])
def test_a_mode_that_keeps_the_past_does_not_follow_it(mode: Mode) -> None:
    shape = first_shape(TABLE, treatment=Treatment(mode=mode))
    with pytest.raises(
        SourceError, match=rf"shard b: shop\.t was truncated.* its mode is {mode.value}, which keeps"
    ):
        after(shape, Passage(behind=(TRUNCATED,)))


def test_images_in_front_of_it_are_dropped() -> None:
    images = pa.table({"id": [1, 2, 3], GROUP: pa.array([0, 4, 5], pa.int64())})
    assert behind(images, 4)["id"].to_pylist() == [2, 3]
    assert behind(images, 6).num_rows == 0
