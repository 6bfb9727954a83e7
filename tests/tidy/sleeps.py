"""Calls of `time.sleep` in tests. A test waits for an event (tests/world/patience.py): a pause is too short on a slow
machine, and too long on all others."""

import ast
from collections.abc import Collection, Iterator

from tests.tidy.sources import Source, sources

# Files, and functions of a file, that may sleep, each with the reason.
ALLOWED = {
    "tests/world/patience.py until": "looks again after a pause, and runs out of patience",
    "tests/promises/hidden/source.py _commit_in_two": "the load leaves transactions prepared for a random while",
    "tests/promises/crash/chaos.py": "mishaps come at random moments and last for a random while",
    "tests/promises/serve/many_clients.py": "clients that read slowly, or come back after a while",
    "tests/layers/feed/test_clock.py read": "a shard that answers slowly",
    "tests/layers/state/test_lease.py test_a_runner_frozen_without_a_successor_goes_on": "a process is frozen for long",
    "tests/promises/exact/feedrun.py _settle": "settles beside a run leave it the processor",
    "tests/promises/exact/feedrun.py _read": "readers beside a run leave it the processor",
    "tests/promises/exact/test_open_lake.py _maintain": "upkeep beside a run leaves it the processor",
    "tests/promises/exact/test_past_renewed.py write_one": "the pace of the load",
    "tests/promises/hidden/source.py _hold": "waits a moment for a commit to hold, and goes on without one",
    "tests/promises/hidden/test_holds.py _checkpoint": "gives up a hold in which no checkpoint event comes",
    "tests/promises/mysql/test_feed.py step": "the pace of the load",
    "tests/promises/serve/test_pressure.py at_rest": "shows that nothing more is pulled",
    "tests/promises/serve/test_sixty_four.py _turned": "windows of a load test, in which lags are measured",
    "tests/promises/stream/test_skew.py _written": "the times of transactions are some seconds apart",
}


def sleeps(source: Source) -> Iterator[tuple[int, str]]:
    """Where a file calls `time.sleep`, or hands it on: the line, and the innermost function around it."""
    if "sleep" not in source.text:
        return  # most files need no parsing
    imported = {
        alias.asname or alias.name
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
        if alias.name == "sleep"
    }
    for node in source.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr="sleep"):
                yield node.lineno, _function_at(source, node.lineno)
            case ast.Name(id=name, ctx=ast.Load()) if name in imported:
                yield node.lineno, _function_at(source, node.lineno)


def _function_at(source: Source, line: int) -> str:
    around = [one for one in source.functions if one.lineno <= line <= (one.end_lineno or 0)]
    return max(around, key=lambda one: one.lineno).name if around else "(module)"


def offenders(
    files: Collection[Source] | None = None, allowed: Collection[str] = ALLOWED.keys()
) -> list[str]:
    """Sleeps outside of what may sleep, and what may sleep and does not any more."""
    found, idle = [], set(allowed)
    for file in sources("tests") if files is None else files:
        for line, function in sorted(sleeps(file)):
            mine = {file.name, f"{file.name} {function}"} & set(allowed)
            idle -= mine
            if not mine:
                found.append(f"{file.name}:{line}: {function} sleeps")
    return [*found, *(f"{name}: does not sleep, and need not be allowed to" for name in sorted(idle))]
