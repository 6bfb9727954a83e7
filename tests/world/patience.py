"""How long tests wait for an event that must come, and what they print when it does not come.

A test that waits for an event costs nothing while the event comes. `PATIENCE_SECONDS` grows with the slowness of the
machine, which is measured once at the start of a run. When it runs out, `until` prints the stacks of all threads of
this process and of every Python process below it, so that a hang says where it hangs.
"""

import faulthandler
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")

# The reference is a machine on which so many turns of an empty loop take so long.
_TURNS = 1_000_000
_REFERENCE_SECONDS = 0.05
# The first process of a run measures, and its workers and their commands inherit the figure.
_VARIABLE = "CATCHMENT_TEST_SLOWNESS"
_ON_THE_REFERENCE_SECONDS = 120.0


def measured_slowness() -> float:
    """How many times as long as on the reference machine a loop takes now, other programs included; at least 1."""
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(_TURNS):
            pass
        taken.append(time.perf_counter() - begun)
    return max(1.0, statistics.median(taken) / _REFERENCE_SECONDS)


def _slowness() -> float:
    known = os.environ.get(_VARIABLE)
    if known is None:
        known = os.environ[_VARIABLE] = f"{measured_slowness():.2f}"
    return float(known)


SLOWNESS = _slowness()
PATIENCE_SECONDS = _ON_THE_REFERENCE_SECONDS * SLOWNESS


class RanOut(AssertionError):
    """An event did not come in time. The stacks of all threads are on stderr."""


def until(
    what: str, holds: Callable[[], _T], *, every: float = 0.02, seconds: float = PATIENCE_SECONDS
) -> _T:
    """Call `holds` every so many seconds until it returns something true, and return that.

    Raises RanOut, which names `what`, after `seconds`; then all stacks have been printed. Use it where no event can be
    waited for directly; where a queue, a condition or a pipe tells, block on that with `PATIENCE_SECONDS`.
    """
    ends = time.monotonic() + seconds
    while True:
        if found := holds():
            return found
        if time.monotonic() >= ends:
            ran_out(what, seconds)
        time.sleep(every)


def ran_out(what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Print all stacks, then raise RanOut."""
    print_stacks()
    raise RanOut(f"after {seconds:.0f} s still not: {what}")


def print_stacks() -> None:
    """Print the stacks of all threads of this process and of all Python processes that it started."""
    faulthandler.dump_traceback(file=2, all_threads=True)
    for pid in _descendants(os.getpid()):
        command = Path(f"/proc/{pid}/cmdline")
        try:
            said = command.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
        print(f"process {pid}: {said[:200]}", file=sys.__stderr__, flush=True)
        if "python" in said or "catchment" in said:
            # pip puts it beside the interpreter; --nonblocking does not stop the process that it looks at
            spy = [str(Path(sys.executable).with_name("py-spy")), "dump", "--nonblocking", "--pid", str(pid)]
            dumped = subprocess.run(spy, capture_output=True, text=True, timeout=60, check=False)
            print(dumped.stdout or dumped.stderr, file=sys.__stderr__, flush=True)


def _descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found
