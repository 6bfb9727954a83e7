"""The layers of DESIGN section 7, and the house's sizes, read from the source text."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "catchment"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

FLOW = {"flow/capture", "flow/epoch", "flow/rewind", "flow/sink"}  # stages: none imports another one

# What each layer may import of ours, besides itself. Of spark/, the DataSource (source*.py) runs on the
# driver with planner and clock; everything else there runs on executors, below run/.
ALLOWED = {
    "": {"api"},
    "model": set(),
    "wire": {"model"},
    "config": {"model"},
    "flow": set(),
    **{stage: {"model", "wire"} for stage in FLOW},
    "api": {"model", "config", "flow/sink"},
    "spark": {"model", "wire", "config", "api", *FLOW},
    "run": {"model", "wire", "config", "api", "spark", *FLOW},
    "spark/source": {"model", "wire", "config", "api", "spark", "run", *FLOW},
    # The data source, spark/source*.py, drives clock and planner by itself, as a command does.
    "source": {"model", "wire", "config", "run", "spark", *FLOW},
    "cli": {"model", "config", "api", "run", "spark", "demo"},
    "demo": {"model", "config", "api", "run", "spark", "cli"},
}

# Clocks, threads and processes belong to run/, spark/ and what starts them.
EFFECTS = {"asyncio", "concurrent", "multiprocessing", "sched", "signal", "subprocess", "threading", "time"}
WITH_EFFECTS = {"run", "spark", "source", "cli", "demo"}
# Tables commit in a pool of threads, and a Delta commit carries the time (DESIGN section 10).
EXCEPTED = {"flow/sink": {"concurrent", "time"}}


def layer_of(parts: tuple[str, ...]) -> str:
    """`flow/sink` for catchment.flow.sink.apply, `run` for catchment.run.loop, empty for the package
    itself."""
    if parts[:1] == ("flow",) and len(parts) > 1:
        return "/".join(parts[:2])
    if parts[:1] == ("spark",) and len(parts) > 1 and parts[1].startswith("source"):
        return "spark/source"
    return "".join(parts[:1])


def layer_of_file(module: Path) -> str:
    parts = module.relative_to(PACKAGE).with_suffix("").parts
    return layer_of(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, those inside functions and type checks too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def faults(module: Path, source: str) -> list[str]:
    """What a module with this text imports against the rules."""
    layer = layer_of_file(module)
    found = []
    for line, name in imports(ast.parse(source)):
        root, *rest = name.split(".")
        if root == "catchment":
            other = layer_of(tuple(rest))
            if other and other in ALLOWED and other not in {layer, *ALLOWED.get(layer, ())}:
                found.append(f"{module.name}:{line}: {layer} must not import {other}")
        elif root in EFFECTS - EXCEPTED.get(layer, set()) and layer.partition("/")[0] not in WITH_EFFECTS:
            found.append(f"{module.name}:{line}: {root} belongs to run/ and spark/, not to {layer}")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_layers(module: Path) -> None:
    assert faults(module, module.read_text()) == []


@pytest.mark.parametrize(
    ("place", "source", "ok"),
    [
        ("model/x.py", "import msgspec", True),
        ("model/x.py", "from catchment.wire.types import A", False),
        ("model/x.py", "def f():\n    import time", False),
        ("wire/x.py", "from catchment.flow import sink", False),
        ("flow/sink/x.py", "from catchment.flow.capture.connect import connect", False),
        ("flow/sink/x.py", "from catchment.flow.sink.files import a", True),
        ("flow/epoch/x.py", "import time", False),
        ("flow/sink/x.py", "import threading", False),
        ("config/x.py", "from catchment.run.store import Store", False),
        ("run/doctor/x.py", "from catchment.flow.capture.connect import connect", True),
        ("run/x.py", "from catchment.cli.main import main", False),
        ("spark/source_x.py", "from catchment.run.clock import Clock", True),
        ("spark/chunk_x.py", "from catchment.run.clock import Clock", False),
        ("run/x.py", "import time, threading", True),
        ("run/x.py", "from catchment.spark.source import Source", False),
        ("spark/x.py", "from catchment.run.clock import Clock", False),
    ],
)
def test_the_rule_itself(place: str, source: str, ok: bool) -> None:
    assert (faults(PACKAGE / place, source) == []) is ok


def test_every_folder_has_a_layer() -> None:
    assert {layer_of_file(module) for module in MODULES} <= set(ALLOWED)


@pytest.mark.parametrize("module", [*MODULES, *TESTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_sizes(module: Path) -> None:
    source = module.read_text()
    length = len(source.splitlines())
    assert length <= FILE_LINES_MAX, f"{module.name} has {length} lines: part it by what its pieces do"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{node.name} at line {node.lineno} has {lines} lines"


def test_no_code_in_init_files() -> None:
    for module in MODULES:
        # The package itself imports `read` when it is asked for, which takes code.
        if module.name == "__init__.py" and module.parent != PACKAGE:
            body = ast.parse(module.read_text()).body
            plain = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
            assert all(isinstance(statement, plain) for statement in body), module
