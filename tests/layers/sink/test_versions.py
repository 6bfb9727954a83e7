"""`_catchment/versions`: SQL finds the version of a plain table that is an epoch."""

import random
import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

import catchment
from catchment.model.epoch_number import epoch_number, epoch_text
from catchment.sink.delta.layout import epochs_dir, table_dir, tail_dir, versions_dir
from catchment.sink.delta.log import checkpoint
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.upkeep import versions
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from tests.layers.sink.model import FEED, ORDERS
from tests.layers.sink.test_open import Copied
from tests.world.delta_scan import DeltaScan

TABLE = "shop.orders"


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs of these tests are of 1970."""
    monkeypatch.setattr(versions, "_KEEP_SECONDS", 10**10)
    monkeypatch.setattr(versions, "epoch_number", lambda second, tick: epoch_number(max(second, 0), tick))


def told(root: Path) -> dict[int, int]:
    """The epoch of each version, of the plain table."""
    rows = pl.read_delta(str(versions_dir(root)))
    assert set(rows["feed"]) == {FEED}
    assert set(rows["table_name"]) == {TABLE}
    assert [epoch_text(epoch) for epoch in rows["epoch"]] == list(rows["epoch_text"])
    assert rows["version"].is_unique().all()
    return dict(zip(rows["version"], rows["epoch"], strict=True))


def test_every_version_is_told_and_is_what_is_told(tmp_path: Path) -> None:
    table = Copied(tmp_path, random.Random(4))
    table.commit()
    for number in range(14):
        table.commit()
        table.keep_up()
        if number == 7:  # a crash between the settle and the record is like a record that lacks the newest
            newest = DeltaLog(versions_dir(tmp_path)).newest()
            assert newest is not None
            (versions_dir(tmp_path) / "_delta_log" / f"{newest.version:020d}.json").unlink()
    plain = table_dir(tmp_path, ORDERS.table)
    found = told(tmp_path)
    assert sorted(found) == list(range(DeltaTable(plain).version() + 1))
    for version, epoch in list(found.items())[::3]:
        assert sorted(pl.read_delta(str(plain), version=version).rows()) == table.expected(epoch)
    newest = DeltaLog(versions_dir(tmp_path)).newest()
    assert newest is not None
    assert len(newest.files) < 20
    with DeltaScan() as judge:
        rows = judge.rows(versions_dir(tmp_path), ["version", "epoch"]).to_pylist()
    assert {row["version"]: row["epoch"] for row in rows} == found


def test_a_turn_leaves_checkpoints_of_every_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that starts, and a reader, would read each commit since the table's beginning."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 10)
    table = Copied(tmp_path, random.Random(7))
    for _ in range(30):
        table.commit()
    table.keep_up()
    tail, epochs = tail_dir(tmp_path, ORDERS.table), epochs_dir(tmp_path)
    assert DeltaLog(tail).checkpointed() >= 10
    assert DeltaLog(epochs).checkpointed() >= 10
    table.commit()
    assert len(catchment.read(tmp_path, TABLE).arrow()) == len(table.expected(table.feeder.epoch))


def test_what_others_have_told_is_not_told_again(tmp_path: Path) -> None:
    """A run, and `catchment settle` beside it."""
    table = Copied(tmp_path, random.Random(8))
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    keepers = [Keeper(str(tmp_path), FEED) for _ in range(2)]
    for number in range(8):
        table.commit()
        keepers[number % 2].carry_out(order)
    with DeltaScan() as judge:
        rows = judge.rows(versions_dir(tmp_path), ["table_name", "version"]).to_pylist()
    assert len(rows) == len({(row["table_name"], row["version"]) for row in rows}) > 3


def test_it_is_made_anew_from_the_logs(tmp_path: Path) -> None:
    table = Copied(tmp_path, random.Random(5))
    for _ in range(6):
        table.commit()
        table.keep_up()
    before = told(tmp_path)
    shutil.rmtree(versions_dir(tmp_path))
    table.keep_up()
    assert told(tmp_path) == before


def test_old_versions_are_told_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Copied(tmp_path, random.Random(6))
    for _ in range(6):
        table.commit()
        table.keep_up()
    monkeypatch.setattr(versions, "epoch_number", lambda second, tick: table.feeder.epoch)
    table.commit()
    table.keep_up()
    assert set(told(tmp_path).values()) <= {table.feeder.epoch - 1, table.feeder.epoch}
