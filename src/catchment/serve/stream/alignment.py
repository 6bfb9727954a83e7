"""Keeps the shards of a stream together in time: those that are ahead wait for those that lag (seed 003).

A shard's next transaction tells how far it has come, not its last one. So the shard that is furthest behind can always
go on, and nothing stalls. All times here are in seconds since 1970 by the stream's own clock.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from catchment.serve.stream.advance import Told

# Logs have whole seconds, and clocks differ: a threshold of one second would stop streams for roundings.
THRESHOLD_SECONDS: Final = 2.0
# A shard that has told nothing for so long may have caught up with its primary.
_LAG_SECONDS: Final = 60.0
# Nobody waits for a shard that has not answered for so long.
_SILENT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Lag:
    seconds: float
    seen: float


@dataclass
class Alignment:
    """How far each shard has come. `ahead`: by how many seconds its clock is ahead of ours.

    A shard that is read to its end has come to now, less the age that its transactions had when they came. So much does
    a replica lag. One that is not has come to its next transaction.
    """

    ahead: Mapping[str, float]
    next: dict[str, float] = field(default_factory=dict)
    _met: set[str] = field(default_factory=set)
    _lags: dict[str, _Lag] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)

    def until(self, shard: str, now: float) -> int | None:
        """The time by a shard's clock up to which its transactions may be told; None where it need not wait.

        None may be told before all have said when their next ones were written.
        """
        answering = [one for one in self.ahead if self._answers(one, now)]
        if any(one not in self._met for one in answering):
            return 0
        limit = min((self._come_to(one, now) for one in answering), default=now) + THRESHOLD_SECONDS
        # What a server dates into the future waits for nobody.
        return None if limit >= now else math.floor(limit + self.ahead[shard])

    def took(self, shard: str, told: Told | None, now: float) -> None:
        """Take what a shard has told; `told` None where its log stood still."""
        waited = shard in self.next
        self._heard[shard] = now
        self._met.add(shard)
        self.next.pop(shard, None)
        if told is None:
            return
        if told.held is not None:
            self.next[shard] = told.held - self.ahead[shard]
        elif told.groups.num_rows:
            written = told.event_time - self.ahead[shard]
            if not told.shown:
                self.next[shard] = written
            elif not waited:
                self._lags[shard] = _Lag(max(0.0, now - written), now)

    def _come_to(self, shard: str, now: float) -> float:
        if shard in self.next:
            return self.next[shard]
        lag = self._lags.get(shard)
        return now if lag is None or now - lag.seen > _LAG_SECONDS else now - lag.seconds

    def _answers(self, shard: str, now: float) -> bool:
        return now - self._heard.setdefault(shard, now) <= _SILENT_SECONDS
