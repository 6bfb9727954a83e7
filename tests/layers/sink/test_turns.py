"""When a run settles, also at rest; what fails is told, and tried less and less often."""

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

from catchment.model.epoch import Commit, Manifest, Part
from catchment.sink.delta.apply import DeltaSink
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.sink.delta.plain.log import PlainLog
from catchment.sink.delta.upkeep import process, turns
from catchment.sink.delta.upkeep.process import UpkeepOrder
from catchment.sink.delta.upkeep.turns import LakeUpkeep
from catchment.state.faults import VARIABLE
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, write
from tests.world.patience import PATIENCE_SECONDS
from tests.world.records import name_of
from tests.world.worlds import SetClocks, put

Start = Callable[[UpkeepOrder, IO[bytes]], "subprocess.Popen[bytes]"]


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
    """Let processes be started by `start` and be over at once; their exit codes."""
    codes: list[int] = []

    def start_and_wait(order: UpkeepOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        process = start(order, said)
        codes.append(process.wait())
        return process

    monkeypatch.setattr(turns, "start", start_and_wait)
    return codes


def killed(order: UpkeepOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process.send_signal(signal.SIGKILL)
    return process


def run_epoch(root: Path, epoch: int, part: Part, count: int) -> Manifest:
    rows = [("s/0", epoch, False, (key, "x")) for key in range(count)]
    record = manifest(epoch, (ORDERS,), delta(ORDERS, write(root, ORDERS, part, f"{epoch}-a", rows)))
    versions = DeltaSink(root, FEED).apply_epoch(record, 1)
    EpochsTable(root, FEED).append(record, Commit(epoch, name_of(record), 0, versions), 1)
    return record


def upkeep_of(root: Path, seconds: float = 10.0, keep_seconds: float = 3600.0) -> LakeUpkeep:
    return LakeUpkeep(UpkeepOrder(str(root), FEED, 1, keep_seconds), seconds)


def test_a_process_that_is_killed_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: Time
) -> None:
    codes = recorded(monkeypatch, killed)
    watch = upkeep_of(tmp_path)
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, 1))
    for _ in range(200):
        watch.turn()
        clock.now += 1.0
    assert 4 <= len(codes) <= 6, "after 10, 10, 20, 40, 80 seconds"
    assert "exit code -9 (killed: is memory short?)" in caplog.text
    assert "try is in 80 s" in caplog.text
    assert watch.waiting() == {ORDERS.table: 1}


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_changes_are_settled_in_time_and_nothing_is_started_at_rest(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch, process.start)
    watch = upkeep_of(tmp_path, seconds)
    began = clock.now
    watch.count(run_epoch(tmp_path, 1, Part.BASE, 100))
    watch.count(run_epoch(tmp_path, 2, Part.CHANGES, 2))
    while not codes:
        assert watch.waiting() == {ORDERS.table: 102}
        watch.turn()
        clock.now += 1.0
    assert clock.now - began == seconds + 1
    for _ in range(60):
        watch.turn()
        clock.now += 1.0
    assert (codes, watch.waiting()) == ([0], {})
    plain = PlainLog(table_dir(tmp_path, ORDERS.table)).newest()
    assert plain is not None
    assert sum(file.live for file in plain.files.values()) == 100


def test_what_the_run_before_left_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch, process.start)
    run_epoch(tmp_path, 1, Part.BASE, 100)
    watch = upkeep_of(tmp_path)
    clock.now += 11.0
    watch.turn()
    assert codes == [0]
    assert PlainLog(table_dir(tmp_path, ORDERS.table)).newest() is not None


def test_the_cleaner_runs_at_rest_when_what_was_replaced_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch, process.start)
    run_epoch(tmp_path, 1, Part.BASE, 100)
    watch = upkeep_of(tmp_path, keep_seconds=5400.0)
    for now, processes in ((11, 1), (12, 1), (7200, 1), (7213, 2), (7214, 2), (14_000, 2), (14_420, 3)):
        clock.now = 1000.0 + now
        watch.turn()
        watch.turn()
        assert len(codes) == processes, now
    assert set(codes) == {0}


@pytest.mark.parametrize("hurry", [True, False])
def test_the_end_of_a_run_settles(
    hurry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch, process.start)
    watch = upkeep_of(tmp_path)
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, 3))
    watch.stop(hurry=hurry)
    assert (codes, watch.running, watch.waiting()) == ([0], False, {})


def test_a_settle_that_takes_long_does_not_keep_a_run_that_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(order: UpkeepOrder, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        return started[-1]

    monkeypatch.setattr(turns, "start", start)
    monkeypatch.setattr(turns, "HURRY_SECONDS", 0.2)
    watch = upkeep_of(tmp_path)
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, 3))
    watch.stop(hurry=True)
    assert [one.returncode for one in started] == [-signal.SIGKILL]


def test_what_the_process_says_is_told_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: Time
) -> None:
    recorded(monkeypatch, process.start)
    record = run_epoch(tmp_path, 1, Part.CHANGES, 7)
    watch = upkeep_of(tmp_path, 0.0)
    watch.count(record)
    (file,) = record.deltas[0].files
    (tail_dir(tmp_path, ORDERS.table) / file.path).write_bytes(b"no Parquet")
    watch.turn()
    watch.turn()
    assert re.search(
        r"the process that settles ended with exit code 5: .*orders.*; changes wait in the lake", caplog.text
    )


OUTLIVED = """
import sys, tempfile, msgspec
from catchment.sink.delta.upkeep.process import UpkeepOrder, start
print(start(msgspec.json.decode(sys.argv[1], type=UpkeepOrder), tempfile.TemporaryFile()).pid)
"""


def test_who_reads_the_output_of_a_command_does_not_wait_for_a_process_that_outlives_it(
    tmp_path: Path,
) -> None:
    run_epoch(tmp_path, 1, Part.CHANGES, 1)
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    done = subprocess.run(
        [sys.executable, "-c", OUTLIVED, msgspec.json.encode(order).decode()],
        env={**os.environ, VARIABLE: "during-settle:1:freeze"},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    settles = int(done.stdout)
    assert done.stderr == b""
    assert Path(f"/proc/{settles}/stat").exists(), "it still runs"
    os.kill(settles, signal.SIGKILL)
