"""An hour of lag and rates: bounded, right in its times, and no wider for clocks that jump."""

from hypothesis import given
from hypothesis import strategies as st

from catchment.page.history import STEP_SECONDS, STEPS_MAX, History

STEP_US = STEP_SECONDS * 1_000_000
BEGAN = 1_000_000 * STEP_US


def test_steps() -> None:
    history = History()
    for second in range(3 * STEP_SECONDS + 1):
        history.look(BEGAN + second * 1_000_000, 10 - second / 10)
        history.count(100, 20)
    series = history.series()
    assert series.until_us == BEGAN + 3 * STEP_US
    assert series.lag == [10, 9.5, 9]
    assert series.rows == [100, 100, 100]
    assert series.changes == [20, 20, 20]
    assert series.epochs == [1, 1, 1]


def test_a_gap_is_filled_and_its_rows_are_spread_over_it() -> None:
    history = History()
    history.look(BEGAN, 1)
    history.count(STEP_SECONDS * 40, 0)
    history.look(BEGAN + 4 * STEP_US, 7)
    assert history.series().lag == [1] * 4
    assert history.series().rows == [10] * 4


@given(
    st.lists(st.tuples(st.integers(-(10**10), 10**11), st.integers(0, 10**9), st.floats(0, 1e6)), max_size=50)
)
def test_it_is_bounded_whatever_the_clock_does(looks: list[tuple[int, int, float]]) -> None:
    history, now = History(), BEGAN
    for later, rows, lag in looks:
        now = max(now + later, 0)
        history.look(now, lag)
        history.count(rows, rows)
    series = history.series()
    lengths = {len(series.lag), len(series.rows), len(series.changes), len(series.epochs)}
    assert len(lengths) == 1
    assert lengths.pop() <= STEPS_MAX
    assert all(value >= 0 for values in (series.lag, series.rows, series.epochs) for value in values)


def test_an_hour_and_no_more() -> None:
    history = History()
    for step in range(2 * STEPS_MAX):
        history.look(BEGAN + step * STEP_US, step)
    assert history.series().lag == list(range(STEPS_MAX - 1, 2 * STEPS_MAX - 1))
