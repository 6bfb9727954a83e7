"""The source files of the project, each of which a run reads and parses once."""

import ast
import io
import tokenize
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "catchment"
CODE = ("src", "tests", "bench", "examples")


@dataclass(frozen=True)
class Source:
    """The text of a file, and what Python's parser makes of it."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The path from the root of the project on."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def tree(self) -> ast.Module:
        """The module. Declarations of Cython (.pxd) are not Python, and cannot be parsed."""
        return ast.parse(self.text, self.name)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, which most checks go through."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        """All functions and methods, those inside others too."""
        return tuple(node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    @cached_property
    def docstrings(self) -> tuple[tuple[int, str], ...]:
        """Each text that is a statement by itself, with its line: also that below an attribute."""
        if self.path.suffix == ".pxd":
            return ()
        found = (node.value for node in self.nodes if isinstance(node, ast.Expr))
        return tuple(
            (value.lineno, value.value)
            for value in found
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        )

    @cached_property
    def comments(self) -> tuple[tuple[int, str], ...]:
        """Each comment, with its line. This takes as long as all the rest."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return tuple((one.start[0], one.string) for one in tokens if one.type == tokenize.COMMENT)


@cache
def sources(folder: str, kinds: tuple[str, ...] = (".py",)) -> tuple[Source, ...]:
    """The files of these kinds in a folder and all folders in it, apart from generated ones."""
    return tuple(
        _source(path)
        for path in sorted((ROOT / folder).rglob("*.*"))
        if path.suffix in kinds and not path.stem.endswith("_pb2")
    )


@cache
def _source(path: Path) -> Source:
    return Source(path, path.read_text())
