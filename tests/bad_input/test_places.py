"""A lake that cannot be written, a disk that is full, a feed that is run already."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catchment.demo.server import PrivateServer
from catchment.flow.sink.epochs import EpochsTable
from catchment.model.errors import LeaseHeld, SinkError
from catchment.run.lease import hold
from catchment.run.store import Store
from tests.crash.conftest import MakeLife

DISK_BYTES = 8 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a file system of 8 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


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
    small_disk: Path,
) -> None:
    life = live(pair)
    life.load(60)
    life.lake = small_disk / "lake"
    life.describe()
    assert life.run() == 0
    life.must_be_exact()
    newest = EpochsTable(life.lake, "life").newest()
    ballast = small_disk / "ballast"
    free = _fill(ballast)
    life.touch(1)
    capfd.readouterr()
    assert life.run() == SinkError.exit_code, f"{free} bytes were free"
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1, said
    assert str(life.lake) in said[0]
    ballast.unlink()
    life.touch(2)
    assert life.run() == 0, capfd.readouterr().err
    life.must_be_exact()
    after = EpochsTable(life.lake, "life").newest()
    assert newest is not None
    assert after is not None
    assert after.manifest.epoch > newest.manifest.epoch


def _fill(file: Path, leave: int = 24 << 10) -> int:
    """Write until the disk is full, then give back `leave` bytes; how many were written."""
    written = 0
    with file.open("wb", buffering=0) as ballast:
        try:
            while True:
                written += ballast.write(b"\1" * 4096)
        except OSError:
            ballast.truncate(max(written - leave, 0))
    return written


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
