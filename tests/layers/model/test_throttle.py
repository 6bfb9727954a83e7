"""Only a number that is known, and within its limit, lets rows pass."""

import math

import pytest

from catchment.model.throttle import Breach, Check, breach_of


@pytest.mark.parametrize("value", [0, 4.9, 5])
def test_numbers_within_the_limit_pass(value: float) -> None:
    assert breach_of(Check.QUERY, value, 5) is None


@pytest.mark.parametrize("value", [5.1, math.inf, math.nan, None])
def test_all_else_does_not(value: float | None) -> None:
    found = breach_of(Check.REPLICA_LAG, value, 5, "db1b:3306")
    assert found is not None
    assert (found.check, found.limit) == (Check.REPLICA_LAG, 5)
    assert str(found).startswith("replica_lag of db1b:3306 is ")


def test_what_is_said() -> None:
    assert str(breach_of(Check.THREADS_RUNNING, 35, 30)) == "threads_running is 35, and is to be at most 30"
    assert str(breach_of(Check.QUERY, None, 0.5)) == ("query is not known (NULL), and is to be at most 0.5")
    assert str(Breach(Check.FLAG_FILE, "/tmp/wait exists")) == "flag_file /tmp/wait exists"
