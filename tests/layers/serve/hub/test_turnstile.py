"""The turnstile by itself: few at a time, in their order, and nobody waits for those that are gone."""

import pytest

from catchment.serve.hub import turnstile
from catchment.serve.hub.turnstile import Turnstile


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Turnstile:
    """Of two at a time, who are quickly taken for gone."""
    monkeypatch.setattr(turnstile, "_LOOK_SECONDS", 0.01)
    return Turnstile(2)


def test_so_many_at_a_time_in_their_order(gate: Turnstile) -> None:
    assert [gate.enter(who, 0) for who in "abcd"] == [True, True, False, False]
    assert gate.enter("a", 0)
    gate.leave("b")
    assert not gate.enter("d", 0), "c has waited for longer"
    assert gate.enter("c", 0)
    gate.leave("a")
    assert gate.enter("d", 0)


def test_nobody_waits_for_whose_client_does_not_read(
    gate: Turnstile, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [gate.enter(who, 0) for who in "ab"] == [True, True]
    gate.gives("a")
    monkeypatch.setattr(turnstile, "_STALE_SECONDS", -1.0)
    assert gate.enter("c", 0)
    assert not gate.enter("d", 0), "b has a long turn"
    assert not gate.enter("a", 0), "it comes again behind the others"


def test_nobody_waits_for_who_does_not_ask_again(gate: Turnstile, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [gate.enter(who, 0) for who in "abc"] == [True, True, False]
    gate.leave("a")
    monkeypatch.setattr(turnstile, "_STALE_SECONDS", -1.0)
    assert gate.enter("d", 0)


def test_who_leaves_has_no_place(gate: Turnstile) -> None:
    assert [gate.enter(who, 0) for who in "abc"] == [True, True, False]
    gate.leave("c")
    gate.leave("a")
    assert [gate.enter(who, 0) for who in "dc"] == [True, False]
