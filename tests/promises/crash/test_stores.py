"""With a state store that is lost or too old the run goes on exactly; with too old a lake it refuses."""

import json
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError, SinkRestored
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life

# More tables than the sink has threads: when one is committed, others have not begun.
TABLES = 12


class Crash(BaseException):
    """Ends a run in this process as a kill does: nobody handles it."""


def run_until(life: Life, place: Fault, count: int) -> None:
    """Run in this process and break off at the n-th pass of a place."""
    left = [count]

    def inject(at: Fault) -> None:
        if at is place:
            left[0] -= 1
            if left[0] == 0:
                raise Crash

    with pytest.raises(Crash):
        run_feed(
            life.feed,
            until_caught_up=True,
            stop=threading.Event(),
            fault=inject,
        )


def newest(life: Life) -> int:
    """The newest epoch of the lake."""
    row = EpochsTable(life.lake, "life").newest()
    assert row is not None
    return row.manifest.epoch


def status_epoch(life: Life, capfd: pytest.CaptureFixture[str]) -> str:
    """The newest committed epoch as `catchment status` has it."""
    capfd.readouterr()
    assert execute(["status", str(life.file), "--json"]) == 0
    epoch: str = json.loads(capfd.readouterr().out)["epoch_text"]
    return epoch


@pytest.mark.promise("a state store that is lost or older than the lake is rebuilt from the lake")
def test_a_state_store_that_was_lost_or_restored_is_rebuilt_from_the_lake(
    pair: dict[str, PrivateServer], live: MakeLife, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also behind runs that were killed, and to just the epoch of the lake in front of one that was half applied."""
    life = live(pair, count=TABLES)
    life.load(40)
    older = tmp_path / "older.db"
    run_until(life, Fault.AFTER_MANIFEST, 2)
    shutil.copy(life.state, older)
    life.touch(0)
    run_until(life, Fault.BETWEEN_APPLIES, 8)
    life.state.unlink()
    life.touch(1)
    run_until(life, Fault.AFTER_EPOCH_ROW, 1)
    shutil.copy(older, life.state)
    life.touch(2)
    assert life.run() == 0
    life.must_be_exact()
    row = EpochsTable(life.lake, "life").newest()
    for restored in (False, True):  # at rest, where no new epoch comes
        life.state.unlink()
        if restored:
            shutil.copy(older, life.state)
        for _ in range(2):  # the second run finds what the first one put there
            assert life.run() == 0
            assert status_epoch(life, capfd) == epoch_text(newest(life))
        assert EpochsTable(life.lake, "life").newest() == row
    life.touch(3)
    run_until(life, Fault.BETWEEN_APPLIES, 5)
    with closing(sqlite3.connect(life.state)) as store:
        gone = store.execute(
            "DELETE FROM catchment_record WHERE kind <> 'plan' AND epoch > ?", (newest(life),)
        )
        assert gone.rowcount == 1, "the manifest of the epoch that was being applied"
        store.commit()
    life.touch(4)
    assert life.run() == 0
    life.must_be_exact()


@pytest.mark.promise(
    "when the state store and _catchment are both lost, the run refuses until one is put back"
)
def test_store_and_epochs_table_lost_and_the_latter_put_back(
    pair: dict[str, PrivateServer], live: MakeLife, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also after a run that was refused in between."""
    life = live(pair)
    life.load(20)
    assert life.run() == 0
    shutil.move(life.lake / "_catchment", tmp_path / "kept")
    life.state.unlink()
    life.touch(1)
    assert life.run() == SinkError.exit_code
    assert "put those back" in capfd.readouterr().err
    shutil.rmtree(life.lake / "_catchment")
    shutil.move(tmp_path / "kept", life.lake / "_catchment")
    assert life.run() == 0
    life.must_be_exact()


@pytest.mark.promise("a lake or table restored from an older copy is refused")
def test_an_older_copy_of_a_table_or_of_the_lake_is_refused(
    pair: dict[str, PrivateServer], live: MakeLife, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    life = live(pair)
    life.load(40)
    run_until(life, Fault.AFTER_EPOCH_ROW, 2)
    older = tmp_path / "older"
    shutil.copytree(life.lake, older)
    life.touch(1)
    assert life.run() == 0
    epoch = newest(life)
    table = min(path.parent for path in life.lake.glob("[!_]*/*/_delta_log"))
    table.rename(tmp_path / "newer")
    shutil.copytree(older / table.relative_to(life.lake), table)
    life.touch(2)
    capfd.readouterr()
    for _ in range(2):  # nor does a refused run make it look newer
        assert life.run() == SinkRestored.exit_code
        assert "an older copy of it was put back" in capfd.readouterr().err
    assert newest(life) == epoch
    shutil.rmtree(table)
    (tmp_path / "newer").rename(table)
    assert life.run() == 0
    life.must_be_exact()
    shutil.rmtree(life.lake)
    shutil.copytree(older, life.lake)
    epoch = newest(life)
    capfd.readouterr()
    assert life.run() == SinkRestored.exit_code
    assert "restored" in capfd.readouterr().err
    assert newest(life) == epoch
    life.state.unlink()
    life.touch(3)
    assert life.run() == 0
    life.must_be_exact()
    shutil.rmtree(life.lake)
    assert life.run() == SinkRestored.exit_code
    assert not life.lake.exists()
