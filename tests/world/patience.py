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
from typing import NoReturn, TypeVar

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
    what: str,
    holds: Callable[[], _T],
    *,
    seen: Callable[[], object] = lambda: "",
    every: float = 0.02,
    seconds: float = PATIENCE_SECONDS,
) -> _T:
    """Call `holds` every so many seconds until it returns something true, and return that.

    Raises RanOut after `seconds`, with `what` did not come and what `seen` returns then, such as the last state of what
    was waited for. Before that, all stacks have been printed. Use it where no event can be waited for directly; where a
    queue, a condition or a pipe tells, block on that with `PATIENCE_SECONDS`.
    """
    ends = time.monotonic() + seconds
    while True:
        if found := holds():
            return found
        if time.monotonic() >= ends:
            ran_out(f"{what} {seen()}".strip(), seconds)
        time.sleep(every)


def ran_out(what: str, seconds: float = PATIENCE_SECONDS) -> NoReturn:
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
        if Path(said.partition(" ")[0]).name.startswith(("python", "catchment")):
            print(_stacks_of(pid), file=sys.__stderr__, flush=True)


def _stacks_of(pid: int) -> str:
    """What py-spy says of a process. It says why where it cannot look, for the test's own error is to be seen."""
    # pip puts it beside the interpreter; --nonblocking does not stop the process that it looks at
    spy = [str(Path(sys.executable).with_name("py-spy")), "dump", "--nonblocking", "--pid", str(pid)]
    try:
        dumped = subprocess.run(spy, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no stacks: {error}"
    return dumped.stdout or dumped.stderr


def _descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they started. (The kernel's list of children in
    /proc/PID/task/TID/children leaves some out while others end.)"""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = list(children.get(pid, []))
    for one in found:
        found += children.get(one, [])
    return found
