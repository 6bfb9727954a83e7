"""When a run starts folds, also at rest; one that fails is told of and started less and less often."""

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
import pytest
from msgspec.structs import replace

from catchment.model.epoch import Commit, Manifest, Part
from catchment.sink.delta.apply import DeltaSink
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.fold import process, turns
from catchment.sink.delta.fold.due import FoldLimits
from catchment.sink.delta.fold.process import FoldOrder
from catchment.sink.delta.fold.turns import Folding
from catchment.state.faults import VARIABLE
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, write
from tests.world.patience import PATIENCE_SECONDS
from tests.world.records import name_of
from tests.world.worlds import SetClocks, put

Start = Callable[[FoldOrder, IO[bytes]], "subprocess.Popen[bytes]"]


class Time(SetClocks):
    """The steady time, which the test sets; processes take none of it."""

    now = 1000.0

    def steady_seconds(self) -> float:
        """As set."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    put(monkeypatch, clock)
    return clock


def recorded(monkeypatch: pytest.MonkeyPatch, start: Start) -> list[int]:
    """Let folds be started by `start` and be over at once; their exit codes."""
    codes: list[int] = []

    def start_and_wait(order: FoldOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        process = start(order, said)
        codes.append(process.wait())
        return process

    monkeypatch.setattr(turns, "start", start_and_wait)
    return codes


def killed(order: FoldOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process.send_signal(signal.SIGKILL)
    return process


def run_epoch(root: Path, epoch: int, part: Part, count: int) -> Manifest:
    rows = [("s/0", epoch, False, (key, "x")) for key in range(count)]
    record = manifest(epoch, (ORDERS,), delta(ORDERS, write(root, ORDERS, part, f"{epoch}-a", rows)))
    versions = DeltaSink(root, FEED).apply_epoch(record, 1)
    EpochsTable(root, FEED).append(record, Commit(epoch, name_of(record), 0, versions), 1)
    return record


def test_a_fold_process_that_is_killed_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: Time
) -> None:
    codes = recorded(monkeypatch, killed)
    watch = Folding(FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), 3600), ())
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, 1))
    for _ in range(200):
        watch.turn()
        clock.now += 1.0
    assert 4 <= len(codes) <= 6, "after 5, 10, 20, 40, 80 seconds"
    assert "exit code -9 (killed: is memory short?)" in caplog.text
    assert "80 s at the earliest" in caplog.text


def test_changes_of_a_burst_are_folded_at_rest_when_they_are_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    # By the files' own time, which the process looks at, the changes are new.
    codes = recorded(monkeypatch, lambda order, said: process.start(replace(order, all_tables=True), said))
    base = run_epoch(tmp_path, 1, Part.BASE, 100)
    watch = Folding(FoldOrder(str(tmp_path), FEED, 1, FoldLimits(age_s=600), 3600), base.shapes)
    watch.turn()
    clock.now += 700
    watch.count(run_epoch(tmp_path, 2, Part.CHANGES, 2))
    for age in (0, 300, 590):
        clock.now = 1700.0 + age
        watch.turn()
        assert (codes, watch.unfolded()) == ([], {ORDERS.table: 0.02})
    for age in (610, 611):
        clock.now = 1700.0 + age
        watch.turn()
    assert (codes, watch.unfolded()) == ([0], {ORDERS.table: 0.0})


def test_the_cleaner_runs_at_rest_when_what_was_replaced_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch, process.start)
    run_epoch(tmp_path, 1, Part.BASE, 100)
    shapes = run_epoch(tmp_path, 2, Part.CHANGES, 50).shapes
    watch = Folding(FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), 5400), shapes)
    for now, processes in ((0, 1), (1, 1), (7200, 1), (7202, 2), (7203, 2), (14_000, 2), (14_404, 3)):
        clock.now = 1000.0 + now
        watch.turn()
        assert len(codes) == processes, now
    assert set(codes) == {0}


@pytest.mark.parametrize(
    ("rows", "seconds"), [(1, turns.FEW_SECONDS_MIN), (turns.FEW_ROWS, turns.START_SECONDS_MIN)]
)
def test_how_soon_the_next_fold_starts(
    rows: int, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    """Few changes of a small table are soon read, a process takes long to start."""
    starts: list[float] = []

    def start(order: FoldOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        starts.append(clock.now)
        return subprocess.Popen([sys.executable, "-c", ""])

    recorded(monkeypatch, start)
    watch = Folding(FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), 3600), ())
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, rows))
    for _ in range(int(3 * turns.FEW_SECONDS_MIN)):
        watch.turn()
        clock.now += 1.0
    assert {later - before for before, later in itertools.pairwise(starts)} == {seconds}


@pytest.mark.parametrize("hurry", [True, False])
def test_the_end_of_a_run_waits_for_no_fold(
    hurry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    """It goes on by itself, unless the run was told to stop."""
    started: list[subprocess.Popen[bytes]] = []

    def start(order: FoldOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr(turns, "start", start)
    watch = Folding(FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), 3600), ())
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, turns.FEW_ROWS))
    watch.turn()
    watch.stop(hurry=hurry)
    with started[0] as fold:
        assert (fold.poll() is None) is not hurry
        assert not watch.running
        fold.communicate(b"\n")
    assert fold.returncode == (-signal.SIGKILL if hurry else 0)


def test_what_a_fold_says_is_told_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: Time
) -> None:
    recorded(monkeypatch, process.start)
    record = run_epoch(tmp_path, 1, Part.CHANGES, turns.FEW_ROWS)
    watch = Folding(FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), 3600), ())
    watch.count(record)
    (file,) = record.deltas[0].files
    (tmp_path / "shop" / "orders" / file.path).write_bytes(b"no Parquet")
    watch.turn()
    watch.turn()
    assert re.search(
        r"the fold process ended with exit code 5: .*orders.*; changes wait in the lake", caplog.text
    )


OUTLIVED = """
import sys, tempfile, msgspec
from catchment.sink.delta.fold.process import FoldOrder, start
print(start(msgspec.json.decode(sys.argv[1], type=FoldOrder), tempfile.TemporaryFile()).pid)
"""


def test_who_reads_the_output_of_a_command_does_not_wait_for_the_fold_that_outlives_it(
    tmp_path: Path,
) -> None:
    run_epoch(tmp_path, 1, Part.CHANGES, 1)
    order = FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), 3600, all_tables=True)
    done = subprocess.run(
        [sys.executable, "-c", OUTLIVED, msgspec.json.encode(order).decode()],
        env={**os.environ, VARIABLE: "during-fold:1:freeze"},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    fold = int(done.stdout)
    assert done.stderr == b""
    assert Path(f"/proc/{fold}/stat").exists(), "it still runs"
    os.kill(fold, signal.SIGKILL)
