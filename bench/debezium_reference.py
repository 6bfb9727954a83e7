"""Debezium's embedded engine as a reference: built where Java 17 and Maven are, of jars that Maven fetches."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import mkdtemp
from typing import Final

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset

_SOURCE = Path(__file__).parent / "debezium"
_FETCH_SECONDS, _READ_SECONDS = 600, 1000
_DEFAULTS: Final[Mapping[str, str]] = {}
# What makes it fastest here: large batches, no pause between them.
_LARGE: Final[Mapping[str, str]] = {
    "max.batch.size": "20480",
    "max.queue.size": "81920",
    "poll.interval.ms": "10",
}
SETTINGS: Final = {"Debezium": _DEFAULTS, "Debezium, large batches": _LARGE}


@dataclass(frozen=True, slots=True)
class Spans:
    """Seconds in which rows came: from the first to the last, and from the start of the reader to the last."""

    since_first: float
    since_start: float


@cache
def program() -> str | None:
    """The class path of the program of bench/debezium, built once a process; None where it cannot be."""
    for tool in ("java", "javac", "mvn"):
        if which(tool) is None:
            print(f"  {tool} is not installed: no figure beside Debezium", flush=True)
            return None
    built = Path(mkdtemp(prefix="catchment-bench-"))
    fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={built}/lib"]
    for command in (fetch, ["javac", "-cp", f"{built}/lib/*", "-d", str(built), "Count.java"]):
        done = subprocess.run(command, cwd=_SOURCE, check=False, timeout=_FETCH_SECONDS)
        if done.returncode != 0:
            print(f"  {command[0]} failed: no figure beside Debezium", flush=True)
            return None
    return f"{built}:{built}/lib/*"


def spans(
    classes: str, server: PrivateServer, table: str, start: LogOffset, rows: int, settings: Mapping[str, str]
) -> Spans:
    """What it takes to read the rows that the log has from a place on."""
    gtids = str(server.sql(f"SELECT BINLOG_GTID_POS('{start.file}', {start.offset})")[0][0])
    place = [server.host, str(server.port), FEED_USER, table, start.file, str(start.offset), gtids, str(rows)]
    command = ["java", "-Xmx2g", "-XX:+UseParallelGC", "-cp", classes, "Count", *place]
    done = subprocess.run(
        [*command, *(f"{name}={value}" for name, value in settings.items())],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "BENCH_PASSWORD": server.password},
        timeout=_READ_SECONDS,
    )
    found, since_first, since_start = done.stdout.split()
    assert int(found) == rows, f"{found} rows instead of {rows}"
    return Spans(float(since_first), float(since_start))
