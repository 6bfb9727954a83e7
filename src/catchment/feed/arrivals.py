"""Which shards take part in the epochs: one that cannot be read holds up itself alone, for some time (DESIGN 2)."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from catchment import world
from catchment.epoch.work import Failed
from catchment.feed.held import Pause
from catchment.model.cut import Tick
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, HeldUp, Retry
from catchment.model.retries import holds_up_a_shard, may_pass


class Arrivals:
    """Knows when each shard took part last. The loop's thread alone uses it.

    `away_max`: seconds for which epochs may close without a shard; 0: each waits for all of them. `bears`: a shard that
    somebody has to mend is waited for, too.
    """

    def __init__(self, standing: Manifest, away_max: float, *, bears: bool = False) -> None:
        self._away_max, self._bears = away_max, bears
        self._as_of_us = {
            shard: standing.absent.get(shard, standing.time_us) for shard in standing.cut.shards
        }
        self._seen = dict.fromkeys(standing.cut.shards, world.steady_seconds())
        self._held = {shard: Pause() for shard in standing.cut.shards}

    def of(self, tick: Tick) -> Tick:
        """The tick without the shards that are not to be tried yet. Raises HeldUp where no other is left."""
        held = [shard for shard in tick.offsets if not self._held[shard].over]
        if not held:
            return tick
        offsets = {shard: at for shard, at in tick.offsets.items() if shard not in held}
        errors = [error for shard in held if (error := self._held[shard].error) is not None]
        if errors and (not offsets or any(self._lasts(shard) for shard in held)):
            raise HeldUp(errors[0])
        return replace(tick, offsets=offsets)

    def must_do_without(self, failed: Sequence[Failed], others: Collection[str], began: float) -> None:
        """Raise the error of a segment without which the epoch may not close. `began`: the segments, in steady seconds.

        That is one which is not the shard's or does not pass, one of a shard that has been away for too long, and any
        where no other arrived. Raises HeldUp where it can be waited for until somebody has mended the shard.
        """
        for one in failed:
            if self._bears and one.error.retry is Retry.NEVER and holds_up_a_shard(one.error):
                self._held[one.shard].after(one.error, began)
        for one in sorted(failed, key=lambda failed: failed.error.retry is not Retry.NEVER):
            its_own = holds_up_a_shard(one.error) and may_pass(one.error, bears=self._bears)
            if not its_own:
                raise one.error
            if self._lasts(one.shard) or not others:
                raise self._waited_for(one.error)

    def absent(self, tick: Tick, arrived: Collection[str]) -> dict[str, int]:
        """Take in a turn: the shards that did not arrive, and as of when their rows stand (microseconds since 1970)."""
        now = world.steady_seconds()
        for shard in arrived:
            self._as_of_us[shard], self._seen[shard] = tick.time_us, now
            self._held[shard].end()
        return {shard: since for shard, since in self._as_of_us.items() if shard not in arrived}

    def _lasts(self, shard: str) -> bool:
        return world.steady_seconds() - self._seen[shard] >= self._away_max

    def _waited_for(self, error: CatchmentError) -> CatchmentError:
        return HeldUp(error) if error.retry is Retry.NEVER else error
