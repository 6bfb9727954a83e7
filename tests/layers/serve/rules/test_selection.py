"""Images and rows as a rule gives them: what a change becomes, which key is left, which slice a key is in."""

import pickle
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.errors import ConfigError, Unsupported
from catchment.model.image import CHANGE, DELETE, INSERT, OP, SEQ, SIDE, UNCHECKED, UPDATE
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.serve.rules.rule import Rule
from catchment.serve.rules.selection import Slice, compiled
from tests.layers.serve.rules.test_xxhash64 import hashes

INT = ColumnType(Kind.INT)
TABLE = Table(
    TableId("shop", "orders"),
    (Column("id", INT), Column("paid", INT), Column("note", ColumnType(Kind.TEXT, charset="utf8mb4"))),
    ("id",),
)
TWO_KEYS = Table(TABLE.id, TABLE.columns, ("id", "paid"))

Image = tuple[int, int, int, int | None]  # side, operation, id, paid


def images(*rows: Image) -> pa.Table:
    """In the order given."""
    sides, operations, ids, paid = zip(*rows, strict=True) if rows else ([], [], [], [])
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "paid": pa.array(paid, pa.int32()),
            "note": pa.array([f"n{one}" for one in ids], pa.string()),
            SEQ: pa.array(range(len(rows)), pa.int64()),
            SIDE: pa.array(sides, pa.uint8()),
            OP: pa.array(operations, pa.uint8()),
        }
    )


def changes(rule: Rule, *rows: Image, table: Table = TABLE) -> list[tuple[str, int]]:
    """The type and the place of each image that is given."""
    found = compiled(rule, table).images(images(*rows))
    return list(zip(found[CHANGE].to_pylist(), found[SEQ].to_pylist(), strict=True))


PAID = Rule("orders", "select * from orders where paid > 0")


def test_what_a_change_becomes() -> None:
    assert changes(PAID, (1, INSERT, 1, 1), (1, INSERT, 2, 0), (0, DELETE, 1, 1), (0, DELETE, 2, None)) == [
        ("insert", 0),
        ("delete", 2),
    ]
    assert changes(
        PAID,
        *[(0, UPDATE, 1, 0), (1, UPDATE, 1, 5)],  # enters
        *[(0, UPDATE, 1, 5), (1, UPDATE, 1, 6)],  # stays
        *[(0, UPDATE + UNCHECKED, 1, 6), (1, UPDATE + UNCHECKED, 1, None)],  # leaves
        *[(0, UPDATE, 1, None), (1, UPDATE, 1, 0)],  # stays outside
    ) == [("insert", 1), ("update_preimage", 2), ("update_postimage", 3), ("delete", 4)]


def test_all_rows() -> None:
    update = [(0, UPDATE, 1, 0), (1, UPDATE, 2, 0)]
    assert changes(Rule("*"), *update) == [("update_preimage", 0), ("update_postimage", 1)]
    assert changes(Rule("*")) == []
    assert changes(PAID) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.sampled_from([None, 0, 1])), max_size=40))
def test_what_is_given_leads_to_the_rows_of_the_condition(steps: list[tuple[int, int, int | None]]) -> None:
    """Rows are written, changed (their keys, too) and removed; who follows the changes has what a SELECT gives."""
    rows: dict[int, int | None] = {}
    logged: list[Image] = []
    for step, key, paid in steps:
        if key not in rows and step:
            rows[key] = paid
            logged.append((1, INSERT, key, paid))
        elif key in rows and step == 3:
            logged.append((0, DELETE, key, rows.pop(key)))
        elif key in rows and (new := key if step else key % 4 + 1) not in rows.keys() - {key}:
            logged.append((0, UPDATE, key, rows.pop(key)))
            rows[new] = paid
            logged.append((1, UPDATE, new, paid))
    for rule in (PAID, Rule("orders", "select id, paid from orders where paid > 0", of=2, index=1)):
        selection = compiled(rule, TABLE)
        held: dict[int, int | None] = {}
        for image in selection.images(images(*logged)).to_pylist():
            if image[CHANGE] in ("delete", "update_preimage"):
                assert held.pop(image["id"]) == image["paid"]
            else:
                assert image["id"] not in held
                held[image["id"]] = image["paid"]
        left = selection.rows(images(*[(1, INSERT, key, paid) for key, paid in sorted(rows.items())]))
        assert all(paid for paid in held.values())
        assert held == dict(zip(left["id"].to_pylist(), left["paid"].to_pylist(), strict=True))


def test_each_key_is_in_one_slice() -> None:
    rows = images(*[(1, INSERT, number, number % 3) for number in range(1000)])
    for table in (TABLE, TWO_KEYS):
        parts = [compiled(Rule("orders", "", 8, i), table).rows(rows)["id"].to_pylist() for i in range(8)]
        assert sorted(key for part in parts for key in part) == list(range(1000))
        assert min(map(len, parts)) > 80


@pytest.mark.parametrize(
    ("value", "kind", "encoded", "hashed"),
    [
        (6, pa.int32(), "8000000000000006", 9396760514977796603),
        (6, pa.int64(), "8000000000000006", 9396760514977796603),
        (-1, pa.int16(), "7fffffffffffffff", 305648545945622932),
        ("é", pa.string(), "c3a90000", 163285043170230628),
        (b"\x00a", pa.binary(), "00ff610000", 9940388475920670704),
        (Decimal(2**64 - 1), pa.decimal128(20, 0), f"8{'0' * 15}{'f' * 16}", 2853210453946268248),
        (date(2026, 1, 31), pa.date32(), "8000000000005004", 3899878373057903226),
        (datetime(2026, 1, 31, 1, 2, 3), pa.timestamp("us"), "800649a4a345f8c0", 11275687770916753171),
        (1.5, pa.float64(), "bff8000000000000", 13251746940665462322),
    ],
)
def test_a_slice_is_the_same_in_every_release(
    value: object, kind: pa.DataType, encoded: str, hashed: int
) -> None:
    """A consumer's share of a table must not move when Catchment is updated (docs/stream-rules.md)."""
    assert hashes(bytes.fromhex(encoded)) == [hashed]
    rows = pa.table({"k": pa.array([value], kind)})
    for of in (2, 7, 100):
        taken = [index for index in range(of) if Slice(("k",), of, index).takes(rows)[0]]
        assert taken == [hashed % of]


@pytest.mark.parametrize(
    ("given_", "key", "columns"),
    [
        ("*", ("id",), ["id", "paid", "note"]),
        ("note, id", ("id",), ["note", "id"]),
        ("id as number, paid", ("number",), ["number", "paid"]),
        ("paid", (), ["paid"]),
        ("id + 0 as id", (), ["id"]),
        ("id, id as again", ("id",), ["id", "again"]),
        ("*, paid * 2 as double_", ("id",), ["id", "paid", "note", "double_"]),
        ("ID, orders.Paid as `a b`, shop.orders.note", ("id",), ["id", "a b", "note"]),
    ],
)
def test_columns_and_key_of_the_result(given_: str, key: tuple[str, ...], columns: list[str]) -> None:
    selection = compiled(Rule("shop.orders", f"select {given_} from orders"), TABLE)
    assert selection.table.key == key
    assert [column.name for column in selection.table.columns] == columns
    found = selection.rows(images((1, INSERT, 1, 2)))
    assert found.schema.names == [*columns, SEQ, SIDE, OP]


def test_a_key_that_is_given_in_part_is_none() -> None:
    assert compiled(Rule("orders", "select id from orders"), TWO_KEYS).table.key == ()
    assert compiled(Rule("orders", "select paid p, id from orders"), TWO_KEYS).table.key == ("id", "p")


def test_the_columns_that_it_needs() -> None:
    def needs(rule: Rule) -> tuple[str, ...]:
        return compiled(rule, TABLE).needs

    assert needs(Rule("orders")) == ("id", "paid", "note")
    assert needs(Rule("orders", "select note from orders")) == ("note",)
    assert needs(Rule("orders", "select note from orders where paid = 1")) == ("paid", "note")
    assert needs(Rule("orders", "select note from orders", 2, 0)) == ("id", "note")
    assert needs(Rule("orders", "select 1 as one from orders where in_keyrange('-80')")) == ("id",)
    rows = images((1, INSERT, 1, 1)).select(["note", SEQ, SIDE, OP])
    assert compiled(Rule("orders", "select note from orders"), TABLE).images(rows)["note"].to_pylist() == [
        "n1"
    ]


def test_a_range_of_ids_is_that_of_the_key() -> None:
    rows = images(*[(1, INSERT, number, 0) for number in range(1, 7)])
    # Ids of 1 to 6 begin with 16, 06, 4e, d2, 70 and f0.
    assert compiled(Rule("/.*/", "-80"), TABLE).rows(rows)["id"].to_pylist() == [1, 2, 3, 5]
    assert compiled(Rule("orders", "10-80"), TABLE).rows(rows)["id"].to_pylist() == [1, 3, 5]
    written = "select id from orders where in_keyrange(id, 'hash', '80-') and id > 4"
    assert compiled(Rule("orders", written), TABLE).rows(rows)["id"].to_pylist() == [6]
    with pytest.raises(ConfigError, match=r"the key of shop\.orders is id, paid"):
        compiled(Rule("orders", "-80"), TWO_KEYS)


def test_batches_and_chunks_are_as_good_as_a_table() -> None:
    rows = images(*[(1, INSERT, number, number % 2) for number in range(10)])
    selection = compiled(
        Rule("orders", "select id, concat(note, '!') as c from orders where paid = 1", 2, 1), TABLE
    )
    wanted = selection.rows(rows).to_pylist()
    assert wanted
    (batch,) = rows.to_batches()
    assert selection.rows(batch).to_pylist() == wanted
    assert selection.rows(pa.concat_tables([rows.slice(0, 3), rows.slice(3)])).to_pylist() == wanted
    assert pickle.loads(pickle.dumps(selection)).rows(rows).to_pylist() == wanted


def test_slices_need_a_key() -> None:
    with pytest.raises(ConfigError, match="no key that slices could be made of"):
        compiled(Rule("orders", "", 2, 0), Table(TABLE.id, TABLE.columns, ()))


def test_a_result_out_of_range_names_the_table() -> None:
    table = Table(TABLE.id, (Column("id", ColumnType(Kind.BIGINT)),), ("id",))
    selection = compiled(Rule("orders", "select id from orders where id * 2 > 0"), table)
    with pytest.raises(Unsupported, match=r"shop\.orders: .* out of range for BIGINT"):
        selection.rows(pa.table({"id": pa.array([2**62])}))
