"""What lasts of a feed of one busy table: what lies in its lake after few epochs and after many, and what that costs.

An epoch every ten seconds of made-up time, a settle a minute, a clean-up every ten minutes, `keep` of an hour. What a
clean-up asks of its storage are requests where the lake is in an object store. Run: `python -m bench --only endurance`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec.structs import asdict
from tests.layers.sink.endurance import BusyFeed, left, passing, questions, tail

from bench.figures import Figure, figure
from catchment.sink.delta.layout import epochs_dir

FIRST = 2_000
EPOCHS = 6_000
APART = 10.0
_UNITS = {"checkpoint": "bytes", "log_bytes": "bytes", "log_files": "files", "data_files": "files"}
_READ = """
import resource, sys, time
import catchment
began = time.process_time()
catchment.read(sys.argv[1], "shop.orders").arrow()
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def run(runs: int = 1) -> list[Figure]:
    """Bytes, files, requests, CPU seconds, and memory (MB), each beside that after the first epochs."""
    before, after = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory:
            root = Path(directory) / "lake"
            with passing(EPOCHS * APART) as clock:
                feed = BusyFeed(root, clock, APART)
                feed.epochs(FIRST, settle=6, clean=60)
                before.append(_measured(feed))
                feed.epochs(EPOCHS - FIRST, settle=6, clean=60)
                after.append(_measured(feed))
    name = f"after {EPOCHS} epochs:"
    reference = f"after {FIRST}"
    return [
        figure(
            f"{name} {what}", [one[what] for one in after], unit, reference, [one[what] for one in before], 2
        )
        for what, unit in _units(after[0]).items()
    ]


def _units(measured: dict[str, float]) -> dict[str, str]:
    others = {"requests of a clean-up": "requests", "catchment.read": "CPU s", "memory of that": "MB"}
    return {what: others.get(what) or _UNITS[what.partition(" ")[2]] for what in measured}


def _measured(feed: BusyFeed) -> dict[str, float]:
    found: dict[str, float] = {}
    for directory in (tail(feed.root), epochs_dir(feed.root)):
        found |= {f"{directory.name} {name}": float(value) for name, value in asdict(left(directory)).items()}
    feed.keep_up(cleans=True)
    with questions() as asked:
        feed.keep_up(cleans=True)
        found["requests of a clean-up"] = float(asked())
    told = subprocess.run(
        [sys.executable, "-c", _READ, str(feed.root)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    seconds, memory = told.stdout.split()
    return {**found, "catchment.read": float(seconds), "memory of that": float(memory)}
