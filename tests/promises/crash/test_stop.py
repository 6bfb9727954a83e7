"""Ctrl-C and SIGTERM: a run ends within seconds with one line, and the same command goes on."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.cli.main import execute
from catchment.cli.output import EXIT_INTERRUPTED
from catchment.demo.server import PrivateServer
from catchment.model.epoch import Manifest
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import SECONDS_MAX, Command, Life, written
from tests.promises.crash.test_work import children, held_in_a_select

# docs/operations.md says 5 s on an idle machine; this is for one that is not.
STOP_SECONDS_MAX = 90.0


STOPPED = "catchment: stopped; the same command goes on from here"


def wait(command: Command, holds: Callable[[], bool]) -> None:
    """Wait until something holds, while the command runs."""
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert command.process.poll() is None, command.output.read_text()
        assert time.monotonic() < deadline, command.output.read_text()
        time.sleep(0.2)  # to look at a lake costs some CPU


def newest(life: Life) -> Manifest | None:
    """The newest epoch in the lake."""
    row = EpochsTable(life.lake, "life").newest()
    return row.manifest if row is not None else None


def copying(life: Life) -> bool:
    """Whether chunks are in the lake, and others are not."""
    manifest = newest(life)
    rows = sum(copy.rows for copy in manifest.cut.copies) if manifest is not None else 0
    return manifest is not None and rows > 0 and not manifest.cut.copied


def following(life: Life) -> bool:
    """Whether all is copied."""
    manifest = newest(life)
    return manifest is not None and manifest.cut.copied


def settle_sleeps(runner: int) -> bool:
    """Whether the runner's settle has stopped itself."""
    for child in children(runner):
        try:
            if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "T":
                return True
        except OSError:
            continue
    return False


def stopped_by(command: Command, *signals: signal.Signals) -> list[str]:
    """Send the signals as a terminal does, to all of the command's process group; the lines that it printed
    since, without the empty one that click puts behind a terminal's ^C. It must have ended soon, and as documented.
    """
    before = len(command.output.read_text().splitlines())
    began = time.monotonic()
    for number in signals:
        os.killpg(command.process.pid, number)
        time.sleep(0.5 if len(signals) > 1 else 0)
    # Two signals of a kind become one where a busy machine lets the process see neither in between.
    while len(signals) > 1 and command.process.poll() is None and time.monotonic() < began + STOP_SECONDS_MAX:
        os.killpg(command.process.pid, signals[-1])
        time.sleep(0.5)
    ended = command.ended()
    seconds = time.monotonic() - began
    print(f"stopped by {[s.name for s in signals]} in {seconds:.1f} s", file=sys.stderr)
    assert ended.code == EXIT_INTERRUPTED, ended
    assert seconds < STOP_SECONDS_MAX
    said = [line for line in ended.said.splitlines()[before:] if line and not line.startswith("life: epoch ")]
    if len(signals) > 1 and said[0] == STOPPED:
        said = said[1:]  # the first signal was heard, and a thread still waits for a shard that is silent
    assert len(said) == 1, ended
    return said


@pytest.mark.wide
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_stopped_run_ends_soon_and_goes_on_later(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, engine: str
) -> None:
    life = live(pair)
    life.load(1000)
    life.describe(engine=engine)
    with written(life):
        run = life.start("run")
        wait(run, lambda: copying(life))
        assert stopped_by(run, signal.SIGINT)[0].startswith("stopped at epoch")
        assert copying(life)
        with held_in_a_select(pair["-80"]) as (proxy, inside):
            life.describe({"-80": {"port": proxy.port}}, engine=engine)
            run = life.start("run")
            wait(run, inside.is_set)
            time.sleep(3)  # the clock asks once a second: now a thread of the driver waits for the shard, too
            assert "again" in stopped_by(run, signal.SIGINT, signal.SIGINT)[0]
        life.describe(
            engine=engine,
            sink={"path": str(life.lake), "settle": "0s"},
            copy={"chunk_rows_max": 1000, "group_time": "0s"},
        )
        life.make_large()
        run = life.start("run", fault="during-settle:1:freeze")
        wait(run, lambda: following(life) and settle_sleeps(run.process.pid))
        assert stopped_by(run, signal.SIGTERM)[0].startswith("stopped at epoch")
    life.describe()
    assert life.run() == 0
    life.must_be_exact()
    assert execute(["verify", str(life.file)]) == 0


@pytest.mark.wide
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_other_commands_are_stopped_as_well_and_leave_nothing_behind(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, number: signal.Signals
) -> None:
    life = live(pair, count=1)
    life.load(20)
    assert life.run() == 0
    with held_in_a_select(pair["-80"]) as (proxy, inside):
        life.describe({"-80": {"port": proxy.port}})
        command = life.start("verify")
        wait(command, inside.is_set)
        family = [command.process.pid]
        for parent in family:
            family += children(parent)
        assert stopped_by(command, number) == [STOPPED]
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while left := [process for process in family if Path(f"/proc/{process}").exists()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        life.describe({"-80": {"port": silent.getsockname()[1]}})
        command = life.start("doctor")
        silent.settimeout(SECONDS_MAX)
        with silent.accept()[0]:
            said = stopped_by(command, number, number)
    assert said == ["catchment: stopped again, ended at once"]
