"""The house of Catchment: which folder stands on which floor, and the picture of it in docs/architecture.md.

A folder may import folders on the floors below its own, and nothing else. `python -m tests.tidy.floors` draws the
picture again from the imports as they are.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import PACKAGE, ROOT, Source, sources

MODULES = sources("src")
# Stubs and declarations of Cython import, too.
ALL_THAT_IMPORT = sources("src", (".py", ".pyi", ".pxd"))
PAGE = ROOT / "docs" / "architecture.md"
_BEGIN, _END = "<!-- drawn by tests/tidy/floors.py -->", "<!-- end of the drawing -->"

# From the ground up.
FLOORS = (
    ("model",),
    ("world",),
    ("config", "wire/cells", "wire/keys"),
    ("wire/json", "wire/packets"),
    ("wire/log",),
    ("schema", "rewind"),
    ("epoch", "serve/rules"),
    ("sink", "sink/storage"),
    ("source", "sink/delta"),
    ("state", "sink/delta/log"),
    ("readers", "sink/delta/tail", "sink/delta/epochs"),
    ("engine", "watch", "sink/delta/plain"),
    ("sink/delta/kept", "page"),
    ("sink/delta/reading", "sink/delta/erasure"),
    ("sink/delta/upkeep",),
    ("sink/registry",),
    ("doctor", "api"),
    ("feed", "serve/changes"),
    ("serve/spark_source", "serve/stream", "screen"),
    ("demo", "serve/formats", "serve/hub"),
    ("serve/flight",),
    ("serve/server",),
    ("cli",),
)
FLOOR = {folder: number for number, floor in enumerate(FLOORS) for folder in floor}

# Folders that hold folders only, and the package itself, which hands out what `api` has.
_HALLS = {"", "wire", "serve"}
_CIMPORT = re.compile(r"from ([\w.]+) cimport|cimport ([\w.]+)")


def folder_of(module: Path) -> str:
    """`sink/delta/tail` for src/catchment/sink/delta/tail/apply.py, empty for the package itself."""
    folder = module.relative_to(PACKAGE).parent.as_posix()
    return "" if folder == "." else folder


def imports(module: Source) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, those inside functions and type checks too."""
    if module.path.suffix == ".pxd":
        for number, line in enumerate(module.text.splitlines(), 1):
            if found := _CIMPORT.match(line):
                yield number, found[1] or found[2]
        return
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def imported_folder(name: str) -> str | None:
    """The folder that an import of `catchment.sink.delta.tail.apply` reaches into; None for other packages."""
    root, *parts = name.removeprefix("cython.cimports.").split(".")
    if root != "catchment":
        return None
    known = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((folder for folder in known if folder in FLOOR or folder in _HALLS), "")


def arrows() -> dict[str, set[str]]:
    """The folders that each folder imports."""
    found: dict[str, set[str]] = {folder: set() for folder in FLOOR}
    for module in MODULES:
        folder = folder_of(module.path)
        if folder in _HALLS:
            continue
        for _, name in imports(module):
            other = imported_folder(name)
            if other is not None and other != folder:
                found[folder].add(other)
    return found


def drawing() -> str:
    """The floors from the roof down, with what each folder is for and what it imports."""
    found = arrows()
    purpose = {module.path.parent: module.tree for module in MODULES if module.path.name == "__init__.py"}
    lines = ["| floor | folder | what it does | imports |", "| ---: | --- | --- | --- |"]
    for number, floor in reversed(list(enumerate(FLOORS, 1))):
        for folder in floor:
            text = ast.get_docstring(purpose[PACKAGE / folder]) or ""
            below = ", ".join(f"`{other}`" for other in sorted(found[folder], key=lambda f: (-FLOOR[f], f)))
            lines.append(f"| {number} | `{folder}` | {' '.join(text.split())} | {below} |")
    return "\n".join(lines)


def page() -> str:
    """docs/architecture.md with the drawing as it is now."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{drawing()}\n\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
