"""A budget lets its rate through, over any stretch of time, and no more."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.budget import BURST_SECONDS, UNLIMITED, Allowance, Budget


def test_it_is_full_at_first_and_no_fuller_later() -> None:
    budget = Budget.full(100, 5.0)
    assert budget.level == 200
    assert budget.later(1000.0).level == 200


def test_what_is_spent_comes_in_again_at_the_rate() -> None:
    budget = Budget.full(100, 0.0).spent(200)
    assert not budget.is_worth_it
    assert not budget.later(0.9).is_worth_it
    assert budget.later(1.0).is_worth_it
    assert budget.later(1.0).spent(-30).level == 130


def test_what_was_spent_ahead_is_waited_for() -> None:
    budget = Budget.full(100, 0.0).spent(1200)
    assert budget.seconds_ahead == 10
    assert not budget.later(10.5).is_worth_it
    assert budget.later(11.0).is_worth_it


def test_another_rate_keeps_what_was_spent_ahead() -> None:
    ahead = Budget.full(100, 0.0).spent(1200)
    assert ahead.at_rate(1000).seconds_ahead == 1
    assert Budget.full(1000, 0.0).at_rate(10).level == 20


def test_a_clock_that_goes_backwards_brings_nothing() -> None:
    budget = Budget.full(100, 10.0).spent(200).later(5.0)
    assert (budget.level, budget.at) == (0, 10.0)


@given(
    rate=st.integers(1, 10**6),
    turns=st.lists(st.tuples(st.floats(0, 30), st.floats(0, 3, exclude_max=True)), min_size=1, max_size=30),
)
def test_no_more_than_the_rate(rate: int, turns: list[tuple[float, float]]) -> None:
    """Whoever spends all that is there, and now and then up to three times as much, stays within the rate in the long
    run."""
    now, spent, budget = 0.0, 0.0, Budget.full(rate, 0.0)
    over = 0.0
    for pause, share in turns:
        now += pause
        budget = budget.later(now)
        if budget.is_worth_it:
            amount = budget.level * share
            over = max(over, amount)
            budget, spent = budget.spent(amount), spent + amount
        assert spent <= rate * (now + BURST_SECONDS) + over + 1e-6 * rate


def test_an_allowance() -> None:
    left = Allowance(rows=1000, bytes=5000)
    assert left.rows_of(100) == 50
    assert left.rows_of(0) == 1000
    assert left.rows_of(1e9) == 1, "a copy of long rows goes on"
    assert not left.is_used_up
    assert left.without(50, 100).is_used_up
    assert left.without(1000, 1).is_used_up
    assert UNLIMITED.rows_of(1e12) == math.inf
    assert not UNLIMITED.without(1e12, 1e12).is_used_up


@pytest.mark.parametrize("rate", [1, 7])
def test_slow_rates_go_on(rate: int) -> None:
    budget = Budget.full(rate, 0.0).spent(2 * rate).later(1.0)
    assert budget.is_worth_it
    assert not Allowance(rows=budget.level).is_used_up
