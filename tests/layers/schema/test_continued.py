"""The columns of a new copy of a table that keeps its past: which go on, under which names, and which cannot."""

import pytest
from msgspec.structs import replace

from catchment.model.column_rule import ColumnRule
from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import Unsupported
from catchment.model.renewal import Renewal
from catchment.model.table import Column, ColumnType, Kind, Table, TableId, Wording
from catchment.model.treatment import Mode, Treatment
from catchment.model.widened import Declared, Widened
from catchment.schema.continued import continued
from catchment.schema.shape import first_shape, merge

T = TableId("shop", "t")
TINY, INT, BIGINT = (ColumnType(kind) for kind in (Kind.TINYINT, Kind.INT, Kind.BIGINT))
TEXT, LATIN = (ColumnType(Kind.TEXT, charset=charset) for charset in ("utf8mb4", "latin1"))
HISTORY = Treatment(Mode.HISTORY)
THEN = 7 << 32


def table(key: str = "id", **columns: ColumnType) -> Table:
    return Table(T, tuple(Column(name, kind) for name, kind in columns.items()), (key,))


def shape_of(treatment: Treatment = HISTORY, **shards: Table) -> TableShape:
    wordings = {shard: Wording({"v": "varchar(9)"}, "utf8mb4", False) for shard in shards}
    return first_shape(merge(shards), shards, treatment, wordings)


def going_on(
    former: TableShape, *, ordered: bool = False, treatment: Treatment = HISTORY, **shards: Table
) -> TableShape:
    return continued(shape_of(treatment, **shards), former, Renewal(THEN), shards, ordered=ordered)


def named(shape: TableShape) -> dict[str, str]:
    """The names in the files of the columns that are there, by those at the source."""
    return {c.column.name: c.physical for c in shape.columns if c.live}


FORMER = shape_of(a=table(id=INT, n=INT, v=TEXT))
AGAIN = replace(
    FORMER,
    columns=(
        FORMER.columns[0],
        replace(FORMER.columns[1], live=False, missing=("a",)),
        replace(FORMER.columns[2], physical="v__2"),
        LakeColumn(Column("n", INT), "n__5"),
    ),
)


def test_columns_keep_their_names_in_the_files() -> None:
    found = going_on(AGAIN, a=table(id=INT, v=TEXT, m=INT, n=INT))
    assert named(found) == {"id": "id", "v": "v__2", "n": "n__5", "m": "m"}
    assert [c.physical for c in found.columns] == ["id", "n", "v__2", "n__5", "m"]
    assert found.declared == (Declared("v__2", "varchar(9)"),)
    assert found.renews == Renewal(THEN)
    assert found.widened == ()


def test_a_column_that_comes_takes_no_name_of_one_that_was_there() -> None:
    gone = replace(
        FORMER, columns=(*FORMER.columns[:1], replace(FORMER.columns[1], live=False), FORMER.columns[2])
    )
    assert named(going_on(gone, a=table(id=INT, n=INT))) == {"id": "id", "n": "n__7"}


@pytest.mark.parametrize(
    ("now", "lake", "notes"),
    [
        (BIGINT, BIGINT, [Widened("n", INT)]),
        (TINY, INT, [Widened("n", TINY, ("a", "b"))]),
        (INT, INT, []),
    ],
)
def test_types_that_one_column_can_have(now: ColumnType, lake: ColumnType, notes: list[Widened]) -> None:
    here = table(id=INT, n=now)
    found = going_on(FORMER, a=here, b=here)
    assert {c.column.name: c.column.type for c in found.columns if c.live} == {"id": INT, "n": lake}
    assert list(found.widened) == notes
    assert [c.live for c in found.columns] == [True, True, False]


def test_texts_are_texts() -> None:
    found = going_on(FORMER, a=table(id=INT, v=LATIN))
    assert (named(found), found.widened) == ({"id": "id", "v": "v"}, ())


def test_what_cannot_stand_in_one_column_waits_for_an_order() -> None:
    here = table(id=INT, n=TEXT)
    with pytest.raises(
        Unsupported,
        match=r"column n is int there, and text now: values of both .*dump start FEED.yaml --table shop\.t",
    ):
        going_on(FORMER, a=here)
    found = going_on(FORMER, a=here, ordered=True)
    assert named(found) == {"id": "id", "n": "n__7"}
    assert [c.physical for c in found.columns if not c.live] == ["n", "v"]


def test_what_shards_lack() -> None:
    found = going_on(FORMER, a=table(id=INT, n=INT), b=table(id=INT, n=INT, v=TEXT))
    assert {c.column.name: c.missing for c in found.columns if c.live} == {"id": (), "n": (), "v": ("a",)}


@pytest.mark.parametrize(
    ("treatment", "key", "said"),
    [
        (
            HISTORY,
            "n",
            r"its key is \(id\) in the lake, and \(n\) now; put back the key, or start a new feed",
        ),
        (Treatment(Mode.APPEND), "id", "its mode is history in the lake, and append now; put back the mode"),
        (Treatment(), "id", "its mode is history in the lake, and mirror now"),
        (Treatment(Mode.HISTORY, (ColumnRule("v", excluded=True),)), "id", "say other things of v now"),
    ],
)
def test_where_the_past_cannot_go_on(treatment: Treatment, key: str, said: str) -> None:
    with pytest.raises(Unsupported, match=said):
        going_on(FORMER, ordered=True, treatment=treatment, a=table(key, id=INT, n=INT, v=TEXT))


def test_a_key_becomes_wider_and_not_narrower() -> None:
    found = going_on(FORMER, a=table(id=BIGINT))
    assert found.widened == (Widened("id", INT),)
    with pytest.raises(Unsupported, match="column id is int there, and tinyint now"):
        going_on(FORMER, ordered=True, a=table(id=TINY))
