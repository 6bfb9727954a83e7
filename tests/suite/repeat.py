"""Tests that failed in a run are repeated alone, so that a flaky one is named. It counts as failed all the same."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# Where more fail, something common is broken, and to repeat them would only take time.
REPEATED_MAX = 5
_SECONDS_MAX = 300


def repeated_alone(root: Path, failed: Sequence[str]) -> Iterator[str]:
    """A line for each failed test, named by its node id below `root`: whether it fails alone, too."""
    for item in failed[:REPEATED_MAX]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--no-repeat", item]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            yield f"FAILED {item}: alone it did not end within {_SECONDS_MAX} s"
            continue
        if done.returncode == 0:
            yield f"FLAKY {item}: it failed in the run and passed when repeated alone"
        else:
            yield f"FAILED {item}: it fails when repeated alone, too"
    if len(failed) > REPEATED_MAX:
        yield f"{len(failed) - REPEATED_MAX} more failed and were not repeated"
