"""In which groups and in which order the tests of a run go to its processes.

A fixture that takes seconds to make (a Spark, a server of another kind) is made once: the tests that need it are one
group, and xdist gives a group to one process. Where such a group would be longer than a process's share of the run, it
is divided, and the fixture is made that often. The longest groups begin first, so that no process waits at the end.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest

from tests.suite.costs import Costs
from tests.suite.tiers import file_of, unit_of

# The heaviest first: a test belongs to the group of the first one that it needs.
HEAVY = ("spark", "mysql_97_server", "mysql_80_server", "mariadb_11_server", "s3_server")
_OF_A_FILE = {"package", "module", "class"}


def group_of(item: pytest.Item) -> str | None:
    """The group of a test by its fixtures: a heavy one, or those that its file shares; None where it needs neither."""
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return None
    names = set(info.names_closure)
    heavy = next((name for name in HEAVY if name in names), None)
    if heavy is not None:
        return heavy
    shared = any(
        definitions[-1].scope in _OF_A_FILE and not definitions[-1].argname.startswith("_xunit")
        for definitions in info.name2fixturedefs.values()
    )
    return file_of(item.nodeid) if shared or item.get_closest_marker("whole") else None


def arrange(items: list[pytest.Item], costs: Costs, processes: int) -> None:
    """Give each test its group, and sort them as they are to begin."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[group_of(item) or item.nodeid].append(item)
    by_file = _spread(items, costs)
    share = sum(map(by_file, items)) / max(processes, 1)
    arranged: list[tuple[float, list[pytest.Item]]] = []
    for name, members in groups.items():
        for number, part in enumerate(_divided(members, by_file, share)):
            if len(part) > 1:
                for item in part:
                    item.add_marker(pytest.mark.xdist_group(f"{name}-{number}" if number else name))
            arranged.append((sum(map(by_file, part)), part))
    arranged.sort(key=lambda group: -group[0])
    items[:] = [item for _, part in arranged for item in part]


def _spread(items: Sequence[pytest.Item], costs: Costs) -> Callable[[pytest.Item], float]:
    """The cost of one test; a unit of several tests has its cost divided among them."""
    members: dict[str, int] = defaultdict(int)
    for item in items:
        members[unit_of(item)] += 1
    return lambda item: costs.of(unit_of(item)) / members[unit_of(item)]


def _divided(
    members: list[pytest.Item], cost: Callable[[pytest.Item], float], share: float
) -> list[list[pytest.Item]]:
    """A group in as few parts as each fit into a process's share; a file stays whole."""
    whole = sum(map(cost, members))
    count = math.ceil(whole / share) if share else 1
    parts: list[list[pytest.Item]] = [[] for _ in range(count)]
    sums = [0.0] * count
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in members:
        files[file_of(item.nodeid)].append(item)
    for file in sorted(files.values(), key=lambda file: -sum(map(cost, file))):
        least = sums.index(min(sums))
        parts[least] += file
        sums[least] += sum(map(cost, file))
    return [part for part in parts if part]
