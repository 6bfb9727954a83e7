"""Values that rows of a plain table have by its shape, and its changes: those of a column that one shard has dropped
are gone, and older rows have what a column came with."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from catchment.model.epoch import Part, TableShape
from catchment.model.fill import Fill
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS, delta, write
from tests.layers.sink.test_change_data import told
from tests.layers.sink.test_settle import by_delta_rs
from tests.world.settled import carry_out

SHARDS = ("s/0", "s/1")
TORN = replace(ORDERS, columns=(ORDERS.columns[0], replace(ORDERS.columns[1], torn=True, missing=("s/0",))))


def put(feeder: Feeder, table: TableShape, part: Part, *rows: tuple[str, int, str | None]) -> None:
    feeder.epoch += 1
    tagged = [(shard, feeder.epoch, False, (key, value)) for shard, key, value in rows]
    files = [write(feeder.root, table, part, f"{feeder.epoch}-a-0", tagged)] if rows else []
    feeder.commit((table,), delta(table, *files))


FORMS = [Form(), Form(changes=True), pytest.param(Form(vectors=False), marks=pytest.mark.wide)]


@pytest.mark.parametrize("form", [*FORMS, pytest.param(Form(False, changes=True), marks=pytest.mark.wide)])
@pytest.mark.parametrize("at_once", [True, False])
def test_values_that_a_shard_dropped_are_gone(tmp_path: Path, form: Form, at_once: bool) -> None:
    """`at_once`: rows from before and after the ALTER come in one settle."""
    feeder = Feeder(tmp_path)
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    copied = [(shard, key, f"{key}") for shard in SHARDS for key in (1, 2, 3)]
    put(feeder, ORDERS, Part.BASE, *copied)
    put(feeder, ORDERS, Part.CHANGES, ("s/0", 2, "two"), ("s/1", 2, "two"))
    if not at_once:
        carry_out(order)
    put(feeder, TORN, Part.CHANGES, ("s/0", 3, None))
    carry_out(order)
    plain = table_dir(tmp_path, ORDERS.table)
    newest = DeltaTable(plain).version()
    rows = {
        (row["_shard"], row["id"]): (row["_epoch"], row["sig"])
        for row in by_delta_rs(plain, newest).to_pylist()
    }
    assert rows == {
        ("s/0", 1): (1, None),
        ("s/0", 2): (2, None),
        ("s/0", 3): (3, None),
        ("s/1", 1): (1, "1"),
        ("s/1", 2): (2, "two"),
        ("s/1", 3): (1, "3"),
    }
    assert (
        DeltaTable(plain).metadata().configuration["delta.enableDeletionVectors"] == str(form.vectors).lower()
    )
    if form.changes:
        images = {(row["_shard"], row["id"], row["_change_type"]): row["sig"] for row in told(plain, newest)}
        if at_once:
            assert set(images) == {(*key, "insert") for key in rows}
            assert {key[:2]: sig for key, sig in images.items()} == {
                key: sig for key, (_, sig) in rows.items()
            }
        else:
            assert images == {
                ("s/0", 1, "update_preimage"): "1",
                ("s/0", 1, "update_postimage"): None,
                ("s/0", 2, "update_preimage"): "two",
                ("s/0", 2, "update_postimage"): None,
                ("s/0", 3, "update_preimage"): "3",
                ("s/0", 3, "update_postimage"): None,
            }
    assert carry_out(order).changes == {}
    assert DeltaTable(plain).version() == newest


def test_a_value_that_a_column_came_with_is_gone_where_a_shard_dropped_it(tmp_path: Path) -> None:
    """One settle takes up both."""
    feeder = Feeder(tmp_path)
    put(feeder, ORDERS, Part.BASE, *((shard, key, None) for shard in SHARDS for key in (1, 2)))
    fill = Fill("sig", SHARDS, 2, "new")
    put(feeder, replace(TORN, fills=(fill,)), Part.CHANGES, ("s/1", 3, "three"))
    carry_out(UpkeepOrder(str(tmp_path), FEED, 1, 3600.0))
    plain = table_dir(tmp_path, ORDERS.table)
    rows = by_delta_rs(plain, DeltaTable(plain).version()).to_pylist()
    assert sorted((row["_shard"], row["id"], row["sig"]) for row in rows) == [
        ("s/0", 1, None),
        ("s/0", 2, None),
        ("s/1", 1, "new"),
        ("s/1", 2, "new"),
        ("s/1", 3, "three"),
    ]


FILLED = replace(ORDERS, fills=(Fill("sig", ("s/0",), 3, "new"),))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.SOFT_DELETE])
def test_older_rows_have_what_a_column_came_with(
    tmp_path: Path, form: Form, at_once: bool, mode: Mode
) -> None:
    """`at_once`: rows from before and after the ALTER come in one settle."""
    feeder, filled = Feeder(tmp_path), replace(FILLED, mode=mode)
    bare = replace(ORDERS, mode=mode)
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    put(feeder, bare, Part.BASE, *((shard, key, None) for shard in SHARDS for key in (1, 2, 3)))
    put(feeder, bare, Part.CHANGES, ("s/0", 2, None), ("s/1", 2, None))
    if not at_once:
        carry_out(order)
    put(feeder, filled, Part.CHANGES, ("s/0", 3, None), ("s/0", 4, "own"))
    for number, changes in enumerate([(), (("s/0", 1, "later"),), (("s/1", 1, "later"),)]):
        if changes:
            put(feeder, filled, Part.CHANGES, *changes)
        carry_out(order)
        plain = table_dir(tmp_path, ORDERS.table)
        rows = {
            (row["_shard"], row["id"]): (row["_epoch"], row["sig"])
            for row in by_delta_rs(plain, DeltaTable(plain).version()).to_pylist()
        }
        assert rows == {
            ("s/0", 1): (1, "new") if number == 0 else (4, "later"),
            ("s/0", 2): (2, "new"),
            ("s/0", 3): (3, None),
            ("s/0", 4): (3, "own"),
            ("s/1", 1): (1, None) if number < 2 else (5, "later"),
            ("s/1", 2): (2, None),
            ("s/1", 3): (1, None),
        }
        if form.changes and number == 0 and not at_once:
            images = {
                (r["_shard"], r["id"], r["_change_type"]): r["sig"]
                for r in told(plain, DeltaTable(plain).version())
            }
            assert images == {
                **{("s/0", key, "update_preimage"): None for key in (1, 2, 3)},
                **{("s/0", key, "update_postimage"): "new" for key in (1, 2)},
                ("s/0", 3, "update_postimage"): None,
                ("s/0", 4, "insert"): "own",
            }
    newest = DeltaTable(plain).version()
    assert carry_out(order).changes == {}
    assert DeltaTable(plain).version() == newest


def test_a_join_before_the_settle_keeps_what_is_to_be_filled(tmp_path: Path) -> None:
    """Files are joined by the newest shape, also while the plain table is of an earlier epoch."""
    feeder = Feeder(tmp_path)
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    for key in range(1, 12):
        put(feeder, ORDERS, Part.CHANGES, ("s/0", key, None))
        carry_out(order)
    filled = replace(ORDERS, fills=(Fill("sig", ("s/0",), feeder.epoch + 1, "new"),))
    put(feeder, filled, Part.CHANGES, ("s/0", 99, "own"))
    carry_out(order)
    carry_out(order)
    plain = table_dir(tmp_path, ORDERS.table)
    rows = {row["id"]: row["sig"] for row in by_delta_rs(plain, DeltaTable(plain).version()).to_pylist()}
    assert rows == {**dict.fromkeys(range(1, 12), "new"), 99: "own"}
