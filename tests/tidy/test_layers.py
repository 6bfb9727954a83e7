"""Which folder may import which: the floors, and where clocks, threads and processes have no place."""

import ast

from tests.tidy.floors import ALL_THAT_IMPORT, FLOOR, MODULES, folder_of, imported_folder, imports
from tests.tidy.sources import PACKAGE, Source

# Clocks, threads and processes have no place in what these folders hold: values, rules, and bytes to rows.
EFFECTS = {"asyncio", "concurrent", "multiprocessing", "sched", "signal", "subprocess", "threading", "time"}
PURE = {"model", "config", "schema", "rewind", "epoch", "api", "serve/rules"}
# These get clocks and threads from `world` alone, so that the simulator can replace them.
BY_THE_DOOR = {"source", "readers", "feed", "state"}


def faults(module: Source) -> list[str]:
    """What a module imports against the rules."""
    folder = folder_of(module.path)
    found = []
    for line, name in imports(module):
        other = imported_folder(name)
        if other in FLOOR and folder in FLOOR and other != folder and FLOOR[other] >= FLOOR[folder]:
            found.append(f"{module.name}:{line}: {folder} must not import {other}")
        effect, top = name.partition(".")[0], folder.partition("/")[0]
        if effect in EFFECTS and (
            {top, folder} & {*PURE, "wire"} or (top in BY_THE_DOOR and effect != "signal")
        ):
            found.append(f"{module.name}:{line}: {name} has no place in {folder}")
    return found


def test_every_folder_imports_only_what_it_may() -> None:
    found = [fault for module in ALL_THAT_IMPORT for fault in faults(module)]
    assert not found, "\n".join(found)


def test_the_rule_of_imports() -> None:
    """Planted imports: which are found, and which are allowed."""
    wrong = []
    for place, text, ok in _PLANTED:
        if bool(faults(Source(PACKAGE / place, text))) is ok:
            wrong.append(f"{place}: {text!r} is {'refused' if ok else 'allowed'}")
    assert not wrong, "\n".join(wrong)


_PLANTED: list[tuple[str, str, bool]] = [
    ("model/x.py", "import msgspec", True),
    ("model/x.py", "from catchment.wire.cells.types import A", False),
    ("model/x.py", "def f():\n    import time", False),
    ("wire/log/x.py", "from catchment.sink.delta import files", False),
    ("wire/log/x.py", "from catchment.wire.cells.types import A", True),
    ("wire/cells/x.py", "from catchment.wire.log.facts import A", False),
    ("wire/cells/x.py", "from cython.cimports.catchment.wire.log.facts import A", False),
    ("wire/cells/x.pyi", "from catchment.wire.log.facts import A", False),
    ("wire/cells/x.pyi", "from catchment.model.table import Table", True),
    ("wire/cells/x.pxd", "from libc.stdint cimport int32_t\nfrom catchment.wire.log.facts cimport A", False),
    ("wire/cells/x.pxd", "cimport catchment.wire.log.facts", False),
    ("wire/log/x.pxd", "from catchment.wire.cells.plans cimport Plan", True),
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
]


def test_every_folder_has_a_floor() -> None:
    code = {folder_of(module.path) for module in MODULES if module.path.name != "__init__.py"}
    assert code == set(FLOOR)


def code_in(init: Source) -> list[str]:
    """The statements of an __init__.py that do more than import names and give them values."""
    plain = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    return [
        f"{init.name}:{statement.lineno}: {type(statement).__name__}"
        for statement in init.tree.body
        if not isinstance(statement, plain)
    ]


def test_no_code_in_init_files() -> None:
    # The package itself imports `read` when somebody asks for it, which takes code.
    inits = [one for one in MODULES if one.path.name == "__init__.py" and one.path.parent != PACKAGE]
    found = [line for init in inits for line in code_in(init)]
    assert not found, "\n".join(found)
    planted = Source(PACKAGE / "feed" / "__init__.py", '"""Feed."""\nA = 1\ndef f(): pass\n')
    assert code_in(planted) == ["src/catchment/feed/__init__.py:3: FunctionDef"]
