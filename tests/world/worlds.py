"""Worlds that differ from the real one by a clock."""

import pytest

from catchment.world import door
from catchment.world.real import Real


class SetClocks(Real):
    """The real world with clocks that a test sets: `us` since 1970 and `steady` seconds; None is the real one's."""

    def __init__(self, *, us: int | None = None, steady: float | None = None) -> None:
        self.us = us
        self.steady = steady

    def now_us(self) -> int:
        """As set."""
        return super().now_us() if self.us is None else self.us

    def steady_seconds(self) -> float:
        """As set."""
        return super().steady_seconds() if self.steady is None else self.steady


def put(monkeypatch: pytest.MonkeyPatch, clocks: SetClocks) -> SetClocks:
    """Have the clocks tell the time until the end of the test."""
    monkeypatch.setattr(door, "_world", clocks)
    return clocks
