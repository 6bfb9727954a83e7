"""How fast a count grew lately, and how evenly: the slowest and the fastest part of the last two minutes. Pure."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_high

WINDOW_SECONDS = 120.0
# Parts of the window that are compared. Shorter ones would only show that epochs come one by one.
PARTS_MAX = 6
PART_SECONDS_MIN = 2.0
# So many usual waits between two looks are a part at least; a longer wait for the next one is a standstill.
_WAITS = 2.0
_LOOKS_MAX = 240


@dataclass(frozen=True, slots=True)
class Spread:
    """A second: on the whole, and in the slowest and the fastest part of the time."""

    slow: float
    mean: float
    fast: float


class Growth:
    """Looks at a count that only grows. Times are seconds of one steady clock."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float]] = deque()

    def add(self, now: float, count: float) -> None:
        """The count stands at `count`. One look before the window is kept, so that the window is covered whole."""
        looks = self._looks
        apart = WINDOW_SECONDS / _LOOKS_MAX
        if len(looks) > 1 and now - looks[-2][0] < apart:
            looks.pop()
        looks.append((now, count))
        while len(looks) > 2 and looks[1][0] <= now - WINDOW_SECONDS:
            looks.popleft()

    @property
    def total(self) -> float:
        """The count at the newest look; 0 before one."""
        return self._looks[-1][1] if self._looks else 0.0

    def mean(self, now: float) -> float | None:
        """How fast it grew on the whole, without a look at parts; None before two looks."""
        if len(self._looks) < 2:
            return None
        since, before = self._looks[0]
        return (self.total - before) / max(now - since, 0.001)

    def spread(self, now: float) -> Spread | None:
        """How fast it grew up to `now`; None while it was not watched for long enough to compare two parts.

        Counts come in lumps, one with each epoch. So the time since the newest look counts only when it is longer than
        what was waited for before: then it is a standstill.
        """
        looks = self._looks
        if len(looks) < 2:
            return None
        usual = median_high(later[0] - earlier[0] for earlier, later in pairwise(looks))
        part_min = max(PART_SECONDS_MIN, _WAITS * usual)
        end = now if now - looks[-1][0] > part_min else looks[-1][0]
        begin = max(looks[0][0], end - WINDOW_SECONDS)
        parts = min(int((end - begin) / part_min), PARTS_MAX)
        if parts < 2:
            return None
        length = (end - begin) / parts
        counts = [self._at(begin + length * part) for part in range(parts)] + [self._at(end)]
        rates = [(after - before) / length for before, after in pairwise(counts)]
        return Spread(min(rates), sum(rates) / parts, max(rates))

    def _at(self, moment: float) -> float:
        """The count at a moment, on the line between the looks around it."""
        before = self._looks[0]
        for look in self._looks:
            if look[0] >= moment:
                span = look[0] - before[0]
                part = (moment - before[0]) / span if span > 0 else 1.0
                return before[1] + (look[1] - before[1]) * min(max(part, 0.0), 1.0)
            before = look
        return before[1]
