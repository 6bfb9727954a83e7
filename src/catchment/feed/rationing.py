"""What part of its full groups an epoch copies beside a log that readers wait for.

A change is as old at its commit as the epoch before it and its own take. Where both copy, that is twice what one takes.
So an epoch that copies is to take no longer than the interval between two that do not.
"""

from collections import deque
from typing import Final

# However little time there is, a copy must get on. The first epochs have that, too: they show what one takes at least.
LEAST: Final = 0.02
# Of the time that an epoch has: what an epoch takes varies by a fifth.
AIMED: Final = 0.8
# Of that time, what the least epoch may take. Where it takes more, there is hardly time for rows.
ROOM: Final = 0.75
# Then others may take so many times as long: half of it goes to rows.
LEAST_MAX: Final = 2.0
# An epoch with so few chunks takes hardly longer than the least.
SMALL: Final = 0.25
# Where that counts, two epochs in so many are the least, since it may take less time by now.
LOOK_EVERY: Final = 20
# Of two such epochs the quicker one counts: a hiccup must not make all the others long.
_LOOKS: Final = 2


class Rationing:
    """Learns what full groups take, and the least epoch; of one loop. Its values are above 0 and at most 1."""

    def __init__(self) -> None:
        self._full_seconds = 0.0
        self._least_seconds = 0.0
        self._looks: deque[float] = deque(maxlen=_LOOKS)
        self._since = LOOK_EVERY

    def within(self, seconds: float) -> float:
        """The part of full groups whose epoch takes so long."""
        aim = AIMED * seconds
        has_room = 0 < self._least_seconds <= ROOM * aim
        if not self._full_seconds or (self._since >= LOOK_EVERY and not has_room):
            return LEAST
        if not has_room:
            aim = max(aim, LEAST_MAX * self._least_seconds)
        return max(LEAST, min(1.0, aim / self._full_seconds))

    def learn(self, given: float, dealt: float, seconds: float) -> None:
        """An epoch took so long. It was to have the part `given` of full groups, and was `dealt` that part: less where
        few rows are left. What is slower counts at once, and what is faster by halves: an epoch that is too long
        is what readers notice."""
        if not dealt:
            return
        self._learn_least(given, dealt, seconds)
        full, known = seconds / dealt, self._full_seconds
        if given <= LEAST or dealt < given / 2:
            # Little of that time went to rows: it is no longer than that.
            self._full_seconds = min(known or full, full)
        else:
            self._full_seconds = max(full, (known + full) / 2)

    def have_grown(self, times: float) -> None:
        """Full groups have so many times the rows that they had when the newest epoch was planned."""
        self._full_seconds *= times

    def _learn_least(self, given: float, dealt: float, seconds: float) -> None:
        self._since += 1
        if given <= LEAST:
            self._looks.append(seconds)
            self._least_seconds = min(self._looks)
            if self._since >= LOOK_EVERY + _LOOKS:
                self._since = 0
        elif dealt <= SMALL and self._least_seconds:
            self._least_seconds = min(self._least_seconds, seconds)
