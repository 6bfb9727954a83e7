"""The real command in processes of its own, as a user starts it: what it takes, and what its processes cost."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import cpu_seconds
from catchment.config import Feed
from catchment.sink.delta.epochs.table import EpochsTable

PROGRAM = (sys.executable, "-m", "catchment.cli.main")
START_SECONDS_MAX = 300.0
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Took:
    """Seconds of a clock and of processors, of a whole command with all its processes."""

    wall: float
    cpu: float


def file_of(chosen: Feed) -> str:
    """Where `bench.feeds.feed` has written it."""
    return str(Path(str(chosen.sink.path)).parent / "feed.yaml")


def caught_up(chosen: Feed) -> Took:
    """`catchment run --until-caught-up`, from the command to its end."""
    began, before = time.monotonic(), os.times()
    command = [*PROGRAM, "run", file_of(chosen), "--until-caught-up", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(time.monotonic() - began, cpu)


@contextmanager
def command(chosen: Feed) -> Iterator["subprocess.Popen[bytes]"]:
    """`catchment run` while the block lasts."""
    process = subprocess.Popen([*PROGRAM, "run", file_of(chosen), "--quiet"], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def first_epoch(chosen: Feed, process: "subprocess.Popen[bytes]", before: int) -> dict[str, float]:
    """Wait until there are more epochs than `before`: CPU seconds by kind of process, and those of a clock (`wall`)."""
    began = time.monotonic()
    while epochs(chosen) <= before:
        if process.poll() is not None or time.monotonic() - began > START_SECONDS_MAX:
            raise RuntimeError(f"no epoch was committed (exit code {process.poll()})")
        time.sleep(_LOOK_SECONDS)
    return {**cpu_seconds(process.pid), "wall": time.monotonic() - began}


def epochs(chosen: Feed) -> int:
    """How many are committed."""
    return len(EpochsTable(chosen.sink.path, chosen.name).numbers())
