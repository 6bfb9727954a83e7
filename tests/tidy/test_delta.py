"""Nothing outside `sink/delta/` uses Delta tables, except the one place that knows all sinks."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.floors import MODULES, folder_of, imports
from tests.tidy.sources import PACKAGE, Source

HOME = "sink/delta"
REGISTRY = PACKAGE / "sink" / "registry" / "sinks.py"
# What code without an import would name: a module to start as a process, the library, the folder of the log.
_IN_TEXTS = re.compile(r"sink[./]delta|\bdeltalake\b|_delta_log")


def outsiders() -> list[Source]:
    """The modules that must not know Delta."""
    return [
        module
        for module in MODULES
        if not f"{folder_of(module.path)}/".startswith(f"{HOME}/") and module.path != REGISTRY
    ]


def places(module: Source) -> Iterator[str]:
    """Where a module uses Delta: its imports, and the texts of its code. Comments and docstrings may name it."""
    for line, name in imports(module):
        if name.startswith(("catchment.sink.delta", "deltalake")):
            yield f"{module.name}:{line}: imports {name}"
    docstrings = {line for line, _ in module.docstrings}
    for node in module.nodes:
        match node:
            case ast.Constant(value=str(text)) if node.lineno not in docstrings:
                if found := _IN_TEXTS.search(text):
                    yield f"{module.name}:{node.lineno}: names {found[0]}"


def test_nothing_outside_uses_delta() -> None:
    found = [place for module in outsiders() for place in places(module)]
    assert not found, "\n".join(found)
    registry = next(module for module in MODULES if module.path == REGISTRY)
    assert list(places(registry)), "it names every sink"
    assert len(outsiders()) + 1 == sum(HOME not in module.name for module in MODULES)


def test_the_rule_of_delta() -> None:
    """Planted uses, each with how many of them are found."""
    planted = {
        "from catchment.sink.delta.epochs.table import EpochsTable": 1,
        "from catchment.sink import delta": 1,
        "import catchment.sink.delta": 1,
        "def f():\n    from deltalake import DeltaTable": 1,
        'start("-m", "catchment.sink.delta.upkeep.process")': 1,
        'Path(lake) / "_delta_log"': 1,
        "# Delta compares lower case": 0,
        '"""What comes\nfrom Delta, and its _delta_log."""': 0,
        "for delta in manifest.deltas:\n    TableDelta(delta)": 0,
        "from datetime import timedelta": 0,
        "from catchment.sink.port import Sink": 0,
    }
    found = {text: len(list(places(Source(PACKAGE / "feed" / "x.py", text)))) for text in planted}
    assert found == planted
