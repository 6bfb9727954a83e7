"""What is left of a copy and of a log, and until when: near the truth where it goes steadily."""

from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from catchment.model.position import LogOffset
from catchment.model.progress import THROUGH, Basis, Forecast, together
from catchment.model.refusal import Refusal
from catchment.model.shard import Copy
from catchment.model.table import TableId
from catchment.watch.copies_left import PAUSED, UNCOUNTED, CopiesLeft
from catchment.watch.forecasts import (
    LOG_GROWS,
    LOG_MAY_GROW,
    NO_RATE,
    STANDS_STILL,
    STOOD_STILL,
    Copying,
    all_copied,
    caught_up,
    copied,
    keeps_up,
)
from catchment.watch.growth import WINDOW_SECONDS, Growth, Spread
from catchment.watch.log_left import LogLeft
from catchment.watch.rows_left import Left

T, U = TableId("shop", "t"), TableId("shop", "u")
ROWS = 1_000_000


def steady(
    seconds: float, epoch: float, *, expected: int = ROWS, key: bool = True, spacing: int = 1
) -> Iterator[tuple[float, Copy]]:
    """The copy of ROWS rows that takes so long, as it stands after each epoch; the first one has no row yet."""
    end = (ROWS * spacing,) if key else None
    yield 0.0, Copy(T, None, end, rows_expected=expected)
    now = epoch
    while now < seconds:
        rows = int(ROWS * now / seconds)
        yield now, Copy(T, (rows * spacing,) if key else ("ab",), end, rows=rows, rows_expected=expected)
        now += epoch


def at_quarter(looks: Iterator[tuple[float, Copy]], seconds: float) -> tuple[Copying, float]:
    """What is said when a quarter of the rows is there, and for how long the copy really goes on."""
    left = CopiesLeft()
    for now, copy in looks:
        left.look((copy,), now)
        if copy.rows >= ROWS / 4:
            return left.progress("-80", {}, now), seconds - now
    raise AssertionError("never a quarter")


@given(
    st.floats(20, 20_000),
    st.floats(0.1, 6),
    st.floats(0.2, 5),
    st.integers(1, 1000),
)
def test_a_steady_copy_by_its_keys(seconds: float, epoch: float, wrong: float, spacing: int) -> None:
    """However wrong the catalog is."""
    assume(epoch <= seconds / 40)
    copying, truth = at_quarter(steady(seconds, epoch, expected=int(ROWS * wrong), spacing=spacing), seconds)
    found = copying.forecast
    assert found.low is not None
    assert found.likely is not None
    assert found.high is not None
    assert abs(found.likely - truth) <= 0.3 * truth
    assert 0 <= found.low <= found.likely <= found.high
    (shown,) = copying.shown
    assert shown.basis is Basis.KEYS
    assert shown.expected is not None
    assert abs(shown.expected - ROWS) < ROWS / 50


@given(st.floats(20, 20_000), st.floats(0.1, 6), st.floats(0.9, 1.15))
def test_a_steady_copy_by_the_catalog(seconds: float, epoch: float, wrong: float) -> None:
    """A table whose keys are no integers, of which the catalog is about right."""
    assume(epoch <= seconds / 40)
    copying, truth = at_quarter(steady(seconds, epoch, expected=int(ROWS * wrong), key=False), seconds)
    assert copying.forecast.likely is not None
    assert abs(copying.forecast.likely - truth) <= 0.3 * truth
    assert [one.basis for one in copying.shown] == [Basis.CATALOG]


@given(
    st.lists(st.tuples(st.floats(0.01, 50), st.integers(0, 10_000)), min_size=1, max_size=60),
    st.floats(0, 300),
)
def test_no_rate_and_no_forecast_is_negative(steps: list[tuple[float, int]], later: float) -> None:
    growth, now, count = Growth(), 100.0, 0
    for seconds, more in steps:
        now, count = now + seconds, count + more
        growth.add(now, count)
    rate = growth.spread(now + later)
    if rate is not None:
        assert 0 <= rate.slow <= rate.mean * (1 + 1e-9)
        assert rate.mean <= rate.fast * (1 + 1e-9)
    for found in (copied(Left(1, 2, 3), rate), caught_up(1000, Spread(1, 2, 3), rate)):
        times = [one for one in (found.low, found.likely, found.high) if one is not None]
        assert all(one >= 0 for one in times)
        assert times == sorted(times)
        assert len(times) == 3 or found.why


def grown(*, rate: float, seconds: float, epoch: float = 1.0) -> Growth:
    growth = Growth()
    for step in range(int(seconds / epoch) + 1):
        growth.add(step * epoch, step * epoch * rate)
    return growth


def test_a_standstill_widens_the_range_and_one_that_lasts_ends_the_forecast() -> None:
    growth = grown(rate=1000, seconds=60)
    left = Left(100_000, 100_000, 100_000)
    even = copied(left, growth.spread(60))
    assert (round(even.low or 0), round(even.likely or 0), round(even.high or 0)) == (100, 100, 100)
    stood = copied(left, growth.spread(90))
    assert (stood.high, stood.why) == (None, STOOD_STILL)
    assert (stood.likely or 0) > 140
    growth.add(90, 60_000)
    growth.add(91, 60_000)
    widened = copied(left, growth.spread(91))
    assert widened.high is None
    for now in range(92, 92 + int(WINDOW_SECONDS) + 1):
        growth.add(now, 60_000)
    assert copied(left, growth.spread(now)) == Forecast(why=STANDS_STILL)


def test_slower_for_a_while_widens_the_range() -> None:
    growth = grown(rate=1000, seconds=60)
    for now in range(61, 91):
        growth.add(now, 60_000 + (now - 60) * 250)
    found = copied(Left(100_000, 100_000, 100_000), growth.spread(90))
    assert found.low is not None
    assert found.likely is not None
    assert found.high is not None
    assert found.low < 0.8 * found.likely < found.likely < 0.7 * found.high


def test_nothing_is_said_before_there_is_something_to_compare() -> None:
    assert grown(rate=1000, seconds=3).spread(3) is None
    assert copied(Left(1, 1, 1), None) == Forecast(why=NO_RATE)
    assert copied(Left(0, 0, 0), None) == THROUGH


def followed(*tables: Copy, seconds: int = 20) -> CopiesLeft:
    """Copies that bring 1,000 rows a second together with the first of them, for a while."""
    left = CopiesLeft()
    first, *others = tables
    for now in range(seconds + 1):
        left.look((replace(first, rows=first.rows + 1000 * now), *others), now)
    return left


def test_a_paused_table_has_no_forecast_and_says_why() -> None:
    left = followed(
        Copy(T, ("a",), rows=1000, rows_expected=100_000),
        Copy(U, ("a",), rows=500, rows_expected=900, paused=True),
    )
    found = left.progress("-80", {}, 20)
    one, two = found.shown
    assert one.left.likely is not None
    assert two.left == Forecast(why=PAUSED)
    assert found.forecast == Forecast(why=f"shop.u on -80: {PAUSED}")
    left.look(tuple(replace(copy, paused=True) for copy in left.unfinished), 21)
    left.look(tuple(replace(copy, paused=False) for copy in left.unfinished), 4000)
    assert left.progress("-80", {}, 4000).forecast.why == NO_RATE, "the pause counts as no standstill"


def test_a_copy_that_begins_again_is_told_by_its_own_rate() -> None:
    """Between two copies nothing is to be copied: that is no standstill."""
    left = followed(Copy(T, ("a",), rows=100, rows_expected=2000))
    left.look((Copy(T, ("z",), rows=2000, done=True),), 21)
    for second in range(30):
        left.look((Copy(T, ("a",), rows=100 * second, rows_expected=5000),), 100 + second)
    forecast = left.progress("-80", {}, 129).forecast
    assert forecast.likely == pytest.approx((5000 - 2900) / 100)


def test_a_table_that_is_kept_from_its_chunks_says_why() -> None:
    left = followed(Copy(T, ("a",), rows=1000, rows_expected=100_000))
    refused = {T: Refusal("-80", T, "a session locks the table", 12)}
    found = left.progress("-80", refused, 20)
    assert [one.left for one in found.shown] == [Forecast(why="a session locks the table")]
    assert found.forecast.why == "shop.t on -80: a session locks the table"
    found = left.progress("-80", refused, 20, "threads_running is 70, and is to be at most 50")
    assert found.forecast.why == "shop.t on -80: threads_running is 70, and is to be at most 50"


def test_more_rows_than_the_catalog_said_are_unknown_and_so_is_what_comes_behind_them() -> None:
    left = followed(
        Copy(T, ("a",), rows=1000, rows_expected=1100), Copy(U, ("a",), rows=7, rows_expected=900)
    )
    found = left.progress("-80", {}, 20)
    one, two = found.shown
    assert (one.expected, one.basis, one.left.why) == (None, Basis.UNKNOWN, UNCOUNTED)
    assert two.left.why == f"shop.t on -80: {UNCOUNTED}"
    assert found.forecast.likely is None


def test_a_table_is_done_behind_those_in_front_of_it() -> None:
    left = followed(
        Copy(T, ("a",), rows=0, rows_expected=120_000), Copy(U, ("a",), rows=7, rows_expected=50_007)
    )
    one, two = left.progress("-80", {}, 20).shown
    assert [round(one.left.likely or 0), round(two.left.likely or 0)] == [100, 150]


def test_tables_come_in_the_order_that_is_asked_for() -> None:
    left = CopiesLeft({T: 1, U: 0}.__getitem__)
    for now in range(21):
        one = Copy(T, ("a",), rows=7, rows_expected=100_007)
        left.look((one, Copy(U, ("a",), rows=1000 * now, rows_expected=70_000)), now)
    found = left.progress("-80", {}, 20).shown
    assert [(one.table, round(one.left.likely or 0)) for one in found] == [(U, 50), (T, 150)]


def test_keys_whose_rows_grow_thin_make_a_range() -> None:
    left = CopiesLeft()
    for now in range(41):
        rows = 1000 * min(now, 20) + 100 * max(now - 20, 0)
        left.look((Copy(T, (1000 * now,), (100_000,), rows=rows, rows_expected=100_000),), now)
    (shown,) = left.progress("-80", {}, 40).shown
    assert shown.basis is Basis.KEYS
    estimate = left._estimate(left.unfinished[0]).left
    assert estimate is not None
    assert estimate.low <= 7_000 < estimate.likely < 60_000 <= estimate.high


def test_a_first_column_of_few_values_says_nothing() -> None:
    left = CopiesLeft()
    for now in range(9):
        left.look((Copy(T, (1 + now // 4, 10 * now), (5, 9), rows=100 * now, rows_expected=1000),), now)
    assert [one.basis for one in left.progress("-80", {}, 8).shown] == [Basis.CATALOG]


def test_shards_go_on_beside_one_another() -> None:
    def one(shard: str, rows: float, rate: float) -> Copying:
        left, spread = Left(rows, rows, rows), Spread(rate, rate, rate)
        return Copying(shard, (), left, spread, copied(left, spread))

    found = all_copied([one("-80", 1000, 10), one("80-", 100, 10)])
    assert (found.low, found.likely, found.high) == (55, 100, 100)
    assert all_copied([]) == THROUGH
    unknown = Copying("c", (), Left(1, 1, 1), None, Forecast(why=NO_RATE))
    assert all_copied([one("-80", 1000, 10), unknown]) == Forecast(why=NO_RATE)


def test_together_is_the_latest_and_as_unknown_as_the_least_known() -> None:
    assert together([Forecast(1, 2, 9), Forecast(2, 3, 4)]) == Forecast(2, 3, 9)
    assert together([Forecast(1, 2, None, "x"), Forecast(2, 3, 4)]) == Forecast(2, 3, None, "x")
    assert together([Forecast(1, 2, 3), Forecast(why="y")]) == Forecast(why="y")


def test_a_log_that_is_behind() -> None:
    assert keeps_up(3, 10**9)
    assert keeps_up(60, 0)
    assert not keeps_up(60, None)
    assert caught_up(None, None, None).likely is None
    assert caught_up(1000, Spread(1, 1, 1), None) == Forecast(why=NO_RATE)
    assert caught_up(1000, Spread(5, 10, 15), Spread(20, 30, 40)) == Forecast(1000 / 35, 50, 200)
    assert caught_up(1000, Spread(5, 10, 25), Spread(20, 30, 40)).why == LOG_MAY_GROW
    assert caught_up(1000, Spread(5, 30, 35), Spread(20, 30, 40)) == Forecast(why=LOG_GROWS)


def test_the_backlog_over_several_files() -> None:
    log = LogLeft({"binlog.000009": 500, "binlog.000010": 700, "binlog.000011": 40})
    log.read_to(LogOffset("binlog.000009", 400), 0)
    assert log.backlog is None
    log.ends_at(LogOffset("binlog.000011", 90), 0)
    assert log.backlog == 100 + 700 + 90
    log.ends_at(LogOffset("binlog.000012", 30), 1)
    assert log.backlog == 100 + 700 + 90 + 30
    log.read_to(LogOffset("binlog.000012", 10), 2)
    assert log.backlog == 20
    assert log.read.total == 100 + 700 + 90 + 10


def test_a_backlog_over_a_file_that_nobody_saw_is_unknown() -> None:
    log = LogLeft({})
    log.read_to(LogOffset("binlog.000009", 400), 0)
    log.ends_at(LogOffset("binlog.000010", 90), 0)
    assert log.backlog is None
    log.read_to(LogOffset("binlog.000010", 80), 1)
    assert log.backlog == 10
    log.ends_at(LogOffset("other.000010", 80), 2)
    assert log.backlog is None
