"""What may be spent of a rate: a token bucket, as a pure value."""

import math
from dataclasses import dataclass, replace
from typing import Final

# What a bucket holds at most, in seconds of its rate: so much may come at once after a pause.
BURST_SECONDS: Final = 2.0
# Less than this is not spent: each group reads the log behind its floor, however few its rows are.
LEAST_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Budget:
    """`rate` a second; at the moment `at`, in seconds, `level` may be spent. Below zero more was spent than came in."""

    rate: float
    level: float
    at: float

    @classmethod
    def full(cls, rate: float, at: float) -> "Budget":
        """One of which nothing is spent yet."""
        return cls(rate, rate * BURST_SECONDS, at)

    def later(self, now: float) -> "Budget":
        """The same as of `now`; a clock that goes backwards brings nothing."""
        level = min(self.level + self.rate * max(now - self.at, 0.0), self.rate * BURST_SECONDS)
        return Budget(self.rate, level, max(now, self.at))

    def spent(self, amount: float) -> "Budget":
        """With so much less; a negative amount gives back what was not needed."""
        return replace(self, level=self.level - amount)

    def at_rate(self, rate: float) -> "Budget":
        """At another rate. What was spent ahead stays spent."""
        return Budget(rate, min(self.level, rate * BURST_SECONDS), self.at)

    @property
    def is_worth_it(self) -> bool:
        """Whether enough has come in to spend some of it."""
        return self.level >= self.rate * LEAST_SECONDS

    @property
    def seconds_ahead(self) -> float:
        """Seconds until what was spent ahead has come in; 0 where nothing was."""
        return max(0.0, -self.level / self.rate)


@dataclass(frozen=True, slots=True)
class Allowance:
    """Rows, and bytes of rows, that an epoch may still copy of a shard."""

    rows: float = math.inf
    bytes: float = math.inf

    @property
    def is_used_up(self) -> bool:
        """Whether no row is left."""
        return self.rows < 1 or self.bytes < 1

    def rows_of(self, row_bytes: float) -> float:
        """How many rows of so many bytes it lets through; one at least, so that a copy of long rows goes on."""
        return max(min(self.rows, self.bytes / max(row_bytes, 1.0)), 1.0)

    def at_most(self, rows: float) -> "Allowance":
        """The same, of no more rows than that."""
        return Allowance(min(self.rows, rows), self.bytes)

    def without(self, rows: float, row_bytes: float) -> "Allowance":
        """What is left behind so many rows."""
        return Allowance(self.rows - rows, self.bytes - rows * row_bytes)


UNLIMITED = Allowance()
