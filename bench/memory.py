"""Peak memory of a Python worker that reads one large transaction from the log, beside a smaller one.

Each reading is a process of its own. Run: `python -m bench --only memory`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.figures import Figure, figure
from bench.stress import SCHEMA, TABLE, create
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.epoch.work import SegmentTask, Target
from catchment.model.epoch import DataFile, Manifest
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.readers.changes import read_segment
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.first_cut import originate

RATIO = 8


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Peak resident MiB with a transaction of `rows` rows, and with an eighth of them."""
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings={"innodb_buffer_pool_size": "512M", "max_binlog_size": 1 << 30}) as server,
    ):
        create(server)
        endpoint = Endpoint("s0", server.host, server.port, FEED_USER, server.password, None)
        tasks = {
            size: _task(server, endpoint, Path(directory) / str(size), size) for size in (rows // RATIO, rows)
        }
        peaks: dict[int, list[float]] = {size: [] for size in tasks}
        for _ in range(runs):
            for size, task in tasks.items():
                peaks[size].append(_peak_mib(task))
    name = f"peak memory of a worker, transaction of {rows} rows"
    return [figure(name, peaks[rows], "MiB", f"{rows // RATIO} rows", peaks[rows // RATIO], 1)]


def _task(server: PrivateServer, endpoint: Endpoint, root: Path, rows: int) -> Path:
    """Log one transaction of so many rows; the file that says what to read."""
    server.sql(f"TRUNCATE TABLE {TABLE}", "FLUSH BINARY LOGS")
    manifest = originate("bench", {"s0": endpoint}, lambda table: str(table) == TABLE, 0)
    server.sql(f"INSERT INTO {TABLE} SELECT seq, SHA1(seq), LEFT(MD5(seq), 8) FROM {SCHEMA}.seq_1_to_{rows}")
    stop = LogOffset(*server.log_end())
    root.mkdir()
    file = root / "task.json"
    file.write_bytes(msgspec.json.encode([endpoint, manifest, stop, str(root)]))
    return file


def _peak_mib(task: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "bench.memory", str(task)], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(json.loads(done.stdout)) / 1024


def read(file: Path) -> int:
    """Read the segment of a task's file in this process; its peak resident memory in KiB."""
    endpoint, manifest, stop, root = msgspec.json.decode(
        file.read_bytes(), type=tuple[Endpoint, Manifest, LogOffset, str]
    )
    target = Target(LakeWriter(Path(root)), ("s0",), manifest.epoch + 1, f"bench-{os.getpid()}")
    receipt = read_segment(SegmentTask(endpoint, manifest.cut.shards["s0"], stop, manifest.shapes, target))
    for output in receipt.outputs:
        if isinstance(output.held, DataFile):
            next(Path(root).rglob(Path(output.held.path).name)).unlink()
    # Not getrusage: its maximum outlives exec, so it would start at the parent's.
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


if __name__ == "__main__":
    print(read(Path(sys.argv[1])))
