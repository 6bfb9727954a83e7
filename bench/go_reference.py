"""go-mysql, the usual reader of a binary log in Go, as a reference: built where Go is installed."""

import os
import subprocess
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import mkdtemp

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset

_SOURCE = Path(__file__).parent / "go_mysql"


@cache
def program() -> Path | None:
    """The program of bench/go_mysql, built once a process; None where Go is not installed or has no packages."""
    if which("go") is None:
        print("  Go is not installed: no figure beside go-mysql", flush=True)
        return None
    built = Path(mkdtemp(prefix="catchment-bench-")) / "go-mysql"
    done = subprocess.run(["go", "build", "-o", str(built), "."], cwd=_SOURCE, check=False)
    return built if done.returncode == 0 else None


def rows_per_second(built: Path, file: Path, start: LogOffset, stop: LogOffset, rows: int) -> float:
    """Rows per second of processor time, decoded from a log file, checksums verified."""
    command = [str(built), "parse", str(file), str(start.offset), str(stop.offset)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found, seconds = printed.split()
    assert int(found) == rows, f"{found} rows instead of {rows}"
    return rows / float(seconds)


def synced_rows_per_second(built: Path, server: PrivateServer, start: LogOffset, rows: int) -> float:
    """Rows per second of wall time, as its syncer reads them from a server."""
    command = [
        str(built),
        "sync",
        server.host,
        str(server.port),
        FEED_USER,
        start.file,
        str(start.offset),
        str(rows),
    ]
    secret = {**os.environ, "BENCH_PASSWORD": server.password}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=secret).stdout
    found, seconds = printed.split()
    assert int(found) == rows, f"{found} rows instead of {rows}"
    return rows / float(seconds)
