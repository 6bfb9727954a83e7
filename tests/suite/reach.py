"""Which tests a change can break: the import graph, from a test through its helpers down to folders of the source.

Helpers are followed file by file, the source folder by folder (tests/tidy/floors.py has that graph). A test that starts
the `catchment` command depends on the folder `cli`, and so on everything below it.
"""

import ast
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.tidy.floors import arrows, imported_folder
from tests.tidy.sources import ROOT

# A landing has no record of the one before it, so the newest commits stand for what it changes.
COMMITS = 20
_COMMANDS = {"catchment.cli", "catchment.cli.main"}
# What `import catchment` hands out on demand.
_OF_THE_PACKAGE = frozenset({"api", "feed", "serve/stream"})


@dataclass(frozen=True)
class Changed:
    """What the newest commits changed: folders of the source, files of the tests, and all paths."""

    folders: frozenset[str]
    tests: frozenset[str]
    paths: frozenset[str]


@dataclass(frozen=True)
class Reach:
    """What a test's file depends on: folders that it or its helpers import, all folders below these, its helpers."""

    direct: frozenset[str]
    folders: frozenset[str]
    files: frozenset[str]

    def rank(self, changed: Changed) -> tuple[int, int, int] | None:
        """Smaller is more likely to break by the change; None where it cannot."""
        own = len(self.files & changed.tests)
        near = len(self.direct & changed.folders)
        if not own and not self.folders & changed.folders:
            return None
        return -own, -near, len(self.folders)


def changed_by(commits: int = COMMITS) -> Changed:
    """What the newest commits changed; nothing where git knows no history."""
    log = ["git", "-C", str(ROOT), "log", f"--max-count={commits}", "--name-only", "--pretty=format:"]
    done = subprocess.run(log, capture_output=True, text=True, check=False)
    return of_paths(line for line in done.stdout.splitlines() if line)


def of_paths(paths: Iterable[str]) -> Changed:
    """The same for paths from the root of the repository on."""
    all_paths = frozenset(paths)
    folders, tests = set(), set()
    for path in all_paths:
        if path.startswith("src/catchment/"):
            folders.add(imported_folder(".".join(Path(path).with_suffix("").parts[1:])) or "")
        elif path.startswith("tests/") and path.endswith(".py"):
            tests.add(path)
    return Changed(frozenset(folders), frozenset(tests), all_paths)


@cache
def reach_of(file: str) -> Reach:
    """What a test's file, a path from the root of the repository, depends on."""
    files: set[str] = set()
    direct: set[str] = set()
    waiting = [file, *_conftests(file)]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        files.add(path)
        helpers, folders = _imported(path)
        direct |= folders
        waiting += helpers
    return Reach(frozenset(direct), frozenset(_below(direct)), frozenset(files))


def _conftests(file: str) -> list[str]:
    found = [parent / "conftest.py" for parent in Path(file).parents]
    return [path.as_posix() for path in found if (ROOT / path).exists() and len(path.parts) > 2]


@cache
def _imported(file: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The helpers and the source folders that one file imports."""
    helpers: list[str] = []
    folders: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Constant) and node.value in _COMMANDS:
            folders.add("cli")  # it starts `python -m catchment.cli.main`
        for name in _names(node):
            if name.startswith("tests."):
                helpers += _file_of_module(name)
            elif (folder := imported_folder(name)) is not None:
                folders |= {folder} if folder else _OF_THE_PACKAGE
    return tuple(helpers), frozenset(folders)


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _file_of_module(name: str) -> list[str]:
    """The file of `tests.world.judge.compare`: that of the longest part that is a module."""
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        path = Path(*parts[:length]).with_suffix(".py")
        if (ROOT / path).exists():
            return [path.as_posix()]
    return []


@cache
def _floors() -> dict[str, set[str]]:
    return arrows()


def _below(folders: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(folders)
    while waiting:
        folder = waiting.pop()
        if folder not in found:
            found.add(folder)
            waiting += _floors().get(folder, ())
    return found
