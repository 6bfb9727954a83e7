"""What a feed costs that has little to do: at rest, with 100 changes a second in one table, and to start.

The feed runs as the real command; its processes are told apart. Run: `python -m bench --only upkeep`.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.feeds import feed
from bench.figures import Figure, figure
from bench.processes import KINDS, cpu_seconds
from bench.stress import writing
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.sink.delta.epochs import EpochsTable

TABLE = "bench.accounts"
PER_SECOND = 100
SECONDS = 20.0
WARM_SECONDS = 8.0
START_SECONDS_MAX = 300.0
Spent = dict[str, float]


def run(runs: int = 1) -> list[Figure]:
    """CPU seconds a second by kind of process at rest and under changes; a start's CPU and wall seconds.

    A start ends with the first epoch that it commits.
    """
    starts, rests, busy = [], [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory, PrivateServer() as server:
            chosen = _copied(Path(directory), server)
            server.sql(f"UPDATE {TABLE} SET sig = 'b' WHERE id = 1")
            with _command(chosen) as process:
                starts.append(_start(chosen, process))
                time.sleep(WARM_SECONDS)
                rests.append(_measured(process))
                update = f"UPDATE {TABLE} SET sig = SHA1(@n) WHERE id = 1 + @n MOD 1000"
                with writing(server, update, PER_SECOND):
                    time.sleep(WARM_SECONDS)
                    before = _epochs(chosen)
                    busy.append(_measured(process))
                    busy[-1]["epochs"] = (_epochs(chosen) - before) / SECONDS
    return [
        *(_cores("a feed at rest", kind, rests) for kind in KINDS),
        *(_cores(f"{PER_SECOND} changes/s", kind, busy) for kind in KINDS),
        _cores(f"{PER_SECOND} changes/s", "epochs", busy, "a second"),
        *(_cores("a start", kind, starts, "CPU s") for kind in KINDS[:3]),
        _cores("a start", "wall", starts, "s"),
    ]


def _cores(what: str, kind: str, measured: list[Spent], unit: str = "cores") -> Figure:
    whole = [sum(one[k] for k in KINDS) for one in measured]
    return figure(f"{what}, {kind}", [one[kind] for one in measured], unit, "all processes", whole, 3)


def _copied(directory: Path, server: PrivateServer) -> Feed:
    """A feed of one table of 1,000 rows that is copied and folded."""
    server.sql(
        "CREATE DATABASE bench",
        f"CREATE TABLE {TABLE} (id bigint AUTO_INCREMENT PRIMARY KEY, sig varchar(40))",
        f"INSERT INTO {TABLE} (sig) SELECT SHA1(seq) FROM bench.seq_1_to_1000",
    )
    chosen = feed(directory, [server])
    subprocess.run(
        [*_PROGRAM, "run", _file(chosen), "--until-caught-up"], check=True, stdout=subprocess.DEVNULL
    )
    return chosen


_PROGRAM = (sys.executable, "-m", "catchment.cli.main")


def _file(chosen: Feed) -> str:
    return str(Path(chosen.sink.path).parent / "feed.yaml")


@contextmanager
def _command(chosen: Feed) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([*_PROGRAM, "run", _file(chosen)], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _start(chosen: Feed, process: "subprocess.Popen[bytes]") -> Spent:
    """What was spent until the first epoch."""
    began, before = time.monotonic(), _epochs(chosen)
    while _epochs(chosen) == before:
        if process.poll() is not None or time.monotonic() - began > START_SECONDS_MAX:
            raise RuntimeError(f"no epoch was committed (exit code {process.poll()})")
        time.sleep(0.05)
    return {**cpu_seconds(process.pid), "wall": time.monotonic() - began}


def _epochs(chosen: Feed) -> int:
    return len(EpochsTable(chosen.sink.path, chosen.name).read_all())


def _measured(process: "subprocess.Popen[bytes]") -> Spent:
    """Cores taken by each kind of process."""
    began, before = time.monotonic(), cpu_seconds(process.pid)
    time.sleep(SECONDS)
    after, seconds = cpu_seconds(process.pid), time.monotonic() - began
    return {kind: (after[kind] - before[kind]) / seconds for kind in KINDS}
