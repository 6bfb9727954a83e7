"""Tests that share an expensive fixture are one group, divided only where it would be longer than a process's share."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.suite.costs import Costs
from tests.suite.order import arrange


def item(name: str, *fixtures: str, scope: str = "session") -> Any:
    """What the order looks at of a collected test."""
    marks: list[pytest.MarkDecorator] = []
    definitions = {fixture: [SimpleNamespace(scope=scope, argname=fixture)] for fixture in fixtures}
    return SimpleNamespace(
        nodeid=name,
        _fixtureinfo=SimpleNamespace(names_closure=list(fixtures), name2fixturedefs=definitions),
        get_closest_marker=lambda _: None,
        add_marker=marks.append,
        marks=marks,
    )


def groups(items: list[Any]) -> list[str]:
    """The group of each test in the order of the run, or its own name."""
    return [one.marks[0].args[0] if one.marks else one.nodeid for one in items]


def test_one_spark_for_all_where_they_fit_into_a_share() -> None:
    items = [item("a::1", "spark"), item("b::2"), item("c::3", "spark", "shards"), item("d::4", "shards")]
    arrange(items, Costs({"b::2": 9.0, "d::4": 5.0}, frozenset()), 3)
    assert groups(items) == ["b::2", "d::4", "spark", "spark"]


def test_a_group_beyond_a_share_is_divided_by_files() -> None:
    items = [item(f"{file}::{number}", "spark") for file in "abcd" for number in range(3)]
    arrange(items, Costs({}, frozenset()), 2)
    assert sorted(groups(items)) == ["spark"] * 6 + ["spark-1"] * 6
    for file in "abcd":
        assert (
            len({name for name, one in zip(groups(items), items, strict=True) if one.nodeid[0] == file}) == 1
        )


def test_fixtures_of_a_file_are_made_once() -> None:
    items = [
        item("a.py::1", "nameless", scope="module"),
        item("a.py::2", "nameless", scope="module"),
        item("a.py::3"),
    ]
    arrange(items, Costs({}, frozenset()), 3)
    assert sorted(groups(items)) == ["a.py", "a.py", "a.py::3"]
