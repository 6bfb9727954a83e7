"""When a table is tried again whose chunks are refused: after pauses that grow to a minute, while all others go on."""

from collections.abc import Iterable

from catchment import world
from catchment.model.refusal import Refusal
from catchment.model.table import ShardTable

# An ALTER or a short lock refuses the chunks of an epoch or two. Each try of a locked table takes 5 s.
_AT_ONCE = 3
_SECONDS_FIRST = 1.0
SECONDS_MAX = 60.0


class Pauses:
    """The pauses of one run's tables. The loop's thread alone uses it."""

    def __init__(self) -> None:
        self._known: dict[ShardTable, tuple[int, float]] = {}

    def take(self, refused: Iterable[Refusal]) -> None:
        """Take in the tables whose chunks are refused: others are tried at once."""
        now, before = world.steady_seconds(), self._known
        self._known = {}
        for one in refused:
            of = ShardTable(one.shard, one.table)
            times, until = before.get(of, (0, now))
            self._known[of] = (one.epochs, until if one.epochs == times else now + _seconds(one.epochs))

    def waits(self, of: ShardTable) -> bool:
        """Whether a table's pause is not over."""
        return of in self._known and world.steady_seconds() < self._known[of][1]


def _seconds(refusals: int) -> float:
    """How long to wait after so many refusals in a row."""
    more = refusals - _AT_ONCE
    return min(SECONDS_MAX, _SECONDS_FIRST * 2.0 ** min(more, 10)) if more >= 0 else 0.0
