"""What is worth a look in code and docs, and fails nothing: `python -m tests.tidy.report` prints it in few lines.

A long function may be right as it is. Nobody should write it in a worse way to stay below a number.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from tests.tidy.named_files import pages
from tests.tidy.sources import CODE, ROOT, Source, sources

FILE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 8
SHOWN = 5

# Words that a native engineer would not write so, each with better ones.
WORDS = {
    r"\banew\b": "again",
    r"\bwhoever\b": "anyone who",
    r"\bbesides\b": "also",
    r"; else\b": "otherwise",
    r"\b(?:is|are) told\b": "gets; or name who says it",
    r"\bgo(?:es)? by\b": "follows, uses",
    r"\bof such\b": "of these; or name them",
}


def long_files(files: Iterable[Source]) -> Iterator[str]:
    """Files with many lines."""
    for file in files:
        lines = len(file.text.splitlines())
        if lines > FILE_LINES:
            yield f"{file.name}: {lines}"


def long_functions(files: Iterable[Source]) -> Iterator[str]:
    """Functions with many lines."""
    for file in files:
        for function in file.functions:
            lines = (function.end_lineno or 0) - function.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{file.name}:{function.lineno}: {function.name} {lines}"


def many_parameters(files: Iterable[Source]) -> Iterator[str]:
    """Functions with many parameters. ruff refuses them in src, bench and examples; a test has its fixtures, too."""
    for file in files:
        for function in file.functions:
            count = len(_parameters(function.args))
            if count > PARAMETERS:
                yield f"{file.name}:{function.lineno}: {function.name} {count}"


def _parameters(arguments: ast.arguments) -> list[str]:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return [one.arg for one in every if one.arg not in ("self", "cls")]


def words(texts: dict[str, str]) -> Iterator[str]:
    """How often each of the words is in texts, and the names of those that have most of them."""
    for pattern, better in WORDS.items():
        found = Counter({name: len(re.findall(pattern, text, re.IGNORECASE)) for name, text in texts.items()})
        if total := found.total():
            most = ", ".join(f"{name} {count}" for name, count in found.most_common(3) if count)
            yield f"{pattern} ({better}): {total}; {most}"


def report() -> Iterator[str]:
    """The lines of the report."""
    files = [file for top in CODE for file in sources(top)]
    texts = {file.name: file.text for file in files if not file.name.startswith("tests/tidy/")}
    texts |= {page.relative_to(ROOT).as_posix(): page.read_text() for page in pages()}
    yield from _section(f"files of more than {FILE_LINES} lines", list(long_files(files)))
    yield from _section(f"functions of more than {FUNCTION_LINES} lines", list(long_functions(files)))
    yield from _section(f"functions with more than {PARAMETERS} parameters", list(many_parameters(files)))
    yield from _section("words that are not idiomatic", list(words(texts)), len(WORDS))


def _section(title: str, found: list[str], shown: int = SHOWN) -> Iterator[str]:
    yield f"{title}: {len(found)}"
    yield from (f"    {line}" for line in islice(found, shown))


if __name__ == "__main__":
    print("\n".join(report()))
