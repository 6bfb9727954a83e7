"""Few clients read by themselves at a time, so that each of them comes to an end.

All that read at once share one processor, and each reads the whole log. Were there too many, none would ever catch up
with logs that go on. So they come two by two: most are done within a second. Whoever takes longer does not hold up the
next ones, up to a bound.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from catchment import world

# At a time, of those that copy rows and of those that only catch up. The latter never wait for the former.
COPYING: Final = 8
CATCHING_UP: Final = 4
# Of each, so many that have just begun. Forty that began at once, eight at a time, were not done in 500 s.
_FRESH: Final = 2
_FRESH_SECONDS: Final = 5.0
# Nobody waits for a client that does not take a message for so long. Nor for one that takes as long in sum, and more
# than half of its time.
_PATIENCE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.25


@dataclass
class _Stay:
    """Of one that reads. `waited`: seconds for its client; `gives`: since when it has something for it."""

    entered: float
    waited: float = 0.0
    gives: float | None = None

    def slow(self, now: float) -> bool:
        """Whether others need not wait for it."""
        waits = 0.0 if self.gives is None else now - self.gives
        waited = self.waited + waits
        return waits > _PATIENCE_SECONDS or (waited > _PATIENCE_SECONDS and 2 * waited > now - self.entered)


class Turnstile:
    """Lets in so many at a time, in the order in which they came, and `fresh` of them within some seconds. Any thread
    may use it."""

    def __init__(self, most: int, fresh: int = _FRESH) -> None:
        self._most = most
        self._fresh = fresh
        self._inside: dict[Hashable, _Stay] = {}
        # When each asked last; infinite while it waits here.
        self._line: dict[Hashable, float] = {}
        self._condition = world.condition()

    def enter(self, who: Hashable, timeout: float) -> bool:
        """Whether it may read now; it keeps its place in the line where it may not yet."""
        now = world.steady_seconds()
        ends = now + timeout
        with self._condition:
            if who in self._inside and not self._inside[who].slow(now):
                return True
            self._inside.pop(who, None)
            self._line[who] = inf
            while not self._condition.wait_for(lambda: self._may(who), _LOOK_SECONDS):
                if world.steady_seconds() >= ends:
                    self._line[who] = world.steady_seconds()
                    return False
            self._line.pop(who, None)
            self._let_in(who)
            self._condition.notify_all()
            return True

    def gives(self, who: Hashable) -> None:
        """It has something for its client, which may take it late."""
        with self._condition:
            if who in self._inside:
                self._inside[who].gives = world.steady_seconds()

    def given(self, who: Hashable) -> None:
        """The client took it, or asks for more."""
        with self._condition:
            stay = self._inside.get(who)
            if stay is not None and stay.gives is not None:
                stay.waited += world.steady_seconds() - stay.gives
                stay.gives = None

    def leave(self, who: Hashable) -> None:
        """It does not read by itself any more, or lets others go first."""
        with self._condition:
            self._inside.pop(who, None)
            self._line.pop(who, None)
            self._condition.notify_all()

    def _let_in(self, who: Hashable) -> None:
        """A slow client whose place another one takes stands in line again, however soon it takes its messages."""
        now = world.steady_seconds()
        if len(self._inside) >= self._most or _fresh(self._inside.values(), now) >= self._fresh:
            self._inside = {one: stay for one, stay in self._inside.items() if not stay.slow(now)}
        self._inside[who] = _Stay(now)

    def _may(self, who: Hashable) -> bool:
        now = world.steady_seconds()
        inside = [stay for stay in self._inside.values() if not stay.slow(now)]
        fresh = _fresh(inside, now)
        line = list(self._line)
        ahead = sum(now - self._line[one] <= _PATIENCE_SECONDS for one in line[: line.index(who)])
        return len(inside) + ahead < self._most and fresh + ahead < self._fresh


def _fresh(stays: Iterable[_Stay], now: float) -> int:
    """How many of these have just begun."""
    return sum(now - stay.entered < _FRESH_SECONDS for stay in stays)


@dataclass(frozen=True, eq=False)
class Turnstiles:
    """Those of a hub."""

    copying: Turnstile = field(default_factory=lambda: Turnstile(COPYING))
    catching_up: Turnstile = field(default_factory=lambda: Turnstile(CATCHING_UP))


class Visit:
    """One client's way through them; it is in one of them at a time."""

    def __init__(self, turnstiles: Turnstiles) -> None:
        self._turnstiles = turnstiles
        self._mine: Turnstile | None = None

    def enter(self, *, copies: bool, timeout: float) -> bool:
        """Whether it may read now. `copies`: rows; else it only catches up."""
        mine = self._turnstiles.copying if copies else self._turnstiles.catching_up
        if mine is not self._mine:
            self.leave()
            self._mine = mine
        return mine.enter(self, timeout)

    def gives(self) -> None:
        """It has something for its client, which may take it late."""
        if self._mine is not None:
            self._mine.gives(self)

    def given(self) -> None:
        """The client took it, or asks for more."""
        if self._mine is not None:
            self._mine.given(self)

    def leave(self) -> None:
        """It does not read by itself any more, or lets others go first."""
        if self._mine is not None:
            self._mine.leave(self)
            self._mine = None
