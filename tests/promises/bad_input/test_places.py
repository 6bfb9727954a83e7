"""A lake that cannot be written, a disk that is full, a feed that is run already."""

import os
from pathlib import Path

import pytest
import yaml
from pyspark import SparkContext

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.engine import context
from catchment.model.errors import LeaseHeld, SinkError, StateError
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.promises.crash.conftest import MakeLife
from tests.world.disks import small_disk
from tests.world.log_lines import troubles

DISK_BYTES = 8 << 20
BEFORE_AN_EPOCH_BYTES = 40 << 10


def test_a_lake_that_cannot_be_written(
    pair: dict[str, PrivateServer], live: MakeLife, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    life = live(pair)
    (tmp_path / "file").write_text("no directory")
    life.describe(sink={"path": str(tmp_path / "file" / "lake")})
    capfd.readouterr()
    assert life.run() == SinkError.exit_code
    said = troubles(capfd.readouterr().err)
    assert len(said) == 1
    assert str(tmp_path / "file") in said[0]


# What each command says of the lake of a feed that has run: its exit code and words of its one line.
_GONE = {
    "run": (5, "it was removed"),
    "verify": (5, "holds no epoch, and the state store has committed some"),
    "settle": (5, "holds no epoch"),
    "views": (5, "{} holds no epoch; run the feed first, correct sink.path, or mount the lake"),
}
_CANNOT_BE = dict.fromkeys(("run", "verify", "settle", "views"), (5, "File name too long"))
_READ_ONLY = dict.fromkeys(("run", "verify", "settle"), (5, "Read-only file system"))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("absent/lake", _GONE),
        ("file", _GONE),
        ("file/lake", _GONE),
        ("x" * 300, _CANNOT_BE),
        ("disk", _READ_ONLY),
    ],
    ids=["absent", "a file", "below a file", "too long a name", "read-only"],
)
def test_every_command_when_the_lake_of_a_feed_cannot_be_used(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    where: str,
    expected: dict[str, tuple[int, str]],
) -> None:
    life = live(pair, count=1)
    life.load(100)
    (tmp_path / "file").write_text("no directory")
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        life.move_lake(disk.path)
        assert life.run() == 0
        life.touch(1)
        assert life.run() == 0
        abandoned = next(disk.path.rglob("_part=changes")) / "1-abandoned.parquet"
        abandoned.touch()
        os.utime(abandoned, (0, 0))
        disk.make_read_only()
        path = tmp_path / where
        life.describe(sink={"path": str(path)}, engine="spark")
        before = sorted(tmp_path.iterdir())
        for command, (code, words) in expected.items():
            capfd.readouterr()
            assert execute([command, str(life.file)]) == code, capfd.readouterr().err
            said = troubles(capfd.readouterr().err)
            assert len(said) == 1, said
            assert words.format(path) in said[0]
        assert execute(["status", str(life.file)]) == 0
        assert sorted(tmp_path.iterdir()) == before


def test_verify_of_a_feed_that_never_ran_starts_nothing(
    pair: dict[str, PrivateServer],
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = live(pair, count=1)
    monkeypatch.setattr(context, "context", lambda *settings: pytest.fail("Java was started"))
    assert execute(["verify", str(life.file)]) == StateError.exit_code
    (said,) = troubles(capfd.readouterr().err)
    assert said == f"catchment: there is no state store at {life.state}: the feed has not run yet"
    Store.open(life.feed.state.get_secret_value(), "life").close()
    assert execute(["verify", str(life.file)]) == StateError.exit_code
    (said,) = troubles(capfd.readouterr().err)
    assert said == f"catchment: feed life has not committed an epoch to {life.lake} yet: run it first"
    assert execute(["views", str(life.file)]) == SinkError.exit_code
    (said,) = troubles(capfd.readouterr().err)
    assert said.startswith(f"catchment: feed life: the lake {life.lake} holds no epoch; run the feed first")
    assert not life.lake.exists()


@pytest.mark.parametrize(
    "shards", [["-80", "8-"], ["-80"], ["-80", "80-", "90-"]], ids=["renamed", "taken", "added"]
)
@pytest.mark.parametrize("command", ["run", "verify"])
def test_other_shards_than_those_of_the_lake(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
    command: str,
    shards: list[str],
) -> None:
    life = live(pair, count=1)
    life.load(5)
    assert life.run() == 0
    described = yaml.safe_load(life.file.read_text())
    first = described["source"]["shards"][0]
    places = [pair["-80"].port, pair["80-"].port, 1]
    described["source"]["shards"] = [
        {**first, "name": name, "port": port} for name, port in zip(shards, places, strict=False)
    ]
    life.file.write_text(yaml.safe_dump(described))
    capfd.readouterr()
    assert execute([command, str(life.file)]) == SinkError.exit_code
    (said,) = troubles(capfd.readouterr().err)
    assert f"the feed file names the shards {', '.join(sorted(shards))}, the lake holds -80, 80-;" in said


@pytest.mark.promise(
    "when the lake cannot be written, the run ends with exit code 5 and the next run resumes"
)
def test_a_disk_that_fills_up_in_an_epoch(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    life = live(pair)
    life.load(60)
    life.move_lake(tmp_path / "disk" / "lake")
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        assert life.run() == 0
        newest = EpochsTable(life.lake, "life").newest()
        life.touch(1)
        ballast = disk.path / "ballast"
        _fill(ballast)
        capfd.readouterr()
        assert life.run() == SinkError.exit_code, f"{disk.free} bytes are free"
        said = troubles(capfd.readouterr().err)
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


@pytest.mark.promise("a second runner of a feed is refused with exit code 6")
def test_a_feed_that_is_run_already(
    pair: dict[str, PrivateServer], live: MakeLife, capfd: pytest.CaptureFixture[str]
) -> None:
    life = live(pair)
    store = Store.open(life.feed.state.get_secret_value(), "life")
    with hold(store):
        capfd.readouterr()
        assert life.run() == LeaseHeld.exit_code
    said = troubles(capfd.readouterr().err)
    assert len(said) == 1
    assert "is run by process" in said[0]
