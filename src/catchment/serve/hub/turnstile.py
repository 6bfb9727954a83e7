"""Few clients read by themselves at a time, so that each of them comes to an end.

All that read at once share one processor, and each reads the whole log. Were there too many, none would ever catch up
with logs that go on.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from catchment import world

# At a time, of those that copy rows and of those that only catch up. The latter never wait for the former.
COPYING: Final = 8
CATCHING_UP: Final = 4
# Who has not taken a message for so long, or not asked again, holds up nobody.
_STALE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.25


class Turnstile:
    """Lets in so many at a time, in the order in which they came. Any thread may use it."""

    def __init__(self, most: int) -> None:
        self._most = most
        # When each was seen last; infinite while it reads, or waits here.
        self._inside: dict[Hashable, float] = {}
        self._waiting: dict[Hashable, float] = {}
        self._condition = world.condition()

    def enter(self, who: Hashable, timeout: float) -> bool:
        """Whether it may read now; it keeps its place in the line where it may not yet."""
        ends = world.steady_seconds() + timeout
        with self._condition:
            if self._inside.get(who, -inf) <= _stale():
                self._inside.pop(who, None)
                self._waiting[who] = inf
            while not self._condition.wait_for(lambda: self._may(who), _LOOK_SECONDS):
                if world.steady_seconds() >= ends:
                    self._waiting[who] = world.steady_seconds()
                    return False
            self._waiting.pop(who, None)
            self._inside[who] = inf
            self._condition.notify_all()
            return True

    def gives(self, who: Hashable) -> None:
        """It has a message for its client, which may take it late."""
        with self._condition:
            if who in self._inside:
                self._inside[who] = world.steady_seconds()

    def leave(self, who: Hashable) -> None:
        """It does not read by itself any more, or lets others go first."""
        with self._condition:
            self._inside.pop(who, None)
            self._waiting.pop(who, None)
            self._condition.notify_all()

    def _may(self, who: Hashable) -> bool:
        if who in self._inside:
            return True
        stale = _stale()
        inside = sum(seen > stale for seen in self._inside.values())
        ahead = sum(seen > stale for seen in self._before(who))
        return inside + ahead < self._most

    def _before(self, who: Hashable) -> list[float]:
        waiting = list(self._waiting)
        return [self._waiting[one] for one in waiting[: waiting.index(who)]]


def _stale() -> float:
    return world.steady_seconds() - _STALE_SECONDS


@dataclass(frozen=True)
class Turnstiles:
    """Those of a hub."""

    copying: Turnstile = field(default_factory=lambda: Turnstile(COPYING))
    catching_up: Turnstile = field(default_factory=lambda: Turnstile(CATCHING_UP))
