"""Which shards copy no rows now for the source's sake, compare none, or mend none: since when, and why."""

import logging
from collections.abc import Mapping

from catchment import world
from catchment.model.log_fields import about
from catchment.model.throttle import Breach, Throttled
from catchment.state.moments import time_text

# A shard that is throttled again and again is worth a line so often at most.
_LOG_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Throttles:
    """Keeps what is throttled, and logs when that begins and ends. One thread calls it; `now` is replaced whole, so
    that others may look. `done`: what else would be done with rows."""

    def __init__(self, done: str = "copied") -> None:
        self._done = done
        self.now: tuple[Throttled, ...] = ()
        self._logged_at: dict[str, float] = {}
        self._told: set[str] = set()

    def keep(self, breaches: Mapping[str, Breach]) -> None:
        """What is so now, by shard."""
        if not breaches and not self.now:  # as nearly always
            return
        since = {one.shard: one.since_us for one in self.now}
        ended = [one for one in self.now if one.shard not in breaches]
        self.now = tuple(
            Throttled(shard, since.get(shard, world.now_us()), breach)
            for shard, breach in sorted(breaches.items())
        )
        for one in self.now:
            if one.shard not in since:
                self._tell_of(one)
        for one in ended:
            if one.shard in self._told:
                self._told.discard(one.shard)
                seconds = (world.now_us() - one.since_us) / 1e6
                _log.info(
                    "shard %s: rows are %s again after %.0f s",
                    one.shard,
                    self._done,
                    seconds,
                    extra=about(shard=one.shard),
                )

    def _tell_of(self, one: Throttled) -> None:
        now = world.steady_seconds()
        if now - self._logged_at.get(one.shard, now - _LOG_SECONDS) < _LOG_SECONDS:
            return
        self._logged_at[one.shard] = now
        self._told.add(one.shard)
        _log.warning("%s", throttled_text(one, self._done), extra=about(shard=one.shard))


def throttled_text(one: Throttled, done: str = "copied") -> str:
    """Since when nothing is `done` with rows of a shard, and why."""
    return f"shard {one.shard}: no rows are {done} since {time_text(one.since_us)}: {one.breach}"
