"""A column that one shard has dropped: its old rows lose their values in the plain table, and its changes say so."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from catchment.model.epoch import Part, TableShape
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


@pytest.mark.parametrize("form", [Form(), Form(vectors=False), Form(changes=True), Form(False, changes=True)])
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
