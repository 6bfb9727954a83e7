"""Calls of `time.sleep` in tests. A test waits for an event (tests/world/patience.py): a pause is too short on a slow
machine, and too long on all others."""

import ast
from collections.abc import Collection, Iterator

from tests.tidy.sources import Source, sources

# False while many tests still sleep: the report lists the sleeps, and no test fails.
ENFORCED = False

# Files, and functions of a file, that may sleep, each with the reason.
ALLOWED = {
    "tests/world/patience.py until": "looks again after a pause, and runs out of patience",
    "tests/world/proxy.py _carry": "delays what a connection carries, on purpose",
    "tests/promises/hidden/source.py _commit_in_two": "the load leaves transactions prepared for a random while",
    "tests/promises/exact/test_families.py write": "the load comes in bursts",
    "tests/promises/crash/chaos.py": "mishaps come at random moments and last for a random while",
    "tests/promises/crash/test_fifty_orders.py act": "orders come at random moments",
    "tests/promises/serve/many_clients.py": "clients that read slowly, or come back after a while",
    "tests/layers/engine/test_local.py pid_after": "a task that takes long",
    "tests/layers/engine/test_local.py write_pid": "a task that does not end by itself",
    "tests/layers/engine/test_spark.py _sleep": "a task that takes long",
    "tests/layers/engine/test_spark.py _interrupt": "an interrupt comes at many moments of a job",
    "tests/layers/feed/test_clock.py read": "a shard that answers slowly",
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
