"""Which tier a test belongs to: a rule over its folder and its marks (docs/testing.md says why).

* `check`: the rules of the house and of this folder. `make check` runs them, beside lint and types.
* `test`: the layers, the simulator, and of each promise the one test that proves it on real servers
  (`@pytest.mark.promise`). `make test` runs it, and so does every landing.
* `wide`: all else, in six slices. A landing runs one of them.
* `long`: endurance runs, by hand (`make test-long`).
"""

from enum import Enum
from pathlib import PurePath

import pytest

from tests.suite.slices import slice_of


class Tier(Enum):
    """A part of the suite."""

    CHECK = "check"
    TEST = "test"
    WIDE = "wide"
    LONG = "long"


# The tier of a test without a mark, by its folder below tests/; of any other folder it is `test`.
_OF_FOLDERS = {"promises": Tier.WIDE, "mistakes": Tier.WIDE, "tidy": Tier.CHECK, "suite": Tier.CHECK}


def tier_of(item: pytest.Item) -> Tier:
    """The tier of a collected test."""
    marks = {mark.name for mark in item.iter_markers()}
    if "long" in marks:
        return Tier.LONG
    if "check" in marks:
        return Tier.CHECK
    if "wide" in marks:
        return Tier.WIDE
    if "promise" in marks:
        return Tier.TEST
    folder = PurePath(file_of(item.nodeid)).parts[1]
    return _OF_FOLDERS.get(folder, Tier.TEST)


def file_of(nodeid: str) -> str:
    """The path of a test's file, from the root of the repository."""
    return nodeid.partition("::")[0]


def unit_of(item: pytest.Item) -> str:
    """What is never divided among slices: one test, or its whole file where tests share what is expensive to make."""
    return file_of(item.nodeid) if item.get_closest_marker("whole") else item.nodeid


def slice_of_item(item: pytest.Item) -> int:
    """The slice of a wide test."""
    return slice_of(unit_of(item))
