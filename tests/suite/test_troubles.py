"""docs/troubles.md: each trouble has a scope that errors have, and tests that exist."""

import re

import pytest

from catchment.model.errors import Scope
from tests.suite.test_map import exists
from tests.tidy.sources import ROOT

PAGE = ROOT / "docs" / "troubles.md"
_HEAD = "| trouble | scope | what waits or is stale | how it heals | shown by |"
_CODE = re.compile(r"`([^`]+::[^`]+)`")
_LEAST = 40


def faults(page: str) -> list[str]:
    """What is wrong with the rows of a page: columns, scopes, tests, and troubles that are listed twice."""
    found, seen = [], set()
    for line in page.splitlines():
        if not line.startswith("| ") or line == _HEAD or line.startswith("| ---"):
            continue
        trouble, scope, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        tests = _CODE.findall(cells[-1]) if len(cells) == 3 else []
        if scope not in {one.value for one in Scope} or not all(cells) or not tests:
            found.append(f"{trouble}: it lacks a scope, a cell or a test")
        found += [f"{trouble}: there is no test {test}" for test in tests if not exists(test)]
        if trouble in seen:
            found.append(f"{trouble}: it is listed twice")
        seen.add(trouble)
    return found


@pytest.mark.check
def test_every_trouble_has_tests_that_exist() -> None:
    page = PAGE.read_text()
    assert faults(page) == []
    first, _ = page.split(_HEAD)[1:]
    assert first.count("\n| ") > _LEAST


@pytest.mark.check
@pytest.mark.parametrize(
    "row",
    [
        "| a | chunk | b | c | `promises/exact/test_bytes.py::test_that_is_not_there` |",
        "| a | planet | b | c | `promises/exact/test_bytes.py::test_others_go_on` |",
        "| a | chunk | b | | `promises/exact/test_bytes.py::test_others_go_on` |",
        "| a | chunk | b | c | by hand |",
    ],
)
def test_a_row_that_is_wrong_is_found(row: str) -> None:
    assert len(faults(f"{_HEAD}\n| --- | --- |\n{row}\n")) == 1
