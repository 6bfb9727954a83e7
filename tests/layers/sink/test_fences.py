"""A runner that has lost the lease writes nothing more to a lake, and a part of a lake that was put back is told."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from catchment.model.epoch import Part
from catchment.model.errors import LeaseLost, SinkRestored
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.settle import SettleOrder, settle
from catchment.sink.delta.plain.trim import trim
from catchment.sink.delta.upkeep.erase import erase
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.erasure import Erasure
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.lakes import lake_of
from tests.layers.sink.model import FEED, ORDERS, delta, write
from tests.world.settled import carry_out

OLD, NEW = 1, 2


def upkeep(root: Path, fence: int) -> UpkeepOrder:
    return UpkeepOrder(str(root), FEED, fence, 3600.0)


def logs(root: Path) -> tuple[DeltaLog, DeltaLog]:
    return DeltaLog(table_dir(root, ORDERS.table)), DeltaLog(tail_dir(root, ORDERS.table))


def late(root: Path, until: int) -> SettleOrder:
    """What the old runner was about to do when it froze."""
    return SettleOrder(*logs(root), ORDERS, FEED, OLD, until)


def settles(root: Path) -> None:
    settle(late(root, 2), lambda epoch: ORDERS)


def trims(root: Path) -> None:
    trim(late(root, 2), 1)


def erases(root: Path) -> None:
    erase(upkeep(root, OLD), Erasure(ORDERS.table, pa.table({"id": pa.array([3], pa.int64())})))


def applies(root: Path) -> None:
    file = write(root, ORDERS, Part.CHANGES, "3-a-0", [("s/0", 3, False, (9, "late"))])
    Feeder(root).sink.apply(delta(ORDERS, file), 3, OLD)


@pytest.mark.parametrize("writes", [settles, trims, erases, applies])
def test_who_has_lost_the_lease_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: Callable[[Path], None]
) -> None:
    """The new runner has taken over the tail and has settled once. The old one goes on behind its last look."""
    feeder = Feeder(tmp_path)
    feeder.put(ORDERS, (1, "a"), (3, "gone"), part=Part.BASE)
    feeder.put(ORDERS, (3, None), deleted=True)
    carry_out(upkeep(tmp_path, OLD))
    feeder.sink.take_over((ORDERS,), NEW)
    plain, tail = logs(tmp_path)
    if writes is not applies:
        carry_out(upkeep(tmp_path, NEW))
        assert settle(SettleOrder(plain, tail, ORDERS, FEED, NEW, 2), lambda epoch: ORDERS) is None
        on = plain.newest()
        assert on is not None
        file = write(tmp_path, ORDERS, Part.CHANGES, "3-b-0", [("s/0", 3, False, (4, "new"))])
        feeder.sink.apply(delta(ORDERS, file), 3, NEW)
        assert settle(SettleOrder(plain, tail, ORDERS, FEED, NEW, 3), lambda epoch: ORDERS) is not None
    monkeypatch.setattr(Keeper, "carry_out", lambda keeper, order, newest=None: None)
    before = [log.newest() for log in logs(tmp_path)]
    with pytest.raises(LeaseLost, match=f"fence {NEW}"):
        writes(tmp_path)
    assert [log.newest() for log in logs(tmp_path)] == before


def test_an_older_copy_of_a_plain_table_is_told_by_what_its_tail_has_lost(tmp_path: Path) -> None:
    """Rows that were settled and trimmed since are in neither."""
    feeder, root = Feeder(tmp_path / "lake"), tmp_path / "lake"
    feeder.put(ORDERS, (1, "a"), part=Part.BASE)
    carry_out(upkeep(root, OLD))
    place = table_dir(root, ORDERS.table)
    shutil.copytree(place, tmp_path / "copy")
    feeder.put(ORDERS, (2, "b"))
    carry_out(upkeep(root, OLD))
    row = EpochsTable(root, FEED).newest()
    assert row is not None
    lake_of(root).must_hold(row)
    shutil.rmtree(place)
    (tmp_path / "copy").rename(place)
    with pytest.raises(SinkRestored, match="what was settled since is missing"):
        lake_of(root).must_hold(row)
