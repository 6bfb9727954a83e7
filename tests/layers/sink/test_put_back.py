"""Parts of a lake that were put back from a copy, while a program has it open or before a run begins."""

import shutil
from pathlib import Path

import pytest

from catchment.api.read import read
from catchment.model.epoch import EpochRow, Part
from catchment.model.errors import SinkError
from catchment.sink.delta.layout import delta_schema, epochs_dir, table_dir, tail_of
from catchment.sink.delta.log.commit import create_table, fenced
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.lakes import lake_of
from tests.layers.sink.model import FEED, ORDERS
from tests.world.settled import carry_out


def _settle(feeder: Feeder) -> None:
    carry_out(UpkeepOrder(str(feeder.root), FEED, 1, 3600.0))


@pytest.fixture
def feeder(tmp_path: Path) -> Feeder:
    """Three epochs; the directory `copy` has the epochs table as of the second. The plain table is the first."""
    feeder = Feeder(tmp_path / "lake")
    feeder.put(ORDERS, (1, "one"), part=Part.BASE)
    _settle(feeder)
    feeder.put(ORDERS, (2, "two"))
    shutil.copytree(epochs_dir(feeder.root), tmp_path / "copy")
    feeder.put(ORDERS, (3, "three"))
    return feeder


def _put_back_epochs(feeder: Feeder) -> EpochRow:
    shutil.rmtree(epochs_dir(feeder.root))
    shutil.copytree(feeder.root.parent / "copy", epochs_dir(feeder.root))
    row = lake_of(feeder.root).newest()
    assert row is not None
    assert row.commit.epoch == 2
    return row


def _ids(feeder: Feeder) -> list[int]:
    return sorted(key for (key,) in read(feeder.root, ORDERS.table).duckdb().select("id").fetchall())


@pytest.mark.parametrize("applies", [None, 3])
def test_tables_that_were_settled_later_are_taken_back_whole(feeder: Feeder, applies: int | None) -> None:
    """The tail was trimmed up to an epoch that is lost; then it says again up to where it is trimmed now. `applies`:
    the store still has that epoch, so it is applied once more, though the tail carried it."""
    _settle(feeder)
    row = _put_back_epochs(feeder)
    sink = lake_of(feeder.root)
    sink.must_hold(row)
    assert _ids(feeder) == [1, 2]
    assert sink.restore(row, 1, applies) == 3
    sink.must_hold(row)
    assert _ids(feeder) == [1, 2]
    feeder.epoch = 3
    feeder.put(ORDERS, (4, "four"))
    _settle(feeder)
    assert _ids(feeder) == [1, 2, 4]


def test_a_reader_says_that_an_older_copy_of_a_table_was_put_back(feeder: Feeder) -> None:
    plain = table_dir(feeder.root, ORDERS.table)
    _settle(feeder)
    shutil.copytree(plain, feeder.root.parent / "older")
    feeder.put(ORDERS, (4, "four"))
    _settle(feeder)
    shutil.rmtree(plain)
    shutil.copytree(feeder.root.parent / "older", plain)
    with pytest.raises(SinkError, match=r"is epoch .*3, but it had epoch .*4 before"):
        read(feeder.root, ORDERS.table)


def test_nothing_is_committed_on_a_version_that_another_copy_has(feeder: Feeder) -> None:
    """As many versions, but others: what is remembered of the log must be read again."""
    directory = tail_of(feeder.root, ORDERS)
    open_log = DeltaLog(directory)
    known = open_log.newest()
    assert known is not None
    ours = feeder.root.parent / "another"
    shutil.copytree(directory, ours)
    (ours / "_delta_log" / f"{known.version:020d}.json").unlink()
    other = DeltaLog(ours)
    on = other.newest()
    assert on is not None
    assert other.put(on, {"operation": "WRITE"}, [fenced("another", 7)]) is not None
    shutil.rmtree(directory)
    shutil.copytree(ours, directory)
    found = open_log.newest()
    assert found is not None
    assert found.version == known.version
    assert found.transactions == DeltaLog(directory).newest().transactions  # type: ignore[union-attr]


def test_a_table_that_is_put_back_after_its_own_commit_is_read_again(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "table")
    create_table(log, delta_schema(ORDERS), [])
    shutil.rmtree(tmp_path / "table")
    create_table(DeltaLog(tmp_path / "table"), delta_schema(ORDERS), [])
    found, now = log.newest(), DeltaLog(tmp_path / "table").newest()
    assert found is not None
    assert now is not None
    assert found.metadata == now.metadata
