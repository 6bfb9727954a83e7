"""Which shards take part in the epochs: one that cannot be read holds up itself alone, for some time (DESIGN 2)."""

from collections.abc import Collection, Sequence

from catchment import world
from catchment.epoch.work import Failed
from catchment.model.cut import Tick
from catchment.model.epoch import Manifest
from catchment.model.errors import Retry, Scope


class Arrivals:
    """Knows when each shard took part last. The loop's thread alone uses it.

    `away_max`: seconds for which epochs may close without a shard; 0: each waits for all of them.
    """

    def __init__(self, standing: Manifest, away_max: float) -> None:
        self._away_max = away_max
        self._as_of_us = {
            shard: standing.absent.get(shard, standing.time_us) for shard in standing.cut.shards
        }
        self._seen = dict.fromkeys(standing.cut.shards, world.steady_seconds())

    def must_do_without(self, failed: Sequence[Failed], others: Collection[str]) -> None:
        """Raise the error of a segment without which the epoch may not close.

        That is one which cannot pass or is not the shard's, one of a shard that has been away for too long, and any
        where no other arrived.
        """
        now = world.steady_seconds()
        for one in sorted(failed, key=lambda failed: failed.error.retry is not Retry.NEVER):
            lasting = now - self._seen[one.shard] >= self._away_max
            its_own = one.error.scope is Scope.SHARD and one.error.retry is not Retry.NEVER
            if not its_own or lasting or not others:
                raise one.error

    def absent(self, tick: Tick, arrived: Collection[str]) -> dict[str, int]:
        """Take in a turn: the shards that did not arrive, and as of when their rows stand (microseconds since 1970)."""
        now = world.steady_seconds()
        for shard in arrived:
            self._as_of_us[shard], self._seen[shard] = tick.time_us, now
        return {shard: since for shard, since in self._as_of_us.items() if shard not in arrived}
