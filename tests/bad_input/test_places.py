"""A lake that cannot be written, a disk that is full, a feed that is run already."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catchment.demo.server import PrivateServer
from catchment.flow.sink.epochs import EpochsTable
from catchment.model.errors import LeaseHeld, SinkError
from catchment.run.lease import hold
from catchment.run.store import Store
from tests.crash.conftest import MakeLife
from tests.disks import small_disk

DISK_BYTES = 8 << 20
BEFORE_AN_EPOCH_BYTES = 48 << 10


def test_a_lake_that_cannot_be_written(
    pair: dict[str, PrivateServer], live: MakeLife, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    life = live(pair)
    (tmp_path / "file").write_text("no directory")
    life.describe(sink={"path": str(tmp_path / "file" / "lake")})
    capfd.readouterr()
    assert life.run() == SinkError.exit_code
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert str(tmp_path / "file") in said[0]


def test_a_disk_that_fills_up_in_an_epoch(
    pair: dict[str, PrivateServer],
    spark: SparkSession,
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    life = live(pair)
    life.load(60)
    life.lake = tmp_path / "disk" / "lake"
    life.describe()
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        assert life.run() == 0
        newest = EpochsTable(life.lake, "life").newest()
        life.touch(1)
        ballast = disk.path / "ballast"
        _fill(ballast)
        capfd.readouterr()
        assert life.run() == SinkError.exit_code, f"{disk.free} bytes are free"
        said = capfd.readouterr().err.splitlines()
        assert len(said) == 1, said
        assert str(life.lake) in said[0]
        assert EpochsTable(life.lake, "life").newest() == newest
        ballast.unlink()
        life.touch(2)
        assert life.run() == 0, capfd.readouterr().err
        life.must_be_exact()


def _fill(file: Path) -> None:
    """Write until the disk is full, then give back what a run needs before its first epoch."""
    written = 0
    with file.open("wb", buffering=0) as ballast:
        try:
            while True:
                written += ballast.write(bytes(4096))
        except OSError:
            ballast.truncate(written - BEFORE_AN_EPOCH_BYTES)


def test_a_feed_that_is_run_already(
    pair: dict[str, PrivateServer], live: MakeLife, capfd: pytest.CaptureFixture[str]
) -> None:
    life = live(pair)
    store = Store.open(life.feed.state.get_secret_value(), "life")
    with hold(store):
        capfd.readouterr()
        assert life.run() == LeaseHeld.exit_code
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert "is run by process" in said[0]
