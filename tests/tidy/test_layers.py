"""The house's order: floors, effects and sizes, read from the source text."""

import ast
from pathlib import Path

import pytest

from tests.tidy.floors import (
    FLOOR,
    MODULES,
    PACKAGE,
    PAGE,
    ROOT,
    arrows,
    folder_of,
    imported_folder,
    imports,
    page,
)

TESTS = sorted((ROOT / "tests").rglob("*.py"))

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 8

# Clocks, threads and processes have no place in what these folders hold: values, rules, and bytes to rows.
EFFECTS = {"asyncio", "concurrent", "multiprocessing", "sched", "signal", "subprocess", "threading", "time"}
PURE = {"model", "config", "schema", "rewind", "epoch", "api", "serve/rules"}
# These have clocks and threads by the door of `world` alone, so that a simulator can turn them.
BY_THE_DOOR = {"source", "readers", "feed", "state"}


def faults(module: Path, source: str) -> list[str]:
    """What a module with this text imports against the rules."""
    folder = folder_of(module)
    found = []
    for line, name in imports(ast.parse(source)):
        other = imported_folder(name)
        if other in FLOOR and folder in FLOOR and other != folder and FLOOR[other] >= FLOOR[folder]:
            found.append(f"{module.name}:{line}: {folder} must not import {other}")
        effect, top = name.partition(".")[0], folder.partition("/")[0]
        if effect in EFFECTS and (
            {top, folder} & {*PURE, "wire"} or (top in BY_THE_DOOR and effect != "signal")
        ):
            found.append(f"{module.name}:{line}: {name} has no place in {folder}")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_layers(module: Path) -> None:
    assert faults(module, module.read_text()) == []


@pytest.mark.parametrize(
    ("place", "source", "ok"),
    [
        ("model/x.py", "import msgspec", True),
        ("model/x.py", "from catchment.wire.cells.types import A", False),
        ("model/x.py", "def f():\n    import time", False),
        ("wire/log/x.py", "from catchment.sink.delta import files", False),
        ("wire/log/x.py", "from catchment.wire.cells.types import A", True),
        ("wire/cells/x.py", "from catchment.wire.log.facts import A", False),
        ("sink/delta/x.py", "from catchment.source.session import connect", False),
        ("sink/delta/x.py", "from catchment.sink.delta.files import a", True),
        ("sink/delta/x.py", "from catchment.sink.delta.upkeep.process import a", False),
        ("rewind/x.py", "from catchment.schema.ddl import Stop", False),
        ("epoch/x.py", "import time", False),
        ("config/x.py", "from catchment.state.store import Store", False),
        ("doctor/x.py", "from catchment.source.session import connect", True),
        ("doctor/x.py", "from catchment.feed.clock import Clock", False),
        ("feed/x.py", "from catchment.cli.main import main", False),
        ("feed/x.py", "import time, threading", False),
        ("feed/x.py", "from catchment import world", True),
        ("engine/x.py", "import time, threading", True),
        ("readers/x.py", "from catchment.engine.near import Near", False),
        ("serve/rules/x.py", "import time", False),
        ("serve/rules/x.py", "from catchment.source.session import connect", False),
        ("serve/spark_source/x.py", "from catchment.feed.clock import Clock", True),
    ],
)
def test_the_rule_itself(place: str, source: str, ok: bool) -> None:
    assert (faults(PACKAGE / place, source) == []) is ok


def test_every_folder_has_a_floor() -> None:
    code = {folder_of(module) for module in MODULES if module.name != "__init__.py"}
    assert code == set(FLOOR)


def test_no_two_folders_import_one_another() -> None:
    found = arrows()
    assert [(a, b) for a in found for b in found[a] if a in found.get(b, ())] == []


def test_the_picture_in_the_docs_is_that_of_the_code() -> None:
    assert PAGE.read_text() == page(), "draw it anew: python -m tests.tidy.floors"


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


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_function_takes_many_parameters(module: Path) -> None:
    """Where a function wants more, a value is missing. The decoder's are those of a C struct."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and module.name != "decoder.py":
            named = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            count = len([name for name in named if name not in ("self", "cls")])
            assert count <= PARAMETERS_MAX, f"{node.name} at line {node.lineno} takes {count}"
