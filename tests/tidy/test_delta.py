"""Nothing outside `sink/delta/` knows that a lake has Delta tables, but for the one place that knows all sinks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.floors import FLOOR, MODULES, PACKAGE, folder_of, imports

HOME = "sink/delta"
REGISTRY = PACKAGE / "sink" / "registry" / "sinks.py"
# `TableDelta` and a variable `delta` are what an epoch adds to a table, `timedelta` is a time.
_NAMES = re.compile(r"\bDelta\b|DeltaTable|delta-rs|deltalake|_delta_log|sink[./]delta")


def outsiders() -> list[Path]:
    """The modules that must not know Delta."""
    return [m for m in MODULES if not f"{folder_of(m)}/".startswith(f"{HOME}/") and m != REGISTRY]


def places(source: str) -> Iterator[str]:
    """Where a module knows Delta: what it imports, and what it names, comments and texts included."""
    importing = set()
    for line, name in imports(ast.parse(source)):
        importing.add(line)
        if name.startswith(("catchment.sink.delta", "deltalake")):
            yield f"line {line}: imports {name}"
    for number, text in enumerate(source.splitlines(), 1):
        if number not in importing and (found := _NAMES.search(text)):
            yield f"line {number}: names {found[0]}"


def test_nothing_outside_knows_delta() -> None:
    found = [f"{m.relative_to(PACKAGE)}: {place}" for m in outsiders() for place in places(m.read_text())]
    assert len(found) == 0, "\n".join(found)


def test_every_other_module_is_looked_at() -> None:
    assert {folder_of(m) for m in outsiders()} >= {f for f in FLOOR if not f.startswith(HOME)} - {
        "sink/registry"
    }
    inside = {m for m in MODULES if HOME in m.as_posix()}
    assert inside.isdisjoint(outsiders())
    assert len(outsiders()) + len(inside) + 1 == len(MODULES)
    assert list(places(REGISTRY.read_text())), "it names every sink"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from catchment.sink.delta.epochs.table import EpochsTable", 1),
        ("from catchment.sink import delta", 1),
        ("import catchment.sink.delta", 1),
        ("def f():\n    from deltalake import DeltaTable", 1),
        ('start("-m", "catchment.sink.delta.upkeep.process")', 1),
        ("# Delta compares lower case", 1),
        ('"""What comes\nfrom Delta."""', 1),
        ('Path(lake) / "_delta_log"', 1),
        ("for delta in manifest.deltas:\n    TableDelta(delta)", 0),
        ("from datetime import timedelta", 0),
        ("from catchment.sink.port import Sink", 0),
    ],
)
def test_the_rule_itself(source: str, count: int) -> None:
    assert len(list(places(source))) == count
