"""CPU time of a running feed by kind of process, from /proc: it holds on a busy machine, where seconds do not."""

import os
from collections.abc import Iterator
from pathlib import Path

KINDS = ("driver", "Java", "workers", "settle")
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(driver: int) -> dict[str, float]:
    """User and system time of the processes below `driver`, and of those that have ended, by kind (proc(5), stat)."""
    spent = dict.fromkeys(KINDS, 0.0)
    for pid, fields in _tree(driver):
        own, ended = _seconds(fields[11:13]), _seconds(fields[13:15])
        kind = _kind(pid, driver)
        spent[kind] += own
        # What a driver waits for is a settle; what a daemon waits for is one of its workers.
        spent["settle" if kind == "driver" else kind] += ended
    return spent


def own_cpu_seconds(pid: int) -> float:
    """User and system time of one process."""
    return _seconds(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])


def memory_bytes(driver: int) -> int:
    """What the processes below `driver` hold, pages that they share counted once (proc(5), smaps_rollup: Pss)."""
    return sum(_pss(pid) for pid, _ in _tree(driver))


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it has just ended
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def _tree(root: int) -> Iterator[tuple[int, list[str]]]:
    """A process and those below it, with the fields of stat from the third on."""
    found: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
    wanted = {root}
    for pid in sorted(
        found
    ):  # a child's number may be the smaller one when numbers start again; here it is not
        if pid in wanted or int(found[pid][1]) in wanted:
            wanted.add(pid)
            yield pid, found[pid]


def _seconds(ticks: list[str]) -> float:
    return sum(map(int, ticks)) / _TICKS


def _kind(pid: int, driver: int) -> str:
    if pid == driver:
        return "driver"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "workers"
    if b"upkeep.process" in command:
        return "settle"
    return "Java" if command.split(b"\0")[0].endswith(b"java") else "workers"
