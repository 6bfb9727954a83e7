"""Slices are stable and even, and every tier is where the rule says."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.suite import costs, drawn
from tests.suite.slices import SALT, SLICES, imbalance, loads, slice_of
from tests.suite.tiers import Tier, slice_of_item, tier_of, unit_of

_UNEVEN_MAX = 0.15


def item(nodeid: str, *marks: str) -> Any:
    """What the rules look at of a collected test."""
    found = [SimpleNamespace(name=name) for name in marks]

    def closest(name: str) -> Any:
        return next((mark for mark in found if mark.name == name), None)

    return SimpleNamespace(nodeid=nodeid, iter_markers=lambda name=None: found, get_closest_marker=closest)


@pytest.mark.parametrize(
    ("nodeid", "marks", "tier"),
    [
        ("tests/layers/a/test_b.py::test_c[1]", (), Tier.TEST),
        ("tests/layers/a/test_b.py::test_c", ("wide",), Tier.WIDE),
        ("tests/world/sim/test_seeds.py::test_c", ("long",), Tier.LONG),
        ("tests/promises/exact/test_b.py::test_c", (), Tier.WIDE),
        ("tests/tidy/test_b.py::test_c", (), Tier.CHECK),
        ("tests/tidy/test_b.py::test_c", ("long",), Tier.LONG),
        ("tests/promises/exact/test_b.py::test_c", ("promise",), Tier.TEST),
        ("tests/promises/exact/test_b.py::test_c", ("promise", "long"), Tier.LONG),
        ("tests/promises/exact/test_b.py::test_c[a]", ("promise", "wide"), Tier.WIDE),
    ],
)
def test_the_rule_of_tiers(nodeid: str, marks: tuple[str, ...], tier: Tier) -> None:
    assert tier_of(item(nodeid, *marks)) is tier


def test_a_file_that_stays_whole_is_one_unit() -> None:
    names = [f"tests/promises/a/test_b.py::test_{number}" for number in range(50)]
    assert len({slice_of_item(item(name, "whole")) for name in names}) == 1
    assert len({slice_of_item(item(name)) for name in names}) == SLICES
    assert unit_of(item(names[0], "whole")) == "tests/promises/a/test_b.py"


def test_a_name_stays_in_its_slice() -> None:
    """The hash is no business of Python's: another version, process or machine gives the same slices."""
    assert [slice_of(f"test_{number}", salt=0) for number in range(8)] == [5, 5, 5, 6, 5, 1, 4, 1]


def test_the_slices_cost_about_the_same() -> None:
    units = costs.recorded().wide_units
    uneven = imbalance(units, SALT)
    assert uneven < _UNEVEN_MAX, f"{loads(units)}: python -m tests.suite.slices proposes another salt"


def test_a_run_draws_the_same_again_and_another_one_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(drawn.VARIABLE, "1")
    first = [drawn.drawn(purpose, 1000) for purpose in ("a", "b", "a")]
    assert first[0] == first[2] != first[1]
    monkeypatch.setenv(drawn.VARIABLE, "2")
    assert drawn.drawn("a", 1000) != first[0]
