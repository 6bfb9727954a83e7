"""How fast a count grows, over the last seconds."""

from collections import deque

WINDOW_SECONDS = 10.0


class Rate:
    """The rate of a growing count over the last ten seconds. Times are those of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def add(self, now: float, count: float) -> None:
        """The count stands at `count`; one look before the window is kept, so that the window is covered whole."""
        self._seen.append((now, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW_SECONDS:
            self._seen.popleft()

    def rate(self, now: float) -> float:
        """How much a second it grew up to `now`; 0 before two looks."""
        if len(self._seen) < 2 or now - self._seen[-1][0] > WINDOW_SECONDS:
            return 0.0
        since, before = self._seen[0]
        return max(self._seen[-1][1] - before, 0.0) / max(now - since, 0.001)
