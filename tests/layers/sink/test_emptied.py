"""Rows that a TRUNCATE took: a settle takes them out of the plain table, its reader knows it before."""

from pathlib import Path

import duckdb
import msgspec
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace
from pyroaring import BitMap

from catchment.model.emptied import Emptied, emptied_too
from catchment.model.epoch import Commit, Part, TableShape
from catchment.model.fill import Fill
from catchment.model.location import location
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epoch_app, table_dir
from catchment.sink.delta.log.actions import MetaData
from catchment.sink.delta.log.delta_log import Bounds, DeltaLog
from catchment.sink.delta.plain import emptied as module
from catchment.sink.delta.plain.emptied import not_taken, noted, rows_taken
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.reading.lake import state
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS, delta, manifest
from tests.layers.sink.test_amended import SHARDS, put
from tests.layers.sink.test_change_data import told
from tests.layers.sink.test_settle import by_delta_rs
from tests.layers.sink.test_turns import Time, recorded, run_epoch, upkeep_of
from tests.world.records import name_of
from tests.world.settled import carry_out
from tests.world.worlds import put as put_world

Held = dict[tuple[str, int], tuple[int, str | None]]
WIDE = pytest.mark.wide
FORMS = [
    *(Form(), Form(False, changes=True)),
    *(pytest.param(form, marks=WIDE) for form in (Form(vectors=False), Form(changes=True))),
]


def order_of(root: Path, form: Form = Form()) -> UpkeepOrder:  # noqa: B008 (a frozen value)
    return UpkeepOrder(str(root), FEED, 1, 3600.0, form=form)


def plain_rows(root: Path) -> Held:
    place = table_dir(root, ORDERS.table)
    rows = by_delta_rs(place, DeltaTable(place).version()).to_pylist()
    assert len(rows) == len({(row["_shard"], row["id"]) for row in rows})
    return {(row["_shard"], row["id"]): (row["_epoch"], row["sig"]) for row in rows}


def read_rows(root: Path) -> Held:
    row = EpochsTable(root, FEED).newest()
    assert row is not None
    found = state(location(str(root)), row, ORDERS.table, origin=True)
    with duckdb.connect() as connection:
        both = [found.arrow().to_pylist(), connection.sql(found.sql()).to_arrow_table().to_pylist()]
    first, second = ({(r["_shard"], r["id"]): (r["_epoch"], r["sig"]) for r in rows} for rows in both)
    assert first == second
    return first


def without(shard: str, before: int, shape: TableShape = ORDERS) -> TableShape:
    return replace(shape, emptied=emptied_too(shape.emptied, shard, before))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settled", ["nothing", "the chunk", "both", "all but the last"])
def test_rows_of_before_are_gone(tmp_path: Path, form: Form, settled: str) -> None:
    """`settled`: what stands in the plain table when the TRUNCATE comes."""
    feeder, order = Feeder(tmp_path), order_of(tmp_path, form)
    put(feeder, ORDERS, Part.BASE, *((shard, key, "old") for shard in SHARDS for key in (1, 2, 3)))
    if settled != "nothing":
        carry_out(order)
    put(feeder, ORDERS, Part.CHANGES, ("s/0", 2, "two"), ("s/1", 2, "two"), ("s/0", 4, "four"))
    if settled in ("both", "all but the last"):
        carry_out(order)
    put(feeder, without("s/0", 3), Part.CHANGES, ("s/0", 2, "new"), ("s/0", 5, "five"))
    other: Held = {("s/1", 1): (1, "old"), ("s/1", 2): (2, "two"), ("s/1", 3): (1, "old")}
    wanted: Held = {**other, ("s/0", 2): (3, "new"), ("s/0", 5): (3, "five")}
    assert read_rows(tmp_path) == wanted
    if settled == "all but the last":
        carry_out(order)
        put(feeder, without("s/0", 4), Part.CHANGES)
        wanted = other
        assert read_rows(tmp_path) == wanted
    carry_out(order)
    assert plain_rows(tmp_path) == read_rows(tmp_path) == wanted
    place = table_dir(tmp_path, ORDERS.table)
    version = DeltaTable(place).version()
    if form.changes and settled == "both":
        images = {(r["_shard"], r["id"], r["_change_type"]): r["sig"] for r in told(place, version)}
        assert images == {
            ("s/0", 1, "delete"): "old",
            ("s/0", 2, "update_preimage"): "two",
            ("s/0", 2, "update_postimage"): "new",
            ("s/0", 3, "delete"): "old",
            ("s/0", 4, "delete"): "four",
            ("s/0", 5, "insert"): "five",
        }
    assert carry_out(order).changes == {}
    assert DeltaTable(place).version() == version
    put(feeder, without("s/0", 3), Part.CHANGES, ("s/0", 1, "again"), ("s/1", 1, "later"))
    carry_out(order)
    assert plain_rows(tmp_path) == read_rows(tmp_path)
    assert plain_rows(tmp_path)["s/0", 1] == (feeder.epoch, "again")


def test_a_chunk_behind_a_truncate_stays(tmp_path: Path) -> None:
    """The copy goes on: chunks of later epochs, and of the epoch itself, were read behind it."""
    feeder, order = Feeder(tmp_path), order_of(tmp_path)
    put(feeder, ORDERS, Part.BASE, ("s/0", 1, "old"), ("s/0", 2, "old"))
    put(feeder, without("s/0", 2), Part.BASE, ("s/0", 3, "read behind"))
    put(feeder, without("s/0", 2), Part.BASE, ("s/0", 9, "later"))
    wanted: Held = {("s/0", 3): (2, "read behind"), ("s/0", 9): (3, "later")}
    assert read_rows(tmp_path) == wanted
    carry_out(order)
    assert plain_rows(tmp_path) == wanted


def test_a_file_that_is_dead_as_a_whole_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bounds in the log say so, and those of other shards are not read either."""
    feeder, order = Feeder(tmp_path), order_of(tmp_path)
    for shard in SHARDS:
        put(feeder, ORDERS, Part.BASE, *((shard, key, "old") for key in range(1, 9)))
    carry_out(order)
    monkeypatch.setattr(module, "lake_parquet", None)
    put(feeder, without("s/0", 3), Part.CHANGES)
    carry_out(order)
    assert {shard for shard, _ in plain_rows(tmp_path)} == {"s/1"}
    newest = DeltaLog(table_dir(tmp_path, ORDERS.table)).newest()
    assert newest is not None
    (left,) = newest.files.values()
    assert left.dead is None


def test_a_later_epoch_costs_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is noted is not looked for again, whatever the table's size."""
    feeder, order = Feeder(tmp_path), order_of(tmp_path)
    put(feeder, ORDERS, Part.BASE, *((shard, key, "old") for shard in SHARDS for key in (1, 2)))
    put(feeder, without("s/0", 2), Part.CHANGES)
    carry_out(order)
    monkeypatch.setattr(module, "_dead", None)
    monkeypatch.setattr(module, "lake_parquet", None)
    put(feeder, without("s/0", 2), Part.CHANGES, ("s/0", 1, "new"))
    assert ("s/0", 1) in read_rows(tmp_path)
    row = EpochsTable(tmp_path, FEED).newest()
    assert row is not None
    assert "NOT (" not in state(location(str(tmp_path)), row, ORDERS.table, origin=True).sql()
    carry_out(order)
    assert plain_rows(tmp_path) == {
        ("s/0", 1): (3, "new"),
        ("s/1", 1): (1, "old"),
        ("s/1", 2): (1, "old"),
    }


def test_what_is_noted_is_taken() -> None:
    first = (Emptied(("a", "b"), 5),)
    metadata = MetaData("id", "{}", 0, {})
    assert not_taken(first, None) == not_taken(first, metadata) == first
    known = noted(first, metadata)
    assert not_taken(first, known) == ()
    assert noted((), known) is known
    later = (Emptied(("a",), 5), Emptied(("b", "c"), 7))
    assert not_taken(later, known) == (Emptied(("b", "c"), 7),)


def test_bounds_decide_where_they_can(tmp_path: Path) -> None:
    gone = (Emptied(("s/0",), 5),)

    def bounds(shards: tuple[str, str], epochs: tuple[int, int]) -> Bounds:
        least, most = ({"_shard": s, "_epoch": e} for s, e in zip(shards, epochs, strict=True))
        return Bounds(9, least, most)

    nowhere = tmp_path / "no such file"
    assert rows_taken(nowhere, 9, bounds(("s/0", "s/0"), (1, 4)), gone) == BitMap(range(9))
    assert not rows_taken(nowhere, 9, bounds(("s/0", "s/0"), (5, 8)), gone)
    assert not rows_taken(nowhere, 9, bounds(("s/1", "s/3"), (1, 4)), gone)
    with pytest.raises(Exception, match="no such file"):
        rows_taken(nowhere, 9, bounds(("s/0", "s/1"), (1, 4)), gone)
    with pytest.raises(Exception, match="no such file"):
        rows_taken(nowhere, 9, bounds(("s/0", "s/0"), (1, 5)), gone)


def test_a_shape_knows_the_last_one_of_each_shard() -> None:
    shape = without("c", 4, without("a", 3, without("b", 3)))
    assert shape.emptied == (Emptied(("a", "b"), 3), Emptied(("c",), 4))
    assert without("a", 6, shape).emptied == (Emptied(("b",), 3), Emptied(("c",), 4), Emptied(("a",), 6))


def test_a_join_before_the_settle_keeps_what_is_to_go(tmp_path: Path) -> None:
    feeder, order = Feeder(tmp_path), order_of(tmp_path)
    for key in range(1, 12):
        put(feeder, ORDERS, Part.CHANGES, ("s/0", key, "old"), ("s/1", key, "old"))
        carry_out(order)
    put(feeder, without("s/0", feeder.epoch + 1), Part.CHANGES, ("s/0", 99, "own"))
    carry_out(order)
    carry_out(order)
    assert set(plain_rows(tmp_path)) == {*(("s/1", key) for key in range(1, 12)), ("s/0", 99)}


def test_a_shape_without_one_is_written_as_before() -> None:
    assert b"emptied" not in msgspec.json.encode(ORDERS)
    shape = replace(ORDERS, emptied=(Emptied(("a",), 1),))
    assert msgspec.json.decode(msgspec.json.encode(shape), type=TableShape) == shape


@pytest.mark.parametrize(
    "shape",
    [
        replace(ORDERS, emptied=(Emptied(("s/0",), 2),)),
        replace(ORDERS, fills=(Fill("sig", ("s/0",), 2, "new"),)),
    ],
)
def test_what_the_shape_alone_says_is_settled_too(
    shape: TableShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TRUNCATE, or a column with a value, without any row behind it."""
    put_world(monkeypatch, clock := Time())
    codes = recorded(monkeypatch)
    watch = upkeep_of(tmp_path, 0.0)
    began = clock.now
    watch.count(run_epoch(tmp_path, 1, Part.BASE, 100))
    for epoch in (1, 2):
        while len(codes) < epoch:
            watch.turn()
            clock.now += 1.0
        if epoch == 1:
            record = manifest(2, (shape,), delta(shape))
            versions = DeltaSink(tmp_path, FEED).apply_epoch(record, 1)
            EpochsTable(tmp_path, FEED).append(record, Commit(2, name_of(record), 0, versions), 1)
            watch.count(record)
    assert clock.now - began < 10.0
    plain = DeltaLog(table_dir(tmp_path, ORDERS.table)).newest()
    assert plain is not None
    assert plain.transactions[epoch_app(FEED, ORDERS.table)] == 2
    assert sum(file.live for file in plain.files.values()) == (0 if shape.emptied else 100)
