"""Lag and rates of a run over the last hour: as much memory as an hour takes, and no more. Pure."""

from array import array

import msgspec

STEP_SECONDS = 5
STEPS_MAX = 3600 // STEP_SECONDS


class Series(msgspec.Struct, frozen=True):
    """One value for every STEP_SECONDS, up to `until_us` (microseconds since 1970). `lag`: the longest, in seconds.
    `rows` copied, `changes` applied and `epochs` committed, a second."""

    until_us: int
    step_seconds: int
    lag: list[float]
    rows: list[float]
    changes: list[float]
    epochs: list[float]


class _Step:
    """What came in one step."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lag = 0.0
        self.counts = [0, 0, 0]


class History:
    """Takes in what a run brings. One call at a time."""

    def __init__(self) -> None:
        self._kept = [array("d") for _ in range(4)]
        self._step: _Step | None = None

    def count(self, rows: int, changes: int) -> None:
        """An epoch is committed."""
        if self._step is not None:
            for place, more in enumerate((rows, changes, 1)):
                self._step.counts[place] += more

    def look(self, now_us: int, lag: float) -> None:
        """The run lags so many seconds now. Steps without a look are as the one before them."""
        number = now_us // (STEP_SECONDS * 1_000_000)
        step = self._step
        if step is None or number < step.number:  # somebody set the clock back
            self._step = step = _Step(number)
        if number > step.number:
            self._keep(step, min(number - step.number, STEPS_MAX))
            self._step = step = _Step(number)
        step.lag = max(step.lag, lag)

    def series(self) -> Series:
        """All that is kept."""
        lag, *counts = ([round(value, 3) for value in kept] for kept in self._kept)
        until = self._step.number * STEP_SECONDS * 1_000_000 if self._step is not None else 0
        return Series(until, STEP_SECONDS, lag, *counts)

    def _keep(self, step: _Step, times: int) -> None:
        values = (step.lag, *(count / STEP_SECONDS / times for count in step.counts))
        for kept, value in zip(self._kept, values, strict=True):
            kept.extend([value] * times)
            del kept[: max(len(kept) - STEPS_MAX, 0)]
