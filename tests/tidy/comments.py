"""Sentences of comments and docstrings that are hard to read: `python -m tests.tidy.comments` lists them.

Also the files that comments and docstrings name, which move while nobody reads the comment.

A docstring is parted as a page of Markdown is (tests/tidy/sentences.py); comments on following lines are one paragraph.
A text that stands by itself, such as the one below an attribute, is a docstring here.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.tidy.floors import PACKAGE, ROOT
from tests.tidy.sentences import Sentence, too_long

WORDS_MAX = 25
# Python's parser knows no declarations of Cython, so of these files only the comments are read.
_DECLARATIONS = ".pxd"
_FILE = re.compile(r"[\w/.-]+\.(?:pyi?|pxd|md)\b")


def files() -> list[Path]:
    """All source files of the package: modules, stubs and declarations of Cython."""
    return sorted(path for kind in ("*.py", "*.pyi", "*" + _DECLARATIONS) for path in PACKAGE.rglob(kind))


def long_sentences_of(path: Path) -> list[str]:
    """The long sentences of a file, a line each: where it stands, how many words it has, and its text."""
    whole = path.resolve()
    name = whole.relative_to(ROOT) if whole.is_relative_to(ROOT) else whole
    found = long_sentences(path.read_text(), docstrings=path.suffix != _DECLARATIONS)
    return [f"{name}:{sentence.line}: {sentence.words} words: {sentence.text}" for sentence in found]


def missing_files(source: str, known: Collection[str], *, docstrings: bool = True) -> list[str]:
    """The files that comments and docstrings name and that are none of those `known`, or the end of one's path."""
    named = {name for _, text in said(source, docstrings=docstrings) for name in _FILE.findall(text)}
    return sorted(name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in known))


def files_of_house() -> list[str]:
    """Paths of all files that a comment may name, from the root on."""
    return [
        path.relative_to(ROOT).as_posix()
        for top in ("src", "tests", "docs", "bench")
        for path in (ROOT / top).rglob("*.*")
    ]


def said(source: str, *, docstrings: bool = True) -> Iterator[tuple[int, str]]:
    """Each docstring and each block of comments, with the line on which it begins."""
    if docstrings:
        yield from _docstrings(ast.parse(source))
    yield from _comments(source)


def long_sentences(source: str, words_max: int = WORDS_MAX, *, docstrings: bool = True) -> list[Sentence]:
    """The sentences of a module's docstrings and comments that have more words, in the order of the file."""
    found = [
        sentence._replace(line=line + sentence.line - 1)
        for line, text in said(source, docstrings=docstrings)
        for sentence in too_long(text, words_max)
    ]
    return sorted(found)


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                # Without the indentation of the statement: what stands further in is code.
                yield node.lineno, text.replace("\n" + " " * node.col_offset, "\n")


def _comments(source: str) -> Iterator[tuple[int, str]]:
    block: list[str] = []
    begin, newest, column = 0, -1, -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, at = token.start
        alone = not token.line[:at].strip()
        if block and not (alone and row == newest + 1 and at == column):
            yield begin, "\n".join(block)
            block = []
        if not block:
            begin = row
        block.append(token.string.lstrip("#! "))
        newest, column = row, at
    if block:
        yield begin, "\n".join(block)


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or files():
        for line in long_sentences_of(path):
            print(line)
