"""How a comparison spares the source: it waits where rows are not to be read now."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from catchment import world
from catchment.config import Feed
from catchment.feed.checks import Checks
from catchment.feed.throttle import Throttle
from catchment.watch.throttles import Throttles

COMPARED = "compared"  # what else would be done with rows that are throttled


@dataclass(frozen=True)
class Sparing:
    """`throttle`: which shards bear it now. `wait` passes so many seconds, or raises what ends the comparison."""

    throttle: Throttle
    wait: Callable[[float], None] = world.sleep

    @classmethod
    def of(cls, feed: Feed) -> Self:
        """As the feed file of a comparison of its own says."""
        return cls(Throttle(Checks(feed).of, feed.copying.throttle, Throttles(COMPARED)))
