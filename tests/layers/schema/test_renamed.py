"""Columns that get another name: what statements say and come to, and what becomes of a lake table's shape."""

import pytest
from msgspec.structs import replace

from catchment.model.arrangement import Arrangement, Partition, Span
from catchment.model.column_rule import ColumnRule
from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import SourceError
from catchment.model.fill import Fill
from catchment.model.table import Column, ColumnType, Kind, Table, TableId, Wording
from catchment.model.treatment import Mode
from catchment.model.widened import Declared, Widened
from catchment.schema.columns import shape_after, table_on
from catchment.schema.ddl import Columns, Stop, effect
from catchment.schema.last_names import name_behind, under_last_names
from catchment.schema.passage import Passage
from catchment.schema.shape import first_shape

T = TableId("shop", "t")
INT, BIGINT = ColumnType(Kind.INT), ColumnType(Kind.BIGINT)
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
SHARDS = ("a", "b", "c")
EPOCH = 7 << 32


# Columns that get another name, and how others get another definition.
RENAMED_CASES: list[tuple[str, str, str]] = [
    ("ALTER TABLE t RENAME COLUMN a TO x", "a x", ""),
    ("alter table t rename column `a` to `x`, ALGORITHM=INSTANT, LOCK=NONE", "a x", ""),
    ("ALTER TABLE t CHANGE a x INT", "a x", "a int"),
    (
        "ALTER TABLE t CHANGE COLUMN b x VARCHAR(30) NULL COMMENT 'x' FIRST, ADD INDEX (x)",
        "b x",
        "b varchar(30)",
    ),
    ("ALTER TABLE t CHANGE b x TEXT AFTER c, MODIFY c BIGINT", "b x", "b text c bigint"),
    ("ALTER TABLE t RENAME COLUMN a TO x, RENAME COLUMN b TO y, RENAME INDEX ka TO kb", "a x b y", ""),
    ("ALTER TABLE t RENAME COLUMN a TO x, DROP c, ADD n INT AFTER id, ALTER b SET DEFAULT 'x'", "a x", ""),
    ("ALTER TABLE t DROP c, RENAME COLUMN a TO c", "a c", ""),
    ("ALTER TABLE t RENAME COLUMN a TO x, ADD COLUMN a INT", "a x", ""),
]

# What is not known, or renames nothing.
STOP_CASES = [
    "ALTER TABLE t RENAME COLUMN IF EXISTS a TO x",
    "ALTER TABLE t RENAME COLUMN a TO A",
    "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
    "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO c",
    "ALTER TABLE t CHANGE a b INT, CHANGE b a VARCHAR(20)",
    "ALTER TABLE t RENAME COLUMN a TO x, MODIFY x BIGINT",
    "ALTER TABLE t RENAME COLUMN a TO x, MODIFY a BIGINT",
    "ALTER TABLE t RENAME COLUMN a TO x, ADD n INT AFTER x",
    "ALTER TABLE t RENAME COLUMN a TO x, ADD n INT AFTER A",
    "ALTER TABLE t RENAME COLUMN a TO x, ADD X INT",
    "ALTER TABLE t RENAME COLUMN a TO x, DROP a",
    "ALTER TABLE t RENAME COLUMN a TO x, ADD COLUMN IF NOT EXISTS a INT",
    "ALTER TABLE t RENAME COLUMN a TO x, CONVERT TO CHARACTER SET latin1",
    "ALTER TABLE t CHANGE COLUMN IF EXISTS a x INT",
    "ALTER TABLE t CHANGE a x INT AUTO_INCREMENT",
    "ALTER TABLE t CHANGE a x INT NOT NULL",
    "ALTER TABLE t CHANGE a x TIMESTAMP",
    "ALTER TABLE t CHANGE a x INT AS (id + 1)",
    "ALTER TABLE T RENAME COLUMN a TO x",
]


def test_gives_columns_other_names() -> None:
    for sql, names, definitions in RENAMED_CASES:
        found = effect(sql, "shop", [T], sql_mode=0)
        assert isinstance(found, Columns), (sql, found)
        assert " ".join(f"{one.old} {one.new}" for one in found.renamed) == names, sql
        assert " ".join(f"{one.column} {one.declared}" for one in found.modified) == definitions, sql
        assert found.added == (("n",) if " n INT" in sql else ("a",) if "ADD COLUMN a" in sql else ()), sql
        assert found.dropped == (("c",) if "DROP c" in sql else ()), sql


def test_a_name_that_is_taken_away_may_be_given_again_with_a_value() -> None:
    sql = "ALTER TABLE t RENAME COLUMN a TO x, ADD COLUMN a INT DEFAULT 4"
    found = effect(sql, "shop", [T], here={T: ["id", "a"]})
    assert isinstance(found, Columns), found
    assert [(one.column, one.value) for one in found.filled] == [("a", "4")]


def test_what_is_not_known_stops() -> None:
    for sql in STOP_CASES:
        found = effect(sql, "shop", [T], sql_mode=0)
        assert isinstance(found, Stop), (sql, found)


def test_names_of_types_may_mean_others() -> None:
    assert isinstance(effect("ALTER TABLE t CHANGE a x REAL", "shop", [T], sql_mode=1), Stop)
    assert isinstance(effect("ALTER TABLE t RENAME COLUMN a TO x", "shop", [T], sql_mode=1), Columns)


def begun() -> TableShape:
    table = Table(T, (Column("id", INT), Column("n", INT), Column("v", TEXT)), ("id",))
    wordings = {shard: Wording({"v": "varchar(5)"}, "utf8mb4") for shard in SHARDS}
    return first_shape(table, dict.fromkeys(SHARDS, table), wordings=wordings)


def parsed(*actions: str) -> tuple[Columns, ...]:
    found = [effect(f"ALTER TABLE t {action}", "shop", [T], sql_mode=0) for action in actions]
    assert all(isinstance(one, Columns) for one in found), found
    return tuple(one for one in found if isinstance(one, Columns))


def after(shape: TableShape, shard: str, *actions: str, epoch: int = EPOCH) -> TableShape:
    """The shape where a shard has run statements, and no row follows them."""
    return shape_after(shape, shard, SHARDS, Passage(behind=parsed(*actions)), epoch)


def seen(shape: TableShape, shard: str, *actions: str, columns: str, epoch: int = EPOCH) -> TableShape:
    """The same where a row follows them, of a table with such columns."""
    types = {"id": INT, "v": TEXT, "w": TEXT, "big": BIGINT}
    table = Table(T, tuple(Column(name, types.get(name, INT)) for name in columns.split()), ("id",))
    return shape_after(shape, shard, SHARDS, Passage(parsed(*actions), table), epoch)


def names(shape: TableShape) -> list[str]:
    return [
        f"{c.column.name}{'' if c.live else ' gone'} {' '.join(c.missing)}".strip() for c in shape.columns
    ]


def test_each_shard_renames_for_itself() -> None:
    shape = after(begun(), "b", "RENAME COLUMN n TO m")
    assert shape.columns[1] == LakeColumn(Column("n", INT), "n", torn=True, missing=("b",))
    assert shape.columns[3] == LakeColumn(Column("m", INT), "m", missing=("a", "c"))
    assert shape.fills == (Fill("m", ("b",), EPOCH, source="n"),)
    shape = after(shape, "a", "RENAME COLUMN n TO m")
    assert shape.fills == (Fill("m", ("a", "b"), EPOCH, source="n"),)
    shape = after(shape, "c", "RENAME COLUMN n TO m", epoch=EPOCH + 9)
    assert shape.fills == (Fill("m", ("a", "b"), EPOCH, source="n"), Fill("m", ("c",), EPOCH + 9, source="n"))
    assert names(shape) == ["id", "n gone a b c", "v", "m"]


def test_declaration_and_type_go_with_the_name() -> None:
    shape = after(begun(), "a", "MODIFY v VARCHAR(9), MODIFY n BIGINT", epoch=EPOCH)
    shape = after(shape, "b", "RENAME COLUMN v TO w, RENAME COLUMN n TO m", epoch=EPOCH + 1)
    m = next(c for c in shape.columns if c.column.name == "m")
    assert (m.column.type, shape.type_on("b", m)) == (BIGINT, INT)
    assert Declared("w", "varchar(5)") in shape.declared
    shape = after(shape, "a", "RENAME COLUMN v TO w, CHANGE n m BIGINT", epoch=EPOCH + 2)
    assert {Declared("w", "varchar(9)"), Declared("w", "varchar(5)", ("b",))} <= {*shape.declared}
    shape = after(shape, "b", "MODIFY m BIGINT, MODIFY w VARCHAR(7)", epoch=EPOCH + 3)
    with pytest.raises(SourceError, match="not known to leave its values"):
        after(shape, "a", "MODIFY w VARCHAR(8)", epoch=EPOCH + 4)


def test_a_wider_type_may_come_with_the_name() -> None:
    shape = after(begun(), "a", "RENAME COLUMN n TO m")
    shape = after(shape, "b", "CHANGE n m BIGINT", epoch=EPOCH + 1)
    m = next(c for c in shape.columns if c.column.name == "m")
    assert (m.column.type, shape.type_on("a", m)) == (BIGINT, INT)
    assert Widened("m", INT, ("a",)) in shape.widened


def test_statements_of_one_epoch_leave_no_column_behind() -> None:
    for shape in (
        after(begun(), "a", "RENAME COLUMN n TO m", "RENAME COLUMN m TO o", "CHANGE v w VARCHAR(5)"),
        seen(begun(), "a", "RENAME COLUMN n TO m", "RENAME COLUMN m TO o", "CHANGE v w VARCHAR(5)",
             columns="id o w"),
    ):  # fmt: skip
        assert names(shape) == ["id", "n a", "v a", "o b c", "w b c"]
        assert shape.fills == (Fill("o", ("a",), EPOCH, source="n"), Fill("w", ("a",), EPOCH, source="v"))


def test_a_column_that_has_its_name_again_is_the_one_that_it_was() -> None:
    before = begun()
    assert after(before, "a", "RENAME COLUMN n TO m", "RENAME COLUMN m TO n") == before
    table = Table(T, (Column("id", INT), Column("m", INT), Column("v", TEXT)), ("id",))
    forth, back = parsed("RENAME COLUMN n TO m", "RENAME COLUMN m TO n")
    shape = before
    for shard in SHARDS:
        shape = shape_after(shape, shard, SHARDS, Passage((forth,), table, (back,)), EPOCH)
    assert shape.fills == ()
    assert [c.column.name for c in shape.columns if c.live] == ["id", "n", "v"]
    assert all(table_on(shape, shard) == table_on(before, shard) for shard in SHARDS)


def test_a_name_that_comes_back_later_is_a_new_column() -> None:
    shape = begun()
    for number, (old, new) in enumerate((("n", "m"), ("m", "n"))):
        for shard in SHARDS:
            shape = after(shape, shard, f"RENAME COLUMN {old} TO {new}", epoch=EPOCH + number)
    assert [c.physical for c in shape.columns] == ["id", "n", "v", "m", "n__7"]
    assert shape.fills == (Fill("m", SHARDS, EPOCH, source="n"), Fill("n__7", SHARDS, EPOCH + 1, source="m"))


def test_a_name_that_others_have_still_is_not_given_back() -> None:
    shape = after(begun(), "a", "RENAME COLUMN n TO m")
    with pytest.raises(SourceError, match="their values cannot be told apart"):
        after(shape, "a", "RENAME COLUMN m TO n", epoch=EPOCH + 1)


def test_a_column_with_a_value_comes_under_its_last_name() -> None:
    actions = ("ADD m INT NOT NULL DEFAULT 4", "RENAME COLUMN m TO o")
    shape = seen(begun(), "a", *actions, columns="id n v o")
    assert names(shape) == ["id", "n", "v", "o b c"]
    assert shape.fills == (Fill("o", ("a",), EPOCH, "4"),)
    table = Table(T, (Column("id", INT), Column("n", INT), Column("v", TEXT), Column("o", INT)), ("id",))
    unseen = shape_after(begun(), "a", SHARDS, Passage(behind=parsed(*actions), catalog=table), EPOCH)
    assert unseen.fills == (Fill("o", ("a",), EPOCH + 1, "4"),)


def test_a_column_that_no_row_has_shown_comes_under_its_new_name() -> None:
    """It was added in an earlier epoch, and the catalog had the new name by then."""
    shape = after(begun(), "a", "ADD m INT")
    assert names(shape) == ["id", "n", "v"]
    shape = after(shape, "a", "RENAME COLUMN m TO o", epoch=EPOCH + 1)
    assert names(shape) == ["id", "n", "v"]
    shape = seen(shape, "a", "RENAME COLUMN o TO p", columns="id n v p", epoch=EPOCH + 2)
    assert names(shape) == ["id", "n", "v", "p b c"]
    assert shape.fills == ()


@pytest.mark.parametrize(
    ("shape", "action", "why"),
    [
        (begun(), "RENAME COLUMN id TO m", "is a part of the key"),
        (begun(), "RENAME COLUMN n TO v", "has a name that is there already"),
        (begun(), "CHANGE n m SMALLINT", "not known to leave its values"),
        (begun(), "CHANGE v w VARCHAR(4)", "not known to leave its values"),
        (begun(), "RENAME COLUMN n TO _epoch", "the lake's tables use this name"),
        (replace(begun(), computes=True), "RENAME COLUMN n TO m", "may be one that another is computed from"),
        (replace(begun(), mode=Mode.APPEND), "RENAME COLUMN n TO m", "changes of before"),
        (replace(begun(), rules=(ColumnRule("n", name="shown"),)), "RENAME COLUMN n TO m", "has a rule for"),
        (replace(begun(), rules=(ColumnRule("m*", excluded=True),)), "RENAME COLUMN n TO M1", "has a rule for"),
        (replace(begun(), arrangement=Arrangement(("N",))), "RENAME COLUMN n TO m", "are arranged"),
        (replace(begun(), arrangement=Arrangement((), Partition("m", Span.DAY))), "RENAME COLUMN n TO m", "arranged"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_followed(shape: TableShape, action: str, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        after(shape, "a", action)


@pytest.mark.parametrize(
    ("actions", "left"),
    [
        (["RENAME COLUMN a TO b", "RENAME COLUMN b TO c"], ["a c", ""]),
        (["RENAME COLUMN a TO b", "RENAME COLUMN B TO c", "RENAME COLUMN c TO d"], ["a d", "", ""]),
        (["RENAME COLUMN a TO b", "RENAME COLUMN b TO a"], ["", ""]),
        (["RENAME COLUMN a TO b, RENAME COLUMN x TO y", "RENAME COLUMN b TO c"], ["a c x y", ""]),
        (["RENAME COLUMN a TO b", "MODIFY b BIGINT", "RENAME COLUMN b TO c"], ["a b", "", "b c"]),
        (["RENAME COLUMN a TO b", "DROP c", "RENAME COLUMN b TO c"], ["a b", "", "b c"]),
        (["RENAME COLUMN a TO b", "DROP c, RENAME COLUMN b TO c"], ["a b", "b c"]),
        (["RENAME COLUMN a TO b, ADD a INT", "RENAME COLUMN a TO c"], ["a b", "a c"]),
        (
            ["ADD b INT DEFAULT 4", "DROP b", "RENAME COLUMN a TO b", "RENAME COLUMN b TO c"],
            ["", "", "a c", ""],
        ),
    ],
)
def test_what_several_statements_come_to(actions: list[str], left: list[str]) -> None:
    found = under_last_names(parsed(*actions))
    assert [" ".join(f"{one.old} {one.new}" for one in effect.renamed) for effect in found] == left


def test_what_a_column_is_named_in_the_end() -> None:
    effects = parsed(
        "RENAME COLUMN a TO b, ADD a INT", "RENAME COLUMN B TO c, DROP x", "DROP a, RENAME COLUMN y TO x"
    )
    assert [name_behind(name, effects) for name in ("A", "x", "y", "z")] == ["c", None, "x", "z"]
    assert name_behind("a", effects[1:]) is None
