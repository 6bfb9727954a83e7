"""The cleaner deletes what nobody names, and nothing that a reader in the window may open."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from catchment.api.read import read
from catchment.model.epoch import Commit, Part
from catchment.model.errors import LeaseLost, SinkError
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import PART, delta_schema, epochs_dir, staged_dir, table_dir, tail_dir
from catchment.sink.delta.log.actions import commit_info
from catchment.sink.delta.log.commit import create_table, fenced
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain import join
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.tail.stage import LakeStage
from catchment.sink.delta.upkeep.clean import Keeping
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, delta, manifest, shape, write
from tests.world.records import name_of
from tests.world.settled import carry_out, clean_feed


def run_epoch(root: Path, sink: DeltaSink, epoch: int) -> None:
    file = write(root, ORDERS, Part.CHANGES, f"{epoch}-a-0", [("s/0", epoch, False, (epoch, "x"))])
    record = manifest(epoch, (ORDERS,), delta(ORDERS, file))
    versions = sink.apply_epoch(record, 1)
    EpochsTable(root, FEED).append(record, Commit(epoch, name_of(record), 1, versions), 1)


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def on_disk(root: Path) -> set[str]:
    return {p.name for p in tail_dir(root, ORDERS.table).glob("_part=*/*.parquet")}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Epochs 1 to 3 and an attempt of each of epochs 2 and 4 that is named nowhere, all an hour old."""
    sink = DeltaSink(tmp_path, FEED)
    for epoch in (1, 2, 3):
        run_epoch(tmp_path, sink, epoch)
    for epoch in (2, 4):
        write(tmp_path, ORDERS, Part.CHANGES, f"{epoch}-lost-0", [("s/0", epoch, False, (1, "lost"))])
    for path in tail_dir(tmp_path, ORDERS.table).glob("_part=*/*.parquet"):
        age(path, 3600)
    return tmp_path


def test_lost_attempts_of_committed_epochs_go(lake: Path) -> None:
    assert clean_feed(lake, FEED, Keeping(3600, 7200)) == 0
    assert clean_feed(lake, FEED, Keeping(3600, 60)) == 1
    assert on_disk(lake) == {"1-a-0.parquet", "2-a-0.parquet", "3-a-0.parquet", "4-lost-0.parquet"}


def test_rows_that_wait_for_the_cut_of_another_feed_stay(lake: Path) -> None:
    """Its run may have been stopped for longer than an attempt lasts, and reads them when it goes on."""
    rows = pa.table({"id": [1]})
    for feed in (FEED, "another"):
        LakeStage(lake, feed).put("waits-1-0", rows)
        for path in staged_dir(lake, feed).glob("*"):
            age(path, 3600)
    assert clean_feed(lake, FEED, Keeping(3600, 60)) == 2, "the lost attempt, and rows of this feed"
    assert not list(staged_dir(lake, FEED).glob("*"))
    assert LakeStage(lake, "another").take("waits-1-0") == rows


def test_replaced_files_stay_for_the_window(lake: Path) -> None:
    carry_out(UpkeepOrder(str(lake), FEED, 1, 3600.0, cleans=False))
    assert clean_feed(lake, FEED, Keeping(3600, 60)) == 1, "the lost attempt"
    assert read(lake, "shop.orders", 1).arrow().num_rows == 1
    assert clean_feed(lake, FEED, Keeping(0, 60)) == 3
    assert on_disk(lake) == {"4-lost-0.parquet"}
    assert read(lake, "shop.orders").arrow().num_rows == 3


def test_files_stay_that_the_newest_epoch_needs(lake: Path) -> None:
    """The next epoch is applied and not committed yet, and a settle of the committed one comes behind it: so the tail
    has no version that is the committed epoch and was trimmed."""
    file = write(lake, ORDERS, Part.CHANGES, "4-a-0", [("s/0", 4, False, (4, "x"))])
    DeltaSink(lake, FEED).apply_epoch(manifest(4, (ORDERS,), delta(ORDERS, file)), 1)
    carry_out(UpkeepOrder(str(lake), FEED, 1, 3600.0, cleans=False))
    assert clean_feed(lake, FEED, Keeping(0, 60)) == 1, "the lost attempt"
    assert read(lake, "shop.orders").arrow().num_rows == 3


def test_files_of_the_epochs_table_that_never_committed(lake: Path) -> None:
    for name, seconds in (("fresh", 3600), ("lost", 7 * 3600)):
        (epochs_dir(lake) / f"{name}.parquet").write_bytes(b"half")
        age(epochs_dir(lake) / f"{name}.parquet", seconds)
    named = {Path(uri).name for uri in DeltaTable(epochs_dir(lake)).file_uris()}
    for name in named:
        age(epochs_dir(lake) / name, 7 * 3600)
    assert clean_feed(lake, FEED, Keeping(3600, 7200)) == 1
    assert {p.name for p in epochs_dir(lake).glob("*.parquet")} == named | {"fresh.parquet"}


def test_a_row_whose_file_the_cleaner_took_is_written_again(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was frozen for hours between writing the file and committing it, or its storage has another clock."""
    table, put = EpochsTable(lake, FEED), DeltaLog.put
    record = msgspec.structs.replace(manifest(4, (ORDERS,)), previous=3)

    def frozen(log: DeltaLog, on: Any, info: Any, actions: Any) -> Any:
        monkeypatch.setattr(DeltaLog, "put", put)
        for file in epochs_dir(lake).glob("*.parquet"):
            age(file, 7 * 3600)
        assert clean_feed(lake, FEED, Keeping(3600, 7200)) > 0
        return put(log, on, info, actions)

    monkeypatch.setattr(DeltaLog, "put", frozen)
    table.append(record, Commit(4, name_of(record), 1, {str(ORDERS.table): 3}), 1)
    assert [row.commit.epoch for row in EpochsTable(lake, FEED).read_all()] == [1, 2, 3, 4]


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_join_whose_file_the_cleaner_took_is_not_committed(lake: Path, *, taken_over: bool) -> None:
    upkeep = UpkeepOrder(str(lake), FEED, 1, 3600.0, cleans=False)
    carry_out(upkeep)
    plain, tail = DeltaLog(table_dir(lake, ORDERS.table)), DeltaLog(tail_dir(lake, ORDERS.table))
    order = SettleOrder(plain, tail, ORDERS, FEED, 1, 3)
    on = plain.newest()
    assert on is not None
    joined = join.prepare(plain.directory, ORDERS, on, list(on.files.values()))
    assert joined is not None
    if taken_over:
        assert plain.put(on, commit_info("WRITE", 0), [fenced(FEED, 2)]) is not None
        with pytest.raises(LeaseLost, match="written under fence 2"):
            join.commit(order, joined)
        return
    for file in table_dir(lake, ORDERS.table).glob("join-*.parquet"):
        age(file, 7 * 3600)
    assert clean_feed(lake, FEED, Keeping(3600, 7200)) == 1
    assert join.commit(order, joined) is None
    assert read(lake, "shop.orders").arrow().num_rows == 3


def test_what_others_changed_is_still_taken_back_after_the_cleaner_came(lake: Path) -> None:
    """An entry of ours on top of theirs would hide it."""
    upkeep = UpkeepOrder(str(lake), FEED, 1, 3600.0, cleans=False)
    carry_out(upkeep)
    plain = table_dir(lake, ORDERS.table)
    lost = plain / "join-lost.parquet"
    lost.write_bytes(b"half")
    age(lost, 7 * 3600)
    DeltaTable(plain).delete("id > 1")
    clean_feed(lake, FEED, Keeping(3600, 7200))
    assert lost.exists(), "the next turn takes it, after a settle"
    run_epoch(lake, DeltaSink(lake, FEED), 4)
    carry_out(upkeep)
    assert read(lake, "shop.orders").arrow().num_rows == 4
    clean_feed(lake, FEED, Keeping(3600, 7200))
    assert not lost.exists()


def test_a_table_that_cannot_be_cleaned_keeps_no_other_from_its_turn(lake: Path) -> None:
    """The other one comes first in the manifest, and its files are gone."""
    other = shape("others", {"id": INT, "sig": TEXT}, ("id",))
    sink = DeltaSink(lake, FEED)
    create_table(DeltaLog(tail_dir(lake, other.table)), delta_schema(other), [PART], FEED)
    record = manifest(
        4,
        (other, ORDERS),
        delta(other, write(lake, other, Part.CHANGES, "4-b-0", [("s/0", 4, False, (1, "x"))])),
    )
    versions = sink.apply_epoch(record, 1)
    EpochsTable(lake, FEED).append(record, Commit(4, name_of(record), 1, versions), 1)
    shutil.rmtree(tail_dir(lake, other.table) / "_delta_log")
    write(lake, other, Part.CHANGES, "4-lost-0", [("s/0", 4, False, (1, "lost"))])
    age(tail_dir(lake, other.table) / "_part=changes/4-lost-0.parquet", 3600)
    with pytest.raises(SinkError, match="others"):
        clean_feed(lake, FEED, Keeping(3600, 60))
    assert on_disk(lake) == {"1-a-0.parquet", "2-a-0.parquet", "3-a-0.parquet"}


def test_a_lake_without_epochs_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, ORDERS, Part.CHANGES, "1-a-0", [("s/0", 1, False, (1, "x"))])
    assert clean_feed(tmp_path, FEED, Keeping(0, 0)) == 0
    assert on_disk(tmp_path) == {"1-a-0.parquet"}
