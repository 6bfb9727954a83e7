"""Columns that get another definition: what statements say, and what becomes of a lake table's shape."""

import pytest
from msgspec.structs import replace

from catchment.model.epoch import TableShape
from catchment.model.errors import SourceError
from catchment.model.table import Column, ColumnType, Kind, Table, TableId, Wording
from catchment.model.widened import Declared, Widened
from catchment.schema.ddl import Columns, Stop, effect
from catchment.schema.shape import evolve, first_shape

T = TableId("shop", "t")
INT, BIGINT = ColumnType(Kind.INT), ColumnType(Kind.BIGINT)
TEXT, SHORT = ColumnType(Kind.TEXT, charset="utf8mb4"), ColumnType(Kind.TEXT, charset="utf8mb3")
SHARDS = ("a", "b", "c")

MODIFIED_CASES = [
    ("ALTER TABLE t MODIFY a BIGINT", "a bigint"),
    (
        "alter table t modify column `a` int(11) unsigned not null default 7 comment 'it''s' after b",
        "a int(11) unsigned",
    ),
    ("ALTER TABLE t CHANGE b b VARCHAR(90) CHARSET utf8mb4 COLLATE utf8mb4_bin FIRST", "b varchar(90)"),
    ("ALTER TABLE t MODIFY note NATIONAL CHARACTER VARYING(30)", "note varchar(30)"),
    ("ALTER TABLE t MODIFY c NUMERIC(12,4) NULL DEFAULT -1.5, ALGORITHM=COPY", "c decimal(12,4)"),
    ("ALTER TABLE t MODIFY a ENUM('x','it''s') DEFAULT 'x'", "a enum('x','it''s')"),
    ("ALTER TABLE t MODIFY a TIMESTAMP(6) NULL ON UPDATE CURRENT_TIMESTAMP", "a timestamp(6)"),
]

UNTOLD_CASES = [
    "ALTER TABLE t MODIFY COLUMN IF EXISTS a BIGINT",
    "ALTER TABLE t CHANGE a A BIGINT",
    "ALTER TABLE t MODIFY a BIGINT AUTO_INCREMENT",
    "ALTER TABLE t MODIFY a BIGINT PRIMARY KEY",
    "ALTER TABLE t MODIFY a BIGINT AS (id + 1)",
    "ALTER TABLE t MODIFY a TIMESTAMP",
    "ALTER TABLE t MODIFY a TIMESTAMP NOT NULL",
    "ALTER TABLE t MODIFY a FLOAT(7,2)",
    "ALTER TABLE t MODIFY a TEXT(5000)",
    "ALTER TABLE t MODIFY a BIGINT, CONVERT TO CHARACTER SET utf8mb4",
    "ALTER TABLE t MODIFY a BIGINT, RENAME TO u",
    "ALTER IGNORE TABLE t MODIFY a BIGINT",
    "SET STATEMENT sql_mode='' FOR ALTER TABLE t MODIFY a BIGINT NOT NULL",
    "SET STATEMENT sql_mode='' FOR ALTER TABLE t MODIFY a BIGINT",
]


def test_gives_a_column_another_definition() -> None:
    for sql, column in MODIFIED_CASES:
        found = effect(sql, "shop", [T], sql_mode=1 << 21)
        assert isinstance(found, Columns), (sql, found)
        assert [f"{one.column} {one.declared}" for one in found.modified] == [column], sql
        assert (found.added, found.dropped) == ((), ()), sql


@pytest.mark.parametrize("definition", ["BIGINT NOT NULL", "ENUM('x','A') NULL", "SET('x') NULL"])
def test_what_another_mode_would_change_is_told_in_a_strict_mode_alone(definition: str) -> None:
    sql = f"ALTER TABLE t MODIFY a {definition}"
    assert [isinstance(effect(sql, "shop", [T], sql_mode=m), Columns) for m in (1 << 21, 1 << 22)] == [
        True
    ] * 2
    assert isinstance(effect(sql, "shop", [T], sql_mode=0), Stop)
    assert isinstance(effect(sql, "shop", [T]), Stop)
    assert isinstance(effect(f"SET STATEMENT sql_mode='' FOR {sql}", "shop", [T], sql_mode=1 << 21), Stop)


@pytest.mark.parametrize("mode", [1, 1 << 9, 1 << 10, 1 << 12])
def test_names_of_types_may_mean_others(mode: int) -> None:
    """REAL_AS_FLOAT makes a FLOAT of REAL, and ORACLE a LONGBLOB of BLOB, which a later BLOB would cut."""
    sql = "ALTER TABLE t MODIFY a REAL, ADD b BLOB"
    assert isinstance(effect(sql, "shop", [T], sql_mode=1 << 21 | mode), Stop)
    did = effect("ALTER TABLE t ADD b BLOB", "shop", [T], sql_mode=mode)
    assert isinstance(did, Columns)
    assert (did.added, did.declared) == (("b",), ())


def test_what_is_not_known_stops() -> None:
    for sql in UNTOLD_CASES:
        assert isinstance(effect(sql, "shop", [T], sql_mode=1 << 21), Stop), sql


def table(number: ColumnType = INT, text: ColumnType = TEXT) -> Table:
    return Table(T, (Column("id", INT), Column("n", number), Column("v", text)), ("id",))


def begun(text: ColumnType = TEXT, **lengths: str) -> TableShape:
    """A shape of three shards; `lengths`: how `v` is declared on them, by default as varchar(5)."""
    tables = dict.fromkeys(SHARDS, table(text=text))
    wordings = {shard: Wording({"v": lengths.get(shard, "varchar(5)")}, "utf8mb4") for shard in SHARDS}
    return first_shape(table(text=text), tables, wordings=wordings)


def after(shape: TableShape, shard: str, action: str, result: Table) -> TableShape:
    did = effect(f"ALTER TABLE t {action}", "shop", [T], sql_mode=0)
    assert isinstance(did, Columns), did
    others = {other: table() for other in SHARDS if other != shard}
    return evolve(shape, result, [did], 1 << 32, shard=shard, others=others)


def test_a_former_type_is_that_of_shards_that_have_it_still() -> None:
    shape = after(begun(), "b", "MODIFY n BIGINT", table(BIGINT))
    assert shape.columns[1].column.type == BIGINT
    assert shape.columns[1].physical == "n"
    assert shape.widened == (Widened("n", INT, ("a", "c")),)
    assert [shape.type_on(shard, shape.columns[1]) for shard in SHARDS] == [INT, BIGINT, INT]
    shape = after(shape, "a", "MODIFY n BIGINT", table(BIGINT))
    assert shape.widened == (Widened("n", INT, ("c",)),)
    shape = after(shape, "c", "MODIFY n BIGINT", table(BIGINT))
    assert shape.widened == (Widened("n", INT),)


def test_a_type_that_arrow_does_not_tell_apart_is_forgotten() -> None:
    shape = begun(SHORT)
    for shard in SHARDS:
        shape = after(shape, shard, "MODIFY v VARCHAR(5)", table())
    assert shape.columns[2].column.type == TEXT
    assert shape.widened == ()


def test_a_shard_may_stay_behind_and_another_go_on() -> None:
    middle = ColumnType(Kind.INT)
    small = replace(INT, kind=Kind.SMALLINT)
    tables = dict.fromkeys(SHARDS, table(small))
    shape = first_shape(table(small), tables, wordings={"a": Wording()})
    shape = after(shape, "a", "MODIFY n BIGINT", table(BIGINT))
    shape = after(shape, "b", "MODIFY n INT", table(middle))
    assert [shape.type_on(shard, shape.columns[1]) for shard in SHARDS] == [BIGINT, middle, small]
    with pytest.raises(SourceError, match="not known to leave its values"):
        after(shape, "a", "MODIFY n INT", table(middle))
    with pytest.raises(SourceError, match="has another type than in the lake"):
        after(shape, "c", "MODIFY n BIGINT", table(small))


def test_a_column_may_be_computed_from_another() -> None:
    """Servers compute it again, and log no row. Of a shape that an earlier Catchment wrote it is not known."""
    tables = dict.fromkeys(SHARDS, table())
    for wordings in ({}, {"a": Wording(), "b": Wording(computes=True)}):
        with pytest.raises(SourceError, match="may be one that another is computed from"):
            after(first_shape(table(), tables, wordings=wordings), "a", "MODIFY n BIGINT", table(BIGINT))


def test_lengths_are_known_of_each_shard() -> None:
    shape = begun(b="varchar(9)")
    assert set(shape.declared) == {Declared("v", "varchar(5)"), Declared("v", "varchar(9)", ("b",))}
    shape = after(shape, "a", "MODIFY v VARCHAR(7)", table())
    with pytest.raises(SourceError, match="not known to leave its values"):
        after(shape, "b", "MODIFY v VARCHAR(7)", table())
    for shard in "bc":
        shape = after(shape, shard, "MODIFY v TEXT", table())
    shape = after(shape, "a", "MODIFY v TEXT", table())
    assert shape.declared == (Declared("v", "text"),)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("MODIFY id BIGINT", "is a part of the key"),
        ("MODIFY v VARCHAR(4)", "not known"),
        ("MODIFY v CHAR(9)", "not known"),
        ("MODIFY V VARCHAR(9)", "is written v otherwise"),
        ("MODIFY v VARCHAR(9) CHARACTER SET latin1", "not known"),
        ("MODIFY v VARBINARY(9)", "not known"),
        ("MODIFY n INT UNSIGNED", "not known"),
        ("MODIFY n MEDIUMINT", "not known"),
        ("MODIFY w INT", "is not there"),
    ],
)
def test_what_is_not_known_is_not_followed(action: str, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        after(begun(), "a", action, table())


def test_a_length_that_nobody_noted_is_not_known() -> None:
    shape = first_shape(table(), dict.fromkeys(SHARDS, table()), wordings={"a": Wording()})
    with pytest.raises(SourceError, match="not known"):
        after(replace(shape, charset="utf8mb4"), "a", "MODIFY v VARCHAR(65000)", table())
    with pytest.raises(SourceError, match="not known"):
        after(replace(begun(), charset=""), "a", "MODIFY v VARCHAR(9)", table())


def test_a_column_that_comes_is_noted_of_the_shards_that_have_it() -> None:
    shape = begun()
    wider = Table(T, (*table().columns, Column("w", TEXT)), ("id",))
    shape = after(shape, "a", "ADD w VARCHAR(7)", wider)
    assert shape.declared[-1] == Declared("w", "varchar(7)")
    shape = after(shape, "b", "ADD w VARCHAR(9)", wider)
    assert set(shape.declared[1:]) == {Declared("w", "varchar(9)"), Declared("w", "varchar(7)", ("a",))}
    shape = after(shape, "a", "MODIFY w VARCHAR(8)", wider)
    with pytest.raises(SourceError, match="not known to leave its values"):
        after(shape, "b", "MODIFY w VARCHAR(8)", wider)


@pytest.mark.parametrize("kind", [Kind.BLOB, Kind.BINARY])
def test_a_text_of_a_table_of_bytes_is_bytes(kind: Kind) -> None:
    """Its declaration need not say so: the character set of the table does."""
    result = Table(T, (*table().columns, Column("w", ColumnType(kind))), ("id",))
    shape = after(begun(), "a", "ADD w VARCHAR(5)", result)
    assert shape.columns[-1].column.type.kind is kind
    with pytest.raises(SourceError, match="given another definition or name before a row showed it"):
        after(begun(), "a", "ADD w VARCHAR(5) CHARACTER SET utf8mb4", result)
    for later in ("VARCHAR(9)", "VARBINARY(9)", "BLOB", "MEDIUMTEXT"):
        with pytest.raises(SourceError, match="not known to leave its values"):
            after(shape, "a", f"MODIFY w {later}", result)


def test_a_timestamp_keeps_its_digits() -> None:
    """MySQL brings one of more digits through the session's time zone."""
    kinds = [ColumnType(Kind.TIMESTAMP, scale=scale) for scale in (0, 3)]
    shape = first_shape(table(kinds[0]), dict.fromkeys(SHARDS, table(kinds[0])), wordings={"a": Wording()})
    after(shape, "a", "MODIFY n TIMESTAMP NULL COMMENT 'x'", table(kinds[0]))
    with pytest.raises(SourceError, match="not known to leave its values"):
        after(shape, "a", "MODIFY n TIMESTAMP(3) NULL", table(kinds[1]))
