"""What part of full groups an epoch copies, against epochs of which it is known what they take."""

import math
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from catchment.feed.rationing import AIMED, LEAST, LEAST_MAX, LOOK_EVERY, ROOM, Rationing

INTERVALS = st.floats(0.05, 10.0)
# Seconds that the rows of full groups take, and what an epoch takes whatever it copies.
ROWS = st.floats(0.01, 60.0)
BARE = st.floats(0.001, 5.0)
ENOUGH = 80


@dataclass
class Copy:
    """Epochs of a copy. `chunk`: the part that one chunk is, and so the least that an epoch is dealt."""

    interval: float
    rows: float
    bare: float
    chunk: float = 0.0

    def __post_init__(self) -> None:
        self.rationing = Rationing()

    def seconds(self, part: float) -> float:
        return self.bare + self.rows * part

    def epochs(self, count: int = ENOUGH) -> list[float]:
        """The parts that so many epochs copy."""
        parts = []
        for _ in range(count):
            part = self.rationing.within(self.interval)
            assert LEAST <= part <= 1.0
            parts.append(min(math.ceil(part / self.chunk) * self.chunk, 1.0) if self.chunk else part)
            self.rationing.learn(part, parts[-1], self.seconds(parts[-1]))
        return parts

    @property
    def allowed(self) -> float:
        return self._allowed(self.seconds(max(LEAST, self.chunk)))

    def _allowed(self, least: float) -> float:
        """What an epoch may take, where the least one takes so long."""
        aim = AIMED * self.interval
        return aim if least <= ROOM * aim else max(aim, LEAST_MAX * least)

    def must_be_settled(self) -> None:
        """Epochs take as long as they may and no longer, but for the looks at what one takes at least."""
        parts = self.epochs()
        assert all(self.seconds(part) <= self.allowed * 1.01 for part in parts[-LOOK_EVERY:])
        longest = self.seconds(max(parts[-LOOK_EVERY:]))
        # An epoch may have had less to copy than the least.
        assert longest >= min(self._allowed(self.bare), self.seconds(1.0)) * 0.99
        assert sum(self.seconds(part) < longest * 0.9 for part in parts[-LOOK_EVERY:]) <= 2


@given(INTERVALS, ROWS, BARE)
def test_epochs_come_to_take_as_long_as_they_may_and_no_longer(
    interval: float, rows: float, bare: float
) -> None:
    copy = Copy(interval, rows, bare)
    assert copy.epochs(1) == [LEAST]
    copy.must_be_settled()


@given(INTERVALS, ROWS, BARE, st.floats(0.02, 0.5))
def test_where_the_least_is_a_chunk_too(interval: float, rows: float, bare: float, chunk: float) -> None:
    copy = Copy(interval, rows, bare, chunk)
    copy.epochs()
    parts = copy.epochs(LOOK_EVERY)
    # What one chunk more takes is not known before it is copied.
    assert all(copy.seconds(part) <= copy.allowed * 1.01 + rows * chunk for part in parts)


@given(INTERVALS, ROWS, BARE)
def test_what_gets_slower_is_dealt_less_at_once(interval: float, rows: float, bare: float) -> None:
    copy = Copy(interval, rows, bare)
    before = max(copy.epochs()[-LOOK_EVERY:])
    slow = 10 * copy.seconds(before)
    copy.rationing.learn(before, before, slow)
    least = max(LEAST, min(1.0, copy.allowed * before / slow))
    assert copy.rationing.within(interval) <= least * 1.01


@given(INTERVALS, ROWS, BARE, st.floats(0.001, 0.2), st.floats(0.0001, 0.01))
def test_a_copy_does_not_starve_behind_epochs_that_had_little_or_nothing_to_copy(
    interval: float, rows: float, bare: float, quick: float, little: float
) -> None:
    """Those without chunks are quick, and say nothing of one that has some."""
    copy = Copy(interval, rows, bare)
    copy.epochs()
    for _ in range(5):
        copy.rationing.learn(copy.rationing.within(interval), little, copy.seconds(little))
        copy.rationing.learn(copy.rationing.within(interval), 0.0, quick)
    copy.must_be_settled()


@given(INTERVALS, ROWS, BARE, st.floats(2.0, 100.0))
def test_a_hiccup_does_not_make_epochs_long(interval: float, rows: float, bare: float, times: float) -> None:
    """The first epoch of a run has to start processes, and any may meet a busy machine."""
    copy = Copy(interval, rows, bare)
    copy.rationing.learn(copy.rationing.within(interval), LEAST, times * copy.seconds(LEAST))
    assert all(copy.seconds(part) <= copy.allowed * 1.01 for part in copy.epochs())


@given(INTERVALS, ROWS, BARE)
def test_a_machine_that_became_quicker_is_noticed(interval: float, rows: float, bare: float) -> None:
    copy = Copy(interval, rows, bare)
    copy.epochs()
    copy.rows, copy.bare = rows / 4, bare / 4
    copy.epochs()
    copy.must_be_settled()


@given(INTERVALS, ROWS, BARE, st.floats(0.05, 100.0))
def test_groups_of_other_sizes_make_epochs_no_longer(
    interval: float, rows: float, bare: float, times: float
) -> None:
    """A copy's first chunks are few, and tell little of what a table's SELECTs read in a second."""
    copy = Copy(interval, rows, bare)
    copy.epochs()
    before = copy.allowed
    copy.rows = rows * times
    copy.rationing.have_grown(times)
    (part,) = copy.epochs(1)
    # What an epoch takes whatever it copies becomes no less where groups become smaller.
    assert copy.rows * part <= max(before, copy.allowed) * 1.01 or part == LEAST
    copy.must_be_settled()


def test_before_anything_is_known_little_is_copied() -> None:
    assert Rationing().within(1.0) == LEAST
    assert Rationing().within(60.0) == LEAST


def test_behind_a_copy_beside_which_none_was_followed_the_least_is_not_known() -> None:
    rationing = Rationing()
    rationing.learn(1.0, 1.0, 8.0)
    assert rationing.within(1.0) == LEAST
