"""Columns whose type became wider: every reader has the values of before, older versions keep their own schema, and the
settle that writes the files once more tells no change."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace
from pyspark.sql import SparkSession

from catchment.model.epoch import Part, TableShape
from catchment.model.table import Column, ColumnType, Kind
from catchment.model.treatment import Mode
from catchment.model.widened import Widened
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.reading.lake import state
from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, delta, shape, write
from tests.layers.sink.test_change_data import told
from tests.layers.sink.test_settle import by_delta_rs
from tests.world.delta_scan import DeltaScan
from tests.world.settled import carry_out

CASES = {
    "integers": ((ColumnType(Kind.INT), 1, -7), (ColumnType(Kind.BIGINT), 1 << 40)),
    "unsigned": (
        (ColumnType(Kind.INT, unsigned=True), 1, 1 << 31),
        (ColumnType(Kind.BIGINT, unsigned=True), 1 << 63),
    ),
    "decimals": (
        (ColumnType(Kind.DECIMAL, length=5, scale=2), Decimal("1.50"), Decimal("-999.99")),
        (ColumnType(Kind.DECIMAL, length=20, scale=4), Decimal("123456789012345.1234")),
    ),
}


def shapes(
    old: ColumnType, new: ColumnType, mode: Mode = Mode.MIRROR
) -> tuple[TableShape, TableShape, TableShape]:
    """The table before, while one shard has the former type, and when all have the new one."""
    before = replace(shape("orders", {"id": INT, "n": old}, ("id",)), mode=mode)
    key, column = before.columns
    columns = (key, replace(column, column=Column("n", new)))
    one = replace(before, columns=columns, widened=(Widened("n", old, ("s/1",)),))
    return before, one, replace(one, widened=(Widened("n", old),))


def put(
    feeder: Feeder, table: TableShape, part: Part, *rows: tuple[str, int, Any], written: TableShape
) -> None:
    """An epoch of a table, whose file has the types of the shape that its task knew."""
    feeder.epoch += 1
    tagged = [(shard, feeder.epoch, False, (key, value)) for shard, key, value in rows]
    files = [write(feeder.root, written, part, f"{feeder.epoch}-a-0", tagged)] if rows else []
    feeder.commit((table,), delta(table, *files))


def newest(root: Path, epoch: int | None = None) -> DeltaState:
    epochs = EpochsTable(root, FEED)
    row = epochs.newest() if epoch is None else epochs.at(epoch)
    assert row is not None
    return state(root, row, row.manifest.shapes[0].table, origin=True)


def held(rows: pa.Table) -> dict[tuple[str, int], Any]:
    return {(row["_shard"], row["id"]): row["n"] for row in rows.to_pylist()}


@pytest.mark.parametrize(
    "form",
    [
        Form(),
        *(pytest.param(form, marks=pytest.mark.wide) for form in (Form(vectors=False), Form(changes=True))),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_every_reader_has_the_values_of_before(
    tmp_path: Path, spark: SparkSession, form: Form, at_once: bool, case: str
) -> None:
    """`at_once`: rows from before and after the ALTER come in one settle."""
    (old, small, most), (new, large) = CASES[case]
    before, one, after = shapes(old, new)
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    copied = [(shard, key, most) for shard in ("s/0", "s/1") for key in (1, 2, 3)]
    put(feeder, before, Part.BASE, *copied, written=before)
    put(feeder, before, Part.CHANGES, ("s/0", 2, small), ("s/1", 2, None), written=before)
    if not at_once:
        carry_out(order)
    put(feeder, one, Part.CHANGES, ("s/1", 3, small), written=before)
    put(feeder, one, Part.CHANGES, ("s/0", 3, large), written=one)
    put(feeder, after, Part.CHANGES, ("s/1", 9, large), written=after)
    wanted = {
        ("s/0", 1): most, ("s/0", 2): small, ("s/0", 3): large,
        ("s/1", 1): most, ("s/1", 2): None, ("s/1", 3): small, ("s/1", 9): large,
    }  # fmt: skip
    session = spark
    tail = newest(tmp_path)
    assert held(tail.arrow()) == held(tail.spark(session).toArrow()) == wanted
    carry_out(order)
    settled = newest(tmp_path)
    assert held(settled.arrow()) == held(settled.spark(session).toArrow()) == wanted
    plain = table_dir(tmp_path, before.table)
    table = DeltaTable(plain)
    assert held(by_delta_rs(plain, table.version())) == wanted
    with DeltaScan() as scan:
        assert held(scan.rows(plain, ["_shard", "id", "n"])) == wanted
    kinds = {
        pq.read_schema(plain / path).field("n").type
        for path in pa.table(table.get_add_actions())["path"].to_pylist()
    }
    assert kinds == {settled.arrow().schema.field("n").type}
    if not at_once:
        assert held(newest(tmp_path, 2).arrow())["s/0", 3] == most
        first = by_delta_rs(plain, 0)
        assert held(first)["s/1", 3] == most
        assert first.schema.field("n").type != settled.arrow().schema.field("n").type
    if form.changes and not at_once:
        assert {(r["_shard"], r["id"], r["_change_type"]) for r in told(plain, table.version())} == {
            ("s/0", 3, "update_preimage"), ("s/0", 3, "update_postimage"),
            ("s/1", 3, "update_preimage"), ("s/1", 3, "update_postimage"),
            ("s/1", 9, "insert"),
        }  # fmt: skip
    assert carry_out(order).changes == {}
    assert DeltaTable(plain).version() == table.version()


@pytest.mark.parametrize("form", [Form(), Form(vectors=False), Form(changes=True)])
def test_a_settle_that_only_writes_other_types_tells_no_change(tmp_path: Path, form: Form) -> None:
    before, _, after = shapes(ColumnType(Kind.INT), ColumnType(Kind.BIGINT))
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    put(feeder, before, Part.BASE, *(("s/0", key, key) for key in range(5)), written=before)
    put(feeder, before, Part.CHANGES, ("s/0", 2, 7), written=before)
    carry_out(order)
    put(feeder, after, Part.CHANGES, written=after)
    carry_out(order)
    plain = table_dir(tmp_path, before.table)
    table = DeltaTable(plain)
    assert held(by_delta_rs(plain, table.version())) == {
        ("s/0", key): 7 if key == 2 else key for key in range(5)
    }
    assert {f.name: str(f.type) for f in table.schema().fields}["n"] == 'PrimitiveType("long")'
    if form.changes:
        assert told(plain, table.version()) == []
        whole = table.load_cdf(starting_version=0, ending_version=table.version()).read_all()
        assert pa.table(whole).num_rows == 5


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("mode", [Mode.SOFT_DELETE, Mode.APPEND, Mode.HISTORY])
def test_modes(tmp_path: Path, mode: Mode, at_once: bool) -> None:
    before, one, after = shapes(ColumnType(Kind.SMALLINT), ColumnType(Kind.INT), mode)
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    put(feeder, before, Part.BASE, *((shard, 1, 10) for shard in ("s/0", "s/1")), written=before)
    put(feeder, before, Part.CHANGES, ("s/0", 1, 11), ("s/0", 2, 12), written=before)
    if not at_once:
        carry_out(order)
    put(feeder, one, Part.CHANGES, ("s/1", 1, 13), written=before)
    feeder.put(one, (2, None), deleted=True)
    put(feeder, after, Part.CHANGES, ("s/0", 1, 100_000), written=after)
    if not at_once:
        carry_out(order)
    assert held(newest(tmp_path).arrow()) == {("s/0", 1): 100_000, ("s/1", 1): 13}
    carry_out(order)
    plain = table_dir(tmp_path, before.table)
    rows = by_delta_rs(plain, DeltaTable(plain).version())
    assert rows.schema.field("n").type == pa.int32()
    found = sorted(
        (row["_shard"], row["id"], row["_epoch"], row["n"]) for row in rows.to_pylist() if row["n"]
    )
    assert ("s/0", 1, 5, 100_000) in found
    assert ("s/1", 1, 3, 13) in found
    if mode is not Mode.SOFT_DELETE:
        assert {(shard, key, n) for shard, key, _, n in found} >= {
            ("s/0", 1, 10),
            ("s/0", 1, 11),
            ("s/0", 2, 12),
        }
