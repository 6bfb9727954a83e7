"""How a lake table's shape follows the columns of its source tables; a model of the values is the judge."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import SourceError, Unsupported
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.schema.ddl import Columns
from catchment.schema.shape import evolve, first_shape, merge

T = TableId("shop", "t")
INT, BIG = ColumnType(Kind.INT), ColumnType(Kind.BIGINT, unsigned=True)


def physical_names(shape: TableShape) -> dict[str, str]:
    """Physical name of every live column, by its name at the source."""
    return {c.column.name: c.physical for c in shape.columns if c.live}


def table(*names: str, key: tuple[str, ...] = ("id",), **types: ColumnType) -> Table:
    return Table(T, tuple(Column(n, types.get(n, INT)) for n in ("id", *names)), key)


def changed(added: tuple[str, ...] = (), dropped: tuple[str, ...] = ()) -> Columns:
    return Columns(T, added, dropped)


def step(
    shape: TableShape,
    after: Table,
    *effects: Columns,
    gci: int = 7,
    others: Mapping[str, Table] | None = None,
) -> TableShape:
    return evolve(shape, after, effects, epoch_number(gci, 3), shard="s1", others=others or {})


def columns(shape: TableShape) -> list[tuple[str, str, bool]]:
    return [(c.column.name, c.physical, c.live) for c in shape.columns]


def test_begins_with_the_columns_of_the_table() -> None:
    shape = first_shape(table("a", a=BIG))
    assert shape == TableShape(
        T, (LakeColumn(Column("id", INT), "id"), LakeColumn(Column("a", BIG), "a")), ("id",)
    )
    assert physical_names(shape) == {"id": "id", "a": "a"}
    assert step(shape, table("a", a=BIG)) == shape


def test_appends_what_was_added_wherever_the_source_puts_it() -> None:
    shape = step(
        first_shape(table("a")), Table(T, (Column("n", BIG), *table("a").columns), ("id",)), changed(("n",))
    )
    assert columns(shape) == [("id", "id", True), ("a", "a", True), ("n", "n", True)]
    assert shape.columns[-1].column.type == BIG


def test_a_dropped_column_stays_and_a_new_one_of_its_name_is_another() -> None:
    shape = step(first_shape(table("a", "b")), table("b"), changed(dropped=("A",)))
    assert columns(shape) == [("id", "id", True), ("a", "a", False), ("b", "b", True)]
    again = step(shape, table("b", "a", a=BIG), changed(("a",)), gci=9)
    assert columns(again)[3:] == [("a", "a__9", True)]
    assert physical_names(again) == {"id": "id", "b": "b", "a": "a__9"}


def test_dropped_and_added_within_one_epoch_and_one_statement() -> None:
    shape = step(first_shape(table("a")), table("a"), changed(("a",), ("a",)))
    assert columns(shape)[1:] == [("a", "a", False), ("a", "a__7", True)]
    twice = step(first_shape(table("a")), table("a"), *[changed(("a",), ("a",))] * 3)
    assert columns(twice)[1:] == [
        ("a", "a", False), ("a", "a__7", False), ("a", "a__7_2", False), ("a", "a__7_3", True)
    ]  # fmt: skip


def test_added_and_dropped_again_leaves_no_trace() -> None:
    shape = first_shape(table("a"))
    assert step(shape, table("a"), changed(("n",)), changed(dropped=("n",))) == shape


@pytest.mark.parametrize("name", ["_shard", "_Epoch", "_DELETED", "_part"])
def test_a_column_with_a_name_of_the_lake_is_refused_unless_it_is_gone_again(name: str) -> None:
    shape = first_shape(table("a"))
    with pytest.raises(
        Unsupported, match=f"shard s1: column {name} was added to shop.t: the lake's tables use this name"
    ):
        step(shape, table("a", name), changed((name,)))
    assert step(shape, table("a"), changed((name,)), changed(dropped=(name,))) == shape


def test_physical_names_differ_in_more_than_case() -> None:
    shape = step(first_shape(table("a", "A__7")), table("A__7"), changed(dropped=("a",)))
    assert columns(step(shape, table("A__7", "A"), changed(("A",))))[3:] == [("A", "A__7_2", True)]


def test_statements_with_if_exists_that_did_nothing() -> None:
    shape = first_shape(table("a"))
    assert step(shape, table("a"), changed(("a",), ("gone",))) == shape


@pytest.mark.parametrize(
    ("after", "effects", "words"),
    [
        (table("a", a=BIG), (), "column a bigint unsigned has another type than in the lake, a int"),
        (table("a", "n"), (), "column n int is new without an ADD COLUMN"),
        (table(), (), "column a is missing without a DROP COLUMN"),
        (table("a", key=("id", "a")), (), r"its key is \(id, a\), the lake's \(id\)"),
        (Table(T, (Column("a", INT),), ()), (changed(dropped=("id",)),), r"its key is \(\)"),
        (table("a"), (changed(dropped=("a",)),), "column a int is new without"),
        (table("a"), (changed(("n",)),), "column n was added but is not there"),
    ],
)
def test_refuses_a_table_that_the_log_does_not_explain(
    after: Table, effects: tuple[Columns, ...], words: str
) -> None:
    with pytest.raises(SourceError, match=words) as raised:
        step(first_shape(table("a")), after, *effects)
    assert "shard s1: shop.t" in str(raised.value)
    assert "with `schema_change: evolve`, the default, shop.t is copied again by itself" in str(raised.value)
    assert 'add "!shop.t" to `tables`' in str(raised.value)


def test_arguments_of_two_tables() -> None:
    with pytest.raises(ValueError, match=r"shop\.t"):
        step(first_shape(table()), table(), Columns(TableId("shop", "u"), ("n",), ()))


def test_a_column_dies_when_the_last_shard_drops_it() -> None:
    shape = step(first_shape(table("a")), table(), changed(dropped=("a",)), others={"s2": table("a")})
    assert shape.columns[1] == LakeColumn(Column("a", INT), "a", live=True, torn=True, missing=("s1",))
    assert physical_names(shape)["a"] == "a"
    assert step(shape, table(), others={"s2": table("a")}) == shape, "s1 goes on without it"
    both = evolve(shape, table(), [changed(dropped=("a",))], 0, shard="s2", others={"s1": table()})
    assert both.columns[1] == LakeColumn(Column("a", INT), "a", live=False, missing=("s1", "s2"))
    back = step(both, table("a"), changed(("a",)), others={"s2": table()})
    assert back.columns[2] == LakeColumn(Column("a", INT), "a__7", missing=("s2",))
    last = evolve(back, table("a"), [changed(("a",))], 0, shard="s2", others={"s1": table("a")})
    assert last.columns[2] == LakeColumn(Column("a", INT), "a__7")


def test_added_again_while_another_shard_has_the_old_one() -> None:
    others = {"s2": table("a")}
    shape = first_shape(table("a"))
    with pytest.raises(Unsupported, match=r"shard s1: column a of shop\.t .* drop it on every shard"):
        step(shape, table("a"), changed(("a",), ("a",)), others=others)
    gone = step(shape, table(), changed(dropped=("a",)), others=others)
    with pytest.raises(Unsupported, match="epoch pass"):
        step(gone, table("a"), changed(("a",)), others=others)


def test_both_shards_add_the_same_column() -> None:
    shape = step(first_shape(table()), table("n"), changed(("n",)), others={"s2": table()})
    assert shape.columns[1].missing == ("s2",)
    with pytest.raises(SourceError, match="n int is new without an ADD"):
        evolve(shape, table("n"), [], 0, shard="s2", others={"s1": table("n")})
    with pytest.raises(SourceError, match="another type"):
        evolve(shape, table("n", n=BIG), [changed(("n",))], 0, shard="s2", others={"s1": table("n")})
    both = evolve(shape, table("n"), [changed(("n",))], 0, shard="s2", others={"s1": table("n")})
    assert both.columns[1] == LakeColumn(Column("n", INT), "n")


def test_merge_is_a_union_in_a_stable_order() -> None:
    tables = {"b": table("y", "x", "z"), "a": table("x")}
    assert merge(tables) == merge(dict(reversed(tables.items()))) == table("x", "y", "z")
    shape = first_shape(merge(tables), tables)
    assert {c.column.name: c.missing for c in shape.columns} == {"id": (), "x": (), "y": ("a",), "z": ("a",)}
    assert evolve(shape, table("x"), [], 0, shard="a", others={"b": tables["b"]}) == shape


def test_merge_names_every_difference() -> None:
    with pytest.raises(SourceError) as raised:
        merge({"a": table("x", "y"), "b": table("x", "Y", x=BIG), "c": table("x", key=("id", "x"))})
    text = str(raised.value)
    for words in (
        "shop.t",
        "column x int on a, x bigint unsigned on b",
        "column y int on a, Y int on b",
        "key (id) on a, (id, x) on c",
    ):
        assert words in text
    with pytest.raises(ValueError, match="no shard"):
        merge({})


OPERATION = st.tuples(st.sampled_from(["add", "drop", "both"]), st.sampled_from("abA"))


@given(st.lists(st.lists(OPERATION, max_size=3), max_size=6))
def test_no_value_comes_back(epochs: list[list[tuple[str, str]]]) -> None:
    """A row is written in every epoch with values of its own. Read through the shape of a later one it must
    show what a server would: values of columns that have lived since, and NULL elsewhere."""
    names: dict[str, int] = {"a": 0}  # column -> when it was born
    shape = first_shape(table("a"))
    rows: list[tuple[dict[str, int], dict[str, int]]] = []  # what a server holds, what the lake's file holds
    clock = 0
    for gci, operations in enumerate(epochs, 1):
        effects = []
        for what, name in operations:
            same = next((n for n in names if n.lower() == name.lower()), None)
            clock += 1
            if what != "add" and same is not None:
                del names[same]
                for held, _ in rows:
                    held.pop(same, None)
            elif what != "add":
                continue
            if what == "drop":
                effects.append(changed(dropped=(name,)))
                continue
            if what == "add" and same is not None:
                continue
            names[name] = clock
            effects.append(changed((name,), (name,) if what == "both" else ()))
        shape = step(shape, table(*names), *effects, gci=gci)
        clock += 1
        values = dict.fromkeys(("id", *names), clock)
        physical = physical_names(shape)
        assert set(physical) == set(values)
        assert len({c.physical.lower() for c in shape.columns}) == len(shape.columns)
        rows.append((values, {physical[n]: v for n, v in values.items()}))
        for held, filed in rows:
            assert {n: filed[p] for n, p in physical.items() if p in filed} == held
