"""When a run settles, also at rest; what fails is told, and tried less and less often."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from catchment.model.epoch import Commit, Manifest, Part
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.kept.choice import Past
from catchment.sink.delta.layout import epoch_app, table_dir, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.upkeep import attempt, process, settler, turns
from catchment.sink.delta.upkeep.attempt import Attempt, begin
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.process import Outcome
from catchment.sink.delta.upkeep.settler import Settler
from catchment.sink.delta.upkeep.turns import LakeUpkeep
from catchment.state.faults import VARIABLE
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, write
from tests.world.patience import PATIENCE_SECONDS
from tests.world.records import name_of
from tests.world.settled import carry_out
from tests.world.worlds import SetClocks, put

Start = Callable[[str, IO[bytes]], "subprocess.Popen[bytes]"]


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


def recorded(monkeypatch: pytest.MonkeyPatch, start: Start | None = None) -> list[int]:
    """Let orders be over at once, in this process or in those that `start` starts; their exit codes."""
    codes: list[int] = []
    if start is None:
        monkeypatch.setattr(attempt, "is_light", lambda order: True)
    else:
        monkeypatch.setattr(attempt, "LIGHT_BYTES", -1)
        monkeypatch.setattr(settler, "start", start)

    def begin_and_wait(
        keeper: Keeper, process: Settler, order: UpkeepOrder, newest: Manifest | None
    ) -> Attempt:
        outcome = begin(keeper, process, order, newest).outcome(None)
        assert outcome is not None
        codes.append(outcome.code)
        return Over(outcome)

    monkeypatch.setattr(turns, "begin", begin_and_wait)
    return codes


class Over:
    """An attempt that has ended."""

    def __init__(self, ended: Outcome) -> None:
        self._ended = ended

    def outcome(self, seconds: float | None = 0.0) -> Outcome | None:
        return self._ended

    def abandon(self) -> None:
        pytest.fail("it is over")


def sleeper(root: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    asleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    return subprocess.Popen(asleep, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)


def killed(root: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    process = sleeper(root, said)
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
    assert "exit code -9: killed: is memory short?" in caplog.text
    assert "try is in 80 s" in caplog.text
    assert watch.waiting() == {ORDERS.table: 1}


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_changes_are_settled_in_time_and_nothing_is_started_at_rest(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch)
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
    assert (codes, watch.waiting()) == ([0], {ORDERS.table: 0})
    plain = DeltaLog(table_dir(tmp_path, ORDERS.table)).newest()
    assert plain is not None
    assert sum(file.live for file in plain.files.values()) == 100


def test_what_the_run_before_left_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch)
    run_epoch(tmp_path, 1, Part.BASE, 100)
    watch = upkeep_of(tmp_path)
    clock.now += 11.0
    watch.turn()
    assert codes == [0]
    assert DeltaLog(table_dir(tmp_path, ORDERS.table)).newest() is not None


def test_the_cleaner_comes_until_all_that_was_replaced_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch)
    run_epoch(tmp_path, 1, Part.BASE, 100)
    watch = upkeep_of(tmp_path, keep_seconds=5400.0)
    began = clock.now
    starts: list[float] = []
    while clock.now < began + 20_000:
        watch.turn()
        if len(codes) > len(starts):
            starts.append(clock.now - began)
        clock.now += 20.0
    assert starts[:3] == [20.0, 600.0, 1200.0]
    window = starts[0] + 2 * 3600
    assert window < starts[-1] <= window + turns.CLEAN_SECONDS
    assert set(codes) == {0}


def test_a_past_comes_to_its_end_at_rest_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    """Once an hour, when nothing else is left to remove."""
    codes = recorded(monkeypatch)
    run_epoch(tmp_path, 1, Part.BASE, 100)
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, past=Past(12 * 3600.0))
    watch, began = LakeUpkeep(order, 10.0), clock.now
    starts: list[float] = []
    while clock.now < began + 13_000:
        watch.turn()
        if len(codes) > len(starts):
            starts.append(clock.now - began)
        clock.now += 20.0
    assert [late - early for early, late in zip(starts[-3:], starts[-2:], strict=False)] == [3600.0, 3600.0]
    assert set(codes) == {0}


def test_short_runs_clean_up_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch)
    run_epoch(tmp_path, 1, Part.BASE, 100)
    carry_out(UpkeepOrder(str(tmp_path), FEED, 1, 3600.0))
    for age, cleans in ((60, False), (601, True), (0, False)):
        then = time.time() - age
        os.utime(tmp_path / "_catchment" / f"cleaned-{FEED}", (then, then))
        watch = upkeep_of(tmp_path)
        asked: list[bool] = []

        waited = vars(turns)["begin"]

        def noted(*given: Any, asked: list[bool] = asked, waited: Any = waited) -> Attempt:
            asked.append(given[2].cleans)
            made: Attempt = waited(*given)
            return made

        monkeypatch.setattr(turns, "begin", noted)
        watch.stop(hurry=False)
        assert asked == [cleans]
        monkeypatch.setattr(turns, "begin", waited)
    assert codes == [0, 0, 0]


def test_little_is_settled_without_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(settler, "start", lambda *_: pytest.fail("a process was started"))
    watch = upkeep_of(tmp_path)
    watch.count(run_epoch(tmp_path, 1, Part.BASE, 100))
    watch.stop(hurry=True)
    plain = DeltaLog(table_dir(tmp_path, ORDERS.table)).newest()
    assert plain is not None
    assert (plain.transactions[epoch_app(FEED, ORDERS.table)], watch.waiting()) == (1, {ORDERS.table: 0})
    record = run_epoch(tmp_path, 2, Part.CHANGES, 7)
    (file,) = record.deltas[0].files
    (tail_dir(tmp_path, ORDERS.table) / file.path).write_bytes(b"no Parquet")
    watch.count(record)
    watch.stop(hurry=True)
    assert watch.waiting() == {ORDERS.table: 7}
    assert re.search(r"a settle ended with exit code 5: .*orders", caplog.text)


def test_a_settle_takes_up_the_tables_that_changed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many tables the others cost nothing."""
    orders: list[UpkeepOrder] = []
    monkeypatch.setattr(Keeper, "carry_out", lambda keeper, order, newest: orders.append(order))
    watch = upkeep_of(tmp_path, 0.0)
    watch.count(run_epoch(tmp_path, 1, Part.BASE, 100))
    watch.stop(hurry=False)
    assert [(order.tables, order.cleans) for order in orders] == [((ORDERS.table,), False)]


@pytest.mark.parametrize("hurry", [True, False])
def test_the_end_of_a_run_settles(
    hurry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    codes = recorded(monkeypatch)
    watch = upkeep_of(tmp_path)
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, 3))
    watch.stop(hurry=hurry)
    assert (codes, watch.running, watch.waiting()) == ([0], False, {ORDERS.table: 0})


def test_a_settle_that_takes_long_does_not_keep_a_run_that_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(root: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        started.append(sleeper(root, said))
        return started[-1]

    monkeypatch.setattr(attempt, "LIGHT_BYTES", -1)
    monkeypatch.setattr(settler, "start", start)
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
    assert re.search(r"a settle ended with exit code 5: .*orders.*; changes wait in the lake", caplog.text)


OUTLIVED = """
import sys, msgspec
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.sink.delta.upkeep.settler import Settler
order = msgspec.json.decode(sys.argv[1], type=UpkeepOrder)
settler = Settler(order.root)
settler.order(order)
print(settler._process.pid)
"""


def test_what_the_process_logs_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: Time
) -> None:
    codes = recorded(monkeypatch, process.start)
    index = tmp_path / "itself"
    index.symlink_to(index)
    root = tmp_path / "lake"
    watch = LakeUpkeep(UpkeepOrder(str(root), FEED, 1, 3600.0, index=str(index)), 10.0)
    for epoch in (1, 2, 3):
        watch.count(run_epoch(root, epoch, Part.CHANGES, 2))
        clock.now += 11.0
        watch.turn()
    watch.stop(hurry=False)
    assert codes == [0, 0, 0]
    assert caplog.text.count(f"feed {FEED}: the index in {index} cannot be used: Too many levels") == 1


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


def test_one_process_carries_out_all_orders_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(root: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        started.append(process.start(root, said))
        return started[-1]

    codes = recorded(monkeypatch, start)
    monkeypatch.setattr(turns, "PREPARED_ROWS", 3)
    watch = upkeep_of(tmp_path, 0.0)
    watch.count(run_epoch(tmp_path, 1, Part.CHANGES, 3))
    assert (len(started), codes) == (1, []), "it starts while the epochs come"
    for epoch in (2, 3, 4):
        watch.turn()
        watch.count(run_epoch(tmp_path, epoch, Part.CHANGES, 3))
    watch.stop(hurry=False)
    assert (len(started), codes) == (1, [0, 0, 0, 0])
    assert started[0].returncode == 0, "it ends with the run"


def test_a_process_that_has_nothing_to_do_for_long_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Time
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(root: str, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        started.append(process.start(root, said))
        return started[-1]

    codes = recorded(monkeypatch, start)
    monkeypatch.setattr(turns, "IDLE_SECONDS", 30.0)
    watch = upkeep_of(tmp_path, 0.0)
    for epoch in (1, 2):
        watch.count(run_epoch(tmp_path, epoch, Part.CHANGES, 3))
        watch.turn()
        assert started[-1].returncode is None
        clock.now += turns.IDLE_SECONDS + 1
        watch.turn()
        watch.turn()
        assert started[-1].returncode == 0
    assert (len(started), codes) == (2, [0, 0])
