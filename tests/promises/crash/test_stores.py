"""With a state store that is lost or too old the run goes on exactly; with too old a lake it refuses.

Before a test puts files of the lake elsewhere it waits for settles, which outlive their runs.
"""

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.model.errors import SinkError, SinkRestored
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life


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


def test_a_state_store_that_was_lost_or_restored_is_rebuilt_from_the_lake(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, tmp_path: Path
) -> None:
    life = live(pair, count=12)
    life.load(60)
    older = tmp_path / "older.db"
    # The first run has several epochs, a later one at least that of what was touched.
    places = (Fault.AFTER_MANIFEST, 2), (Fault.BETWEEN_APPLIES, 8), (Fault.AFTER_EPOCH_ROW, 1)
    for step, (place, count) in enumerate(places):
        run_until(life, place, count)
        if step == 0:
            shutil.copy(life.state, older)
        life.touch(step)
        if step == 1:
            life.state.unlink()
    shutil.copy(older, life.state)
    life.touch(10)
    assert life.run() == 0
    life.must_be_exact()
    life.state.unlink()
    life.touch(11)
    assert life.run() == 0
    life.must_be_exact()


def test_store_and_epochs_table_lost_and_the_latter_put_back(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Also after a run that was refused in between."""
    life = live(pair)
    life.load(20)
    assert life.run() == 0
    life.await_settles()
    shutil.move(life.lake / "_catchment", tmp_path / "kept")
    life.state.unlink()
    life.touch(1)
    assert life.run() == SinkError.exit_code
    assert "put those back" in capfd.readouterr().err
    life.await_settles()
    shutil.rmtree(life.lake / "_catchment")
    shutil.move(tmp_path / "kept", life.lake / "_catchment")
    assert life.run() == 0
    life.must_be_exact()


def test_a_lake_that_was_restored_is_refused_until_the_store_is_gone(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    life = live(pair)
    life.load(60)
    run_until(life, Fault.AFTER_EPOCH_ROW, 2)
    older = tmp_path / "older"
    life.await_settles()
    shutil.copytree(life.lake, older)
    life.touch(1)
    assert life.run() == 0
    life.await_settles()
    shutil.rmtree(life.lake)
    shutil.copytree(older, life.lake)
    epoch = newest(life)
    capfd.readouterr()
    assert life.run() == SinkRestored.exit_code
    assert "restored" in capfd.readouterr().err
    assert newest(life) == epoch
    life.state.unlink()
    life.touch(2)
    assert life.run() == 0
    life.must_be_exact()
    life.await_settles()
    shutil.rmtree(life.lake)
    assert life.run() == SinkRestored.exit_code
    assert not life.lake.exists()


def test_a_table_of_which_an_older_copy_was_put_back_is_refused(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    life = live(pair)
    life.load(60)
    run_until(life, Fault.AFTER_EPOCH_ROW, 2)
    table = min(path.parent for path in life.lake.glob("[!_]*/*/_delta_log"))
    life.await_settles()
    older, newer = tmp_path / "older", tmp_path / "newer"
    shutil.copytree(table, older)
    life.touch(1)
    assert life.run() == 0
    epoch = newest(life)
    life.await_settles()
    table.rename(newer)
    shutil.copytree(older, table)
    life.touch(2)
    capfd.readouterr()
    for _ in range(2):  # nor does a refused run make it look newer
        assert life.run() == SinkRestored.exit_code
        assert "an older copy of it was put back" in capfd.readouterr().err
    assert newest(life) == epoch
    life.await_settles()
    shutil.rmtree(table)
    newer.rename(table)
    assert life.run() == 0
    life.must_be_exact()


def test_a_store_restored_to_just_the_lakes_epoch_takes_back_what_was_applied_after_it(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife
) -> None:
    life = live(pair, count=12)
    life.load(60)
    run_until(life, Fault.BETWEEN_APPLIES, 20)
    epoch = newest(life)
    with closing(sqlite3.connect(life.state)) as store:
        gone = store.execute("DELETE FROM catchment_record WHERE kind <> 'plan' AND epoch > ?", (epoch,))
        assert gone.rowcount == 1, "the manifest of the epoch that was being applied"
        store.commit()
    life.touch(1)
    assert life.run() == 0
    life.must_be_exact()
