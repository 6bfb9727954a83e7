"""The turnstile by itself: few at a time, in their order, and nobody waits for those that are slow or gone."""

from collections.abc import Callable

import pytest

from catchment import world
from catchment.serve.hub import turnstile
from catchment.serve.hub.turnstile import Turnstile

Pass = Callable[[float], None]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Turnstile:
    """Of two at a time."""
    monkeypatch.setattr(turnstile, "_LOOK_SECONDS", 0.01)
    return Turnstile(2)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """`passes(seconds)`: on a clock that stands still otherwise."""
    now = [1000.0]
    monkeypatch.setattr(world, "steady_seconds", lambda: now[0])

    def go(seconds: float) -> None:
        now[0] += seconds

    return go


def test_so_many_at_a_time_in_their_order(gate: Turnstile) -> None:
    assert [gate.enter(who, 0) for who in "abcd"] == [True, True, False, False]
    assert gate.enter("a", 0)
    gate.leave("b")
    assert not gate.enter("d", 0), "c has waited for longer"
    assert gate.enter("c", 0)
    gate.leave("a")
    assert gate.enter("d", 0)


def test_the_next_ones_come_when_those_inside_take_longer(
    passes: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "_LOOK_SECONDS", 0.01)
    gate = Turnstile(5, fresh=2)
    assert [gate.enter(who, 0) for who in "abcd"] == [True, True, False, False]
    gate.leave("a")
    assert [gate.enter(who, 0) for who in "cd"] == [True, False]
    for who in "bcd":
        gate.given(who)
    passes(5)
    assert [gate.enter(who, 0) for who in "defg"] == [True, True, False, False]
    passes(5)
    assert [gate.enter(who, 0) for who in "fg"] == [True, False], "no more than five in all"
    gate.leave("b")
    assert gate.enter("g", 0)


def test_nobody_waits_for_a_client_that_takes_nothing(gate: Turnstile, passes: Pass) -> None:
    assert [gate.enter(who, 0) for who in "ab"] == [True, True]
    gate.gives("a")
    passes(1.9)
    assert not gate.enter("c", 0)
    passes(0.2)
    assert gate.enter("c", 0)
    passes(60)
    assert not gate.enter("d", 0), "b and c have long turns"
    gate.given("a")
    assert not gate.enter("a", 0), "it comes again behind the others"
    gate.leave("b")
    assert gate.enter("d", 0)


def test_a_slow_client_whose_place_is_taken_stands_in_line_again(gate: Turnstile, passes: Pass) -> None:
    assert [gate.enter(who, 0) for who in "ab"] == [True, True]
    passes(10)
    gate.gives("a")
    passes(2.1)
    assert gate.enter("c", 0)
    gate.given("a")
    assert not gate.enter("a", 0), "b and c read now, and two may"
    gate.leave("b")
    assert gate.enter("a", 0)


@pytest.mark.parametrize(("works", "holds_up"), [(1.5, True), (0.5, False)])
def test_nobody_waits_for_a_client_that_takes_little_by_little(
    gate: Turnstile, passes: Pass, works: float, holds_up: bool
) -> None:
    assert [gate.enter(who, 0) for who in "ab"] == [True, True]
    for _ in range(5):
        passes(works)
        gate.gives("a")
        passes(1.0)
        gate.given("a")
    assert gate.enter("c", 0) is not holds_up
    assert gate.enter("a", 0) is holds_up


def test_nobody_waits_for_who_does_not_ask_again(gate: Turnstile, passes: Pass) -> None:
    assert [gate.enter(who, 0) for who in "abc"] == [True, True, False]
    gate.leave("a")
    passes(1.0)
    assert not gate.enter("d", 0)
    passes(1.5)
    assert gate.enter("d", 0)


def test_who_leaves_has_no_place(gate: Turnstile) -> None:
    assert [gate.enter(who, 0) for who in "abc"] == [True, True, False]
    gate.leave("c")
    gate.leave("a")
    assert [gate.enter(who, 0) for who in "dc"] == [True, False]
