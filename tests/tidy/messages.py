"""Collects everything that Catchment says: `python -m tests.tidy.messages` writes docs/messages.md anew from it.

A message is any text of the code that reads as a sentence: four words or more, and no SQL. It is taken from the source,
not from a list, so that a new one cannot be forgotten. What a message fills in stands in angle brackets.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "messages.md"
SOURCE = ROOT / "src"
WORDS_MIN = 4

_HEAD = """# What Catchment says

Every message of the commands, the log and the doctor, by the file that says it. What is filled in stands in angle
brackets. A change of a message changes this page: read it aloud before you commit it.
"""
_SQL = re.compile(
    r"\s*(SELECT|SHOW|SET|CREATE|INSERT|UPDATE|DELETE|DROP|ALTER|START|GRANT|FLUSH|COPY|WITH|ORDER|WHERE|FROM|EXPLAIN|"
    r"AND|OR|LIMIT|XA|TABLE_SCHEMA|COLUMN_NAME|CAST|UNION|LEFT|REPLACE|CALL)\b"
)
_WORD = re.compile(r"[(\"'`]*[A-Za-z][a-z']+[)\"'`]*[.,;:?]*")
# Descriptions of settings stand in the feed reference, help texts in `--help`, code in no page at all.
_ELSEWHERE = {"Field", "option", "argument", "compile", "Counter", "Gauge", "Histogram"}


def messages() -> dict[str, list[str]]:
    """The messages of each module, in the order of the file; modules without any are left out."""
    found = {}
    for path in sorted(
        set(SOURCE.rglob("*.py")) - set(SOURCE.rglob("*reference.py"))
    ):  # these are pages themselves
        text = path.read_text()
        module = None if "# cython: compiled" in text[:200] else path
        said = list(dict.fromkeys(_said(ast.parse(text), module)))
        if said:
            found[str(path.relative_to(SOURCE / "catchment"))] = said
    return found


def page() -> str:
    """docs/messages.md."""
    parts = [_HEAD]
    for module, said in messages().items():
        parts.append(f"## {module}\n\n" + "\n".join(f"- {message}" for message in said) + "\n")
    return "\n".join(parts) + "\n(This page is written by `python -m tests.tidy.messages`.)\n"


def _said(tree: ast.Module, path: Path | None) -> Iterator[str]:
    names = _constants(path)
    for node in _texts(tree):
        text = " ".join(_rendered(node, names).split())
        words = [word for word in text.split() if _WORD.fullmatch(word)]
        if len(words) >= WORDS_MIN and not _SQL.match(text):
            yield text


def _constants(path: Path | None) -> ModuleType | None:
    """The module, for the values of the constants that its messages name."""
    if path is None or path.name == "__init__.py":
        return None
    return importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))


def _texts(node: ast.AST) -> Iterator[ast.expr]:
    """The outermost texts below a node, without docstrings and without what stands on another page."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Call) and _called(child) in _ELSEWHERE:
            continue
        if _is_text(child):
            assert isinstance(child, ast.expr)
            yield child
        else:
            yield from _texts(child)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _rendered(node: ast.expr, names: ModuleType | None) -> str:
    match node:
        case ast.Constant(value=text):
            return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        case ast.JoinedStr(values=values):
            return "".join(_rendered(value, names) for value in values)
        case ast.FormattedValue(value=value):
            return _rendered(value, names)
        case ast.BinOp(left=left, right=right):
            return _rendered(left, names) + _rendered(right, names)
        case ast.Name(id=name) if isinstance(getattr(names, name, None), str):
            return str(getattr(names, name))
    return f"<{_short(node)}>"


def _short(node: ast.expr) -> str:
    """What a filled-in value is called: the last name in its expression."""
    inner: ast.expr | None = None
    if isinstance(node, ast.Name):
        return node.id.strip("_")
    if isinstance(node, ast.Attribute):
        return node.attr.strip("_")
    if isinstance(node, ast.Call):
        inner = node.args[0] if node.args else node.func
    elif isinstance(node, ast.Subscript):
        inner = node.value
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        inner = node.elt
    return "..." if inner is None else _short(inner)


if __name__ == "__main__":
    PAGE.write_text(page())
