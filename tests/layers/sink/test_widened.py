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

# Columns, each with its former type and the new one, and a small, the largest and a larger value.
CASES = (
    ("n", ColumnType(Kind.INT), ColumnType(Kind.BIGINT), (1, -7, 1 << 40)),
    ("u", ColumnType(Kind.INT, unsigned=True), ColumnType(Kind.BIGINT, unsigned=True), (1, 1 << 31, 1 << 63)),
    (
        "d",
        ColumnType(Kind.DECIMAL, length=5, scale=2),
        ColumnType(Kind.DECIMAL, length=20, scale=4),
        (Decimal("1.50"), Decimal("-999.99"), Decimal("123456789012345.1234")),
    ),
)
Values = tuple[Any, ...]
SMALL, MOST, LARGE = zip(*(values for *_, values in CASES), strict=True)
NOTHING: Values = (None,) * len(CASES)
OLD, NEW = ({name: types[place] for name, *types, _ in CASES} for place in (0, 1))


def shapes(
    old: dict[str, ColumnType], new: dict[str, ColumnType], mode: Mode = Mode.MIRROR
) -> tuple[TableShape, TableShape, TableShape]:
    """The table before, while one shard has the former types, and when all have the new ones."""
    before = replace(shape("orders", {"id": INT, **old}, ("id",)), mode=mode)
    key, *columns = before.columns
    wider = tuple(replace(one, column=Column(one.physical, new[one.physical])) for one in columns)
    one = replace(
        before,
        columns=(key, *wider),
        widened=tuple(Widened(name, kind, ("s/1",)) for name, kind in old.items()),
    )
    return before, one, replace(one, widened=tuple(Widened(name, kind) for name, kind in old.items()))


def put(
    feeder: Feeder, table: TableShape, part: Part, *rows: tuple[str, int, Values], written: TableShape
) -> None:
    """An epoch of a table, whose file has the types of the shape that its task knew."""
    feeder.epoch += 1
    tagged = [(shard, feeder.epoch, False, (key, *values)) for shard, key, values in rows]
    files = [write(feeder.root, written, part, f"{feeder.epoch}-a-0", tagged)] if rows else []
    feeder.commit((table,), delta(table, *files))


def newest(root: Path, epoch: int | None = None) -> DeltaState:
    epochs = EpochsTable(root, FEED)
    row = epochs.newest() if epoch is None else epochs.at(epoch)
    assert row is not None
    return state(root, row, row.manifest.shapes[0].table, origin=True)


def held(rows: pa.Table, *columns: str) -> dict[tuple[str, int], Values]:
    return {(row["_shard"], row["id"]): tuple(row[name] for name in columns) for row in rows.to_pylist()}


@pytest.mark.wide
@pytest.mark.parametrize("form", [Form(), Form(vectors=False), Form(changes=True)])
@pytest.mark.parametrize("at_once", [True, False])
def test_every_reader_has_the_values_of_before(
    tmp_path: Path, spark: SparkSession, form: Form, at_once: bool
) -> None:
    """`at_once`: rows from before and after the ALTER come in one settle."""
    before, one, after = shapes(OLD, NEW)
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    copied = [(shard, key, MOST) for shard in ("s/0", "s/1") for key in (1, 2, 3)]
    put(feeder, before, Part.BASE, *copied, written=before)
    put(feeder, before, Part.CHANGES, ("s/0", 2, SMALL), ("s/1", 2, NOTHING), written=before)
    if not at_once:
        carry_out(order)
    put(feeder, one, Part.CHANGES, ("s/1", 3, SMALL), written=before)
    put(feeder, one, Part.CHANGES, ("s/0", 3, LARGE), written=one)
    put(feeder, after, Part.CHANGES, ("s/1", 9, LARGE), written=after)
    wanted = {
        ("s/0", 1): MOST, ("s/0", 2): SMALL, ("s/0", 3): LARGE,
        ("s/1", 1): MOST, ("s/1", 2): NOTHING, ("s/1", 3): SMALL, ("s/1", 9): LARGE,
    }  # fmt: skip
    tail = newest(tmp_path)
    assert held(tail.arrow(), *NEW) == held(tail.spark(spark).toArrow(), *NEW) == wanted
    carry_out(order)
    settled = newest(tmp_path)
    rows = settled.arrow()
    assert held(rows, *NEW) == held(settled.spark(spark).toArrow(), *NEW) == wanted
    plain = table_dir(tmp_path, before.table)
    table = DeltaTable(plain)
    assert held(by_delta_rs(plain, table.version()), *NEW) == wanted
    with DeltaScan() as scan:
        assert held(scan.rows(plain, ["_shard", "id", *NEW]), *NEW) == wanted
    for path in pa.table(table.get_add_actions())["path"].to_pylist():
        assert [pq.read_schema(plain / path).field(name).type for name in NEW] == [
            rows.schema.field(name).type for name in NEW
        ]
    if not at_once:
        assert held(newest(tmp_path, 2).arrow(), *NEW)["s/0", 3] == MOST
        first = by_delta_rs(plain, 0)
        assert held(first, *NEW)["s/1", 3] == MOST
        assert all(first.schema.field(name).type != rows.schema.field(name).type for name in NEW)
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
    before, _, after = shapes({"n": ColumnType(Kind.INT)}, {"n": ColumnType(Kind.BIGINT)})
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    put(feeder, before, Part.BASE, *(("s/0", key, (key,)) for key in range(5)), written=before)
    put(feeder, before, Part.CHANGES, ("s/0", 2, (7,)), written=before)
    carry_out(order)
    put(feeder, after, Part.CHANGES, written=after)
    carry_out(order)
    plain = table_dir(tmp_path, before.table)
    table = DeltaTable(plain)
    assert held(by_delta_rs(plain, table.version()), "n") == {
        ("s/0", key): (7 if key == 2 else key,) for key in range(5)
    }
    assert {f.name: str(f.type) for f in table.schema().fields}["n"] == 'PrimitiveType("long")'
    if form.changes:
        assert told(plain, table.version()) == []
        whole = table.load_cdf(starting_version=0, ending_version=table.version()).read_all()
        assert pa.table(whole).num_rows == 5


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("mode", [Mode.SOFT_DELETE, Mode.APPEND, Mode.HISTORY])
def test_modes(tmp_path: Path, mode: Mode, at_once: bool) -> None:
    before, one, after = shapes({"n": ColumnType(Kind.SMALLINT)}, {"n": ColumnType(Kind.INT)}, mode)
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    put(feeder, before, Part.BASE, *((shard, 1, (10,)) for shard in ("s/0", "s/1")), written=before)
    put(feeder, before, Part.CHANGES, ("s/0", 1, (11,)), ("s/0", 2, (12,)), written=before)
    if not at_once:
        carry_out(order)
    put(feeder, one, Part.CHANGES, ("s/1", 1, (13,)), written=before)
    feeder.put(one, (2, None), deleted=True)
    put(feeder, after, Part.CHANGES, ("s/0", 1, (100_000,)), written=after)
    if not at_once:
        carry_out(order)
    assert held(newest(tmp_path).arrow(), "n") == {("s/0", 1): (100_000,), ("s/1", 1): (13,)}
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
