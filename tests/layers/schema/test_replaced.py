"""The shape of a table of which some shards have another one in its place."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from catchment.model.arrangement import Arrangement
from catchment.model.emptied import Emptied
from catchment.model.epoch import TableShape
from catchment.model.errors import Unsupported
from catchment.model.fill import Fill
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.model.widened import Declared, Widened
from catchment.schema.columns import table_on
from catchment.schema.replaced import replaced
from catchment.schema.shape import first_shape, merge

INT, BIGINT = ColumnType(Kind.INT), ColumnType(Kind.BIGINT)
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
DATE = ColumnType(Kind.DATE)
HOLDERS = ("a", "b", "c")


def shape_of(columns: dict[str, ColumnType], shards: Sequence[str], name: str = "t") -> TableShape:
    table = Table(TableId("s", name), tuple(Column(n, kind) for n, kind in columns.items()), ("id",))
    return first_shape(merge({"x": table}), dict.fromkeys(shards, table))


FORMER = shape_of({"id": INT, "n": INT, "old": TEXT}, HOLDERS)
NEW = replace(
    shape_of({"id": INT, "m": DATE, "n": BIGINT}, ["a"], "_t_gho"), generation=7, place_of=TableId("s", "t")
)


def names(shape: TableShape, shard: str) -> dict[str, ColumnType]:
    return {column.name: column.type for column in table_on(shape, shard).columns}


def test_a_shard_has_the_new_tables_columns_and_the_others_their_own() -> None:
    shape = replaced(FORMER, NEW, ["a"], HOLDERS)
    assert names(shape, "a") == {"id": INT, "n": BIGINT, "m": DATE}
    assert names(shape, "b") == names(shape, "c") == {"id": INT, "n": INT, "old": TEXT}
    assert [(c.physical, c.live, c.torn, c.missing) for c in shape.columns] == [
        ("id", True, False, ()),
        ("n", True, False, ()),
        ("old", True, False, ("a",)),
        ("m", True, False, ("b", "c")),
    ]
    assert shape.table == FORMER.table
    assert (shape.generation, shape.place_of) == (7, None)
    assert shape.widened == (Widened("n", INT, ("b", "c")),)


def test_one_after_the_other_is_as_all_at_once() -> None:
    after = FORMER
    for shard in HOLDERS:
        after = replaced(after, NEW, [shard], HOLDERS)
    assert after == replaced(FORMER, NEW, HOLDERS, HOLDERS)
    assert {c.column.name: c.live for c in after.columns} == {"id": True, "n": True, "old": False, "m": True}
    assert all(not c.missing for c in after.columns if c.live)
    assert names(after, "a") == names(after, "b") == {"id": INT, "n": BIGINT, "m": DATE}


def test_what_is_noted_of_older_rows_goes_with_them() -> None:
    """Rows of the shard are new: a value that a column came with, and a TRUNCATE, are those of the new table's rows."""
    former = replace(
        FORMER,
        fills=(Fill("n", ("a", "b"), 5, "1"), Fill("old", ("a",), 6, "x")),
        emptied=(Emptied(("a", "c"), 4),),
        widened=(Widened("n", INT, ("a",)),),
    )
    new = replace(NEW, fills=(Fill("m", ("a", "b"), 3, "2026-01-01"),), emptied=(Emptied(("a",), 2),))
    shape = replaced(former, new, ["a"], HOLDERS)
    assert shape.fills == (Fill("n", ("b",), 5, "1"), Fill("m", ("a",), 3, "2026-01-01"))
    assert shape.emptied == (Emptied(("c",), 4), Emptied(("a",), 2))
    assert all("a" not in one.shards for one in shape.widened)


def test_a_column_that_another_shard_has_is_joined() -> None:
    after = replaced(FORMER, NEW, ["b"], HOLDERS)
    column = next(c for c in replaced(after, NEW, ["a"], HOLDERS).columns if c.physical == "m")
    assert column.missing == ("c",)


def test_lengths_as_each_shard_declares_them() -> None:
    former = replace(FORMER, declared=(Declared("old", "varchar(9)"),))
    new = shape_of({"id": INT, "n": INT, "old": TEXT}, ["a"], "_t_gho")
    new = replace(new, declared=(Declared("old", "varchar(99)"),))
    found = {one.text: one.shards for one in replaced(former, new, ["a"], HOLDERS).declared}
    assert found == {"varchar(99)": (), "varchar(9)": ("b", "c")}


@pytest.mark.parametrize(
    "new",
    [
        shape_of({"id": INT, "n": DATE}, ["a"]),
        shape_of({"id": BIGINT, "n": INT}, ["a"]),
        shape_of({"id": INT, "N": INT}, ["a"]),
        replace(shape_of({"id": INT, "n": INT}, ["a"]), key=("n",)),
        replace(shape_of({"id": INT}, ["a"]), arrangement=Arrangement(cluster_by=("id",))),
    ],
    ids=["another type", "of the key", "written otherwise", "another key", "arranged otherwise"],
)
def test_tables_that_do_not_fit_are_refused(new: TableShape) -> None:
    with pytest.raises(Unsupported):
        replaced(FORMER, new, ["a"], HOLDERS)


def test_a_name_in_the_files_that_another_column_had_is_refused() -> None:
    """A name of a column that is dropped everywhere, or that went by another name."""
    columns = tuple(replace(c, live=c.physical != "old") for c in FORMER.columns)
    with pytest.raises(Unsupported, match="another column under the name old"):
        replaced(replace(FORMER, columns=columns), shape_of({"id": INT, "old": TEXT}, ["a"]), ["a"], HOLDERS)
    columns = tuple(replace(c, physical="n_2") if c.physical == "n" else c for c in FORMER.columns)
    with pytest.raises(Unsupported, match="lies in its files as n_2"):
        replaced(replace(FORMER, columns=columns), shape_of({"id": INT, "n": INT}, ["a"]), ["a"], HOLDERS)
