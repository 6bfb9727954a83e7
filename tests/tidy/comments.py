"""Sentences of comments and docstrings that are hard to read: `python -m tests.tidy.comments` lists them.

A docstring is parted as a page of Markdown is (tests/tidy/sentences.py); comments on following lines are one paragraph.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.floors import MODULES, ROOT
from tests.tidy.sentences import Sentence, too_long

WORDS_MAX = 25


def said(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring and each block of comments, with the line on which it begins."""
    yield from _docstrings(ast.parse(source))
    yield from _comments(source)


def long_sentences(source: str, words_max: int = WORDS_MAX) -> list[Sentence]:
    """The sentences of a module's docstrings and comments that have more words, in the order of the file."""
    found = [
        sentence._replace(line=line + sentence.line - 1)
        for line, text in said(source)
        for sentence in too_long(text, words_max)
    ]
    return sorted(found)


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text


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


def main(paths: list[Path]) -> None:
    """Print the long sentences of these files with file, line and number of words."""
    for path in paths:
        for sentence in long_sentences(path.read_text()):
            name = path.resolve().relative_to(ROOT)
            print(f"{name}:{sentence.line}: {sentence.words} words: {sentence.text}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or MODULES)
