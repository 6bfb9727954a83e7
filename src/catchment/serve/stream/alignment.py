"""Keeps the shards of a stream together in time: those that are ahead wait for those that lag (seed 003).

A shard's next transaction tells how far it has come, not its last one. So the shard that is furthest behind can always
go on, and nothing stalls. All times here are in seconds since 1970 by the stream's own clock.

A turn tells its transactions in the order of their times, so it may take a long stretch of a backlog. What counts is
how far apart the shards stand where it ends: whoever came too far is read again, and less of it.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from catchment.serve.stream.advance import Told

# Logs have whole seconds, and clocks differ: a threshold of one second would stop streams for roundings.
THRESHOLD_SECONDS: Final = 2.0
# A shard that has told nothing for so long may have caught up with its primary.
_LAG_SECONDS: Final = 60.0
# Nobody waits for a shard that has not answered for so long.
_SILENT_SECONDS: Final = 10.0
# A turn aims at this share of its budget: where a log is a little denser than before it still fits.
_SHARE: Final = 0.8
_GROWTH_MAX: Final = 16.0


@dataclass(frozen=True, slots=True)
class _Lag:
    seconds: float
    seen: float


@dataclass(frozen=True, slots=True)
class _Come:
    """How far a shard is behind a turn: its next transaction where that is known, else how much it lags if that is."""

    next: float | None
    lag: _Lag | None

    def to(self, now: float) -> float:
        """The time to which it has come."""
        if self.next is not None:
            return self.next
        return now if self.lag is None or now - self.lag.seen > _LAG_SECONDS else now - self.lag.seconds


@dataclass
class Alignment:
    """How far each shard has come. `ahead`: by how many seconds its clock is ahead of ours. `budget`: bytes of a
    shard's log that a turn reads at most.

    A shard that is read to its end has come to now, less the age that its transactions had when they came. So much does
    a replica lag. One that is not has come to its next transaction.
    """

    ahead: Mapping[str, float]
    budget: int
    _stride: float = THRESHOLD_SECONDS
    _come: dict[str, _Come] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)

    def until(self, shards: Collection[str], now: float) -> Mapping[str, int | None]:
        """The times by the shards' clocks up to which a turn of these may read them; None where one need not wait.

        None may be told before all have said when their next ones were written.
        """
        answering = self._answering(now)
        if any(one not in self._come for one in answering):
            return dict.fromkeys(shards, 0)
        limits = [
            come.to(now) + (self._stride if shard in shards and come.next is not None else THRESHOLD_SECONDS)
            for shard, come in self._come.items()
            if shard in answering
        ]
        limit = min(limits, default=now)
        # What a server dates into the future waits for nobody.
        return {shard: None if limit >= now else self._by_its_clock(shard, limit) for shard in shards}

    def over(self, told: Mapping[str, Told | None], now: float) -> Mapping[str, int]:
        """The shards that came too far for the one furthest behind, each with the time by its clock up to which it may
        be told. The one furthest behind goes on in any case."""
        come = {**self._come, **{shard: self._behind(shard, one, now) for shard, one in told.items()}}
        stands = {shard: come[shard].to(now) for shard in self._answering(now) if shard in come}
        last = min(sorted(stands), key=stands.__getitem__, default="")
        if not last or stands[last] + THRESHOLD_SECONDS >= now:
            return {}
        allowed = {shard: self._by_its_clock(shard, stands[last] + THRESHOLD_SECONDS) for shard in told}
        return {
            shard: allowed[shard]
            for shard, one in told.items()
            if shard != last and one is not None and one.newest_time > allowed[shard]
        }

    def took(self, told: Mapping[str, Told | None], now: float) -> None:
        """Take what the shards have told in a turn; None where a log stood still."""
        self._come |= {shard: self._behind(shard, one, now) for shard, one in told.items()}
        self._heard |= dict.fromkeys(told, now)
        if any(one is not None and one.held is not None for one in told.values()):
            read = max(one.log_bytes for one in told.values() if one is not None)
            growth = _SHARE * self.budget / max(read, 1)
            self._stride = max(THRESHOLD_SECONDS, self._stride * min(growth, _GROWTH_MAX))

    def _behind(self, shard: str, told: Told | None, now: float) -> _Come:
        """How far a shard is behind what it tells."""
        before = self._come.get(shard, _Come(None, None))
        if told is None:
            return _Come(None, before.lag)
        if told.held is not None:
            return _Come(told.held - self.ahead[shard], before.lag)
        if not len(told.groups):
            return _Come(None, before.lag)
        written = told.event_time - self.ahead[shard]
        if not told.shown:
            return _Come(written, before.lag)
        return _Come(None, _Lag(max(0.0, now - written), now) if before.next is None else before.lag)

    def _answering(self, now: float) -> Collection[str]:
        return {shard for shard in self.ahead if now - self._heard.setdefault(shard, now) <= _SILENT_SECONDS}

    def _by_its_clock(self, shard: str, time: float) -> int:
        return math.floor(time + self.ahead[shard])
