"""docs/testing.md maps every promise to the test that owns it, and to the mistake that shows that the test can fail."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.mistakes.catalogue import MISTAKES
from tests.tidy.sources import ROOT

TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "testing.md"
_HEAD = "| promise | proven by | planted mistake | the rest |"
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_CODE = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    """A row of the map: the promise, its owner below tests/, and what is named as planted mistakes."""

    promise: str
    owner: str
    mistakes: tuple[str, ...]


def rows(page: str) -> list[Row]:
    """The rows of the tables whose head is that of the map."""
    found, inside = [], False
    for line in page.splitlines():
        if not line.startswith("|"):
            inside = False
        elif line == _HEAD:
            inside = True
        elif inside and not line.startswith("| ---"):
            promise, owner, planted, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            (owner,) = _CODE.findall(owner)
            found.append(Row(_LINK.sub(r"\1", promise), owner, tuple(_CODE.findall(planted))))
    return found


def owners() -> Iterator[tuple[str, str]]:
    """Each promise that a mark names, of a test or of one of its parameters, and the file below tests/ that has it."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if "mark.promise" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Attribute(attr="promise"), args=[ast.Constant(value=promise)]):
                    yield str(promise), path.relative_to(TESTS).as_posix()


def exists(test: str) -> bool:
    """Whether there is such a test function."""
    file, _, function = test.partition("::")
    path = TESTS / file
    return path.exists() and f"def {function.partition('[')[0]}(" in path.read_text()


def test_every_promise_has_one_owner_and_the_map_names_it() -> None:
    mapped = rows(PAGE.read_text())
    assert sorted((row.promise, row.owner.partition("::")[0]) for row in mapped) == sorted(owners())
    assert [row.owner for row in mapped if not exists(row.owner)] == []
    assert len({row.promise for row in mapped}) == len(mapped)


def test_the_planted_mistakes_of_the_map_are_there() -> None:
    """Each is a mistake of the catalogue, or a test that plants one itself."""
    mapped = rows(PAGE.read_text())
    assert [row.promise for row in mapped if not row.mistakes] == []
    names = {mistake.name for mistake in MISTAKES}
    named = {mistake for row in mapped for mistake in row.mistakes}
    assert {mistake for mistake in named - names if not exists(mistake)} == set()


def test_a_mistake_that_an_owner_finds_is_in_its_row() -> None:
    mapped = {row.owner: row.mistakes for row in rows(PAGE.read_text())}
    found = {mistake.name: mistake.found_by.partition("[")[0] for mistake in MISTAKES}
    assert [name for name, owner in found.items() if owner in mapped and name not in mapped[owner]] == []


def test_the_rule_itself() -> None:
    row = "| [a b](c.md) | `x/test_y.py::test_z` | `m n`, `o` | rest |"
    page = f"{_HEAD}\n| --- | --- | --- | --- |\n{row}\n\n| no |\n"
    assert rows(page) == [Row("a b", "x/test_y.py::test_z", ("m n", "o"))]
    assert not exists("x/test_y.py::test_z")
    assert exists("suite/test_map.py::test_the_rule_itself")
