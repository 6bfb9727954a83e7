"""A lake of layout 2 is read as it stands, and upgraded without a copy.

`kept/layout-2.tar.gz` was left by version 0.1.0: 40 epochs of two tables with chunks, changes and five folds, and in
`states.json` the rows of each epoch.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from catchment.api.read import read
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.model.version import LAKE_LAYOUT
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.sink.delta.tail import older
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.lakes import lake_of
from tests.layers.sink.model import FEED, ORDERS
from tests.world.delta_scan import DeltaScan
from tests.world.settled import carry_out

KEPT = Path(__file__).parent / "kept" / "layout-2.tar.gz"
TABLES = (TableId("shop", "orders"), TableId("shop", "lines"))
VALUES = {"orders": "_shard, _epoch, id, sig", "lines": "_shard, _epoch, id, note"}
EPOCHS = (34, 37, 40, None)  # folds and the cleaner took what earlier epochs need
Rows = list[tuple[Any, ...]]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The lake as it was left."""
    with tarfile.open(KEPT) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "lake"


def expected(lake: Path, table: TableId, epoch: int) -> Rows:
    states = json.loads((lake.parent / "states.json").read_text())
    return sorted(map(tuple, states[str(epoch)][table.name]))


def rows(lake: Path, table: TableId, epoch: int | None = None) -> Rows:
    return sorted(read(lake, table, epoch).duckdb().select(VALUES[table.name]).fetchall())


def plain_rows(lake: Path, table: TableId) -> Rows:
    """As a reader that knows nothing of Catchment has them."""
    with DeltaScan() as scan:
        found = scan.rows(table_dir(lake, table), VALUES[table.name].split(", "))
    return sorted(tuple(row.values()) for row in found.to_pylist())


def settled(lake: Path) -> None:
    carry_out(UpkeepOrder(str(lake), FEED, 1, 3600.0))


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_it_is_read_as_it_stands(lake: Path, table: TableId) -> None:
    assert older.is_older(lake, table)
    for epoch in EPOCHS:
        assert rows(lake, table, epoch) == expected(lake, table, epoch or 40)


def test_nothing_is_written_to_it_before(lake: Path) -> None:
    row = EpochsTable(lake, FEED).newest()
    assert row is not None
    with pytest.raises(SinkError, match="of an earlier layout; run catchment upgrade"):
        lake_of(lake).must_hold(row)


@pytest.mark.parametrize("upgraded", [1, 2])
def test_every_epoch_is_read_while_it_is_upgraded(lake: Path, upgraded: int) -> None:
    """The command may end between two tables."""
    for table in TABLES[:upgraded]:
        older.upgrade(lake, table, FEED)
    for table in TABLES:
        for epoch in EPOCHS:
            assert rows(lake, table, epoch) == expected(lake, table, epoch or 40)


def test_the_plain_table_is_the_newest_epoch(lake: Path) -> None:
    sink = lake_of(lake)
    row = EpochsTable(lake, FEED).newest()
    assert row is not None
    assert sink.older(row) == TABLES
    files = {path.stat().st_ino for path in lake.glob("shop/*/_part=base/*.parquet")}
    for table in TABLES:
        sink.upgrade(table)
    assert sink.older(row) == ()
    settled(lake)
    for table in TABLES:
        assert plain_rows(lake, table) == expected(lake, table, 40)
        for epoch in EPOCHS:
            assert rows(lake, table, epoch) == expected(lake, table, epoch or 40)
        metadata = DeltaTable(table_dir(lake, table)).metadata()
        assert metadata.configuration["catchment.layout"] == str(LAKE_LAYOUT)
    linked = {path.stat().st_ino for path in lake.glob("shop/*/*.parquet")}
    assert linked & files  # rows that were copied are not written again


def test_it_goes_on(lake: Path) -> None:
    for table in TABLES:
        older.upgrade(lake, table, FEED)
    feeder = Feeder(lake)
    feeder.epoch = 40
    feeder.put(ORDERS, (5, "later"))
    settled(lake)
    kept = [row for row in expected(lake, ORDERS.table, 40) if row[::2] != ("s/0", 5)]
    assert plain_rows(lake, ORDERS.table) == sorted([*kept, ("s/0", 41, 5, "later")])


def test_another_feeds_table_is_left(lake: Path) -> None:
    with pytest.raises(SinkError, match=f"is feed {FEED}'s, and this feed is other"):
        older.upgrade(lake, ORDERS.table, "other")
    assert older.is_older(lake, ORDERS.table)


def test_a_fold_of_the_version_before_is_waited_for(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It outlives its run, and would commit to the plain table."""
    process = tmp_path / "proc" / "4711"
    process.mkdir(parents=True)
    monkeypatch.setattr(older, "_PROCESSES", process.parent)
    order = json.dumps({"root": str(lake), "feed": FEED})
    command = ("python", "-m", "catchment.sink.delta.fold.process", order)
    (process / "cmdline").write_text("\0".join(command))
    with pytest.raises(SinkError, match=r"still works on the lake .* \(process 4711\)"):
        older.upgrade(lake, ORDERS.table, FEED)
    (process / "cmdline").write_text("\0".join(command).replace(str(lake), "/another"))
    older.upgrade(lake, ORDERS.table, FEED)
    assert not older.is_older(lake, ORDERS.table)


def test_what_stands_in_the_way_is_named(lake: Path) -> None:
    tail = tail_dir(lake, ORDERS.table)
    tail.mkdir(parents=True)
    (tail / "something").touch()
    with pytest.raises(SinkError, match=r"cannot move .*shop/orders to .*: Directory not empty"):
        older.upgrade(lake, ORDERS.table, FEED)
    assert rows(lake, ORDERS.table) == expected(lake, ORDERS.table, 40)
