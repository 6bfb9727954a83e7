"""Which shards a run may begin without: what one of them meets holds up that shard alone (DESIGN 2)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from catchment.feed.edition import Edition
from catchment.model.errors import CatchmentError, Retry
from catchment.model.retries import may_pass


@dataclass(frozen=True, slots=True)
class Spared:
    """What a run bears of its shards when it takes up an edition of its feed file. `any_shard`: whether it may begin
    without one at all; a new feed needs every shard. `bears`: it waits for a shard that somebody has to mend."""

    edition: Edition
    any_shard: bool
    bears: bool

    def must_be_borne(
        self,
        failed: Mapping[str, CatchmentError],
        well: Collection[str],
        by_edition: Callable[[str], bool] = lambda shard: False,
    ) -> None:
        """Raise the first error that keeps the run from beginning. `well`: the shards that met none. `by_edition`:
        whether a shard fails by what the edition changes, which is refused then. So is one by which a shard is reached
        at an address where the server is not set up, or is another one.

        A run that begins needs one shard that is well; one that goes on may have been without any.
        """
        for shard, error in failed.items():
            if not (self.any_shard and may_pass(error, bears=self.bears)):
                raise error
            if error.retry is Retry.NEVER and (shard in self.edition.moved or by_edition(shard)):
                raise error
        if self.edition.begins and not well:
            raise next(iter(failed.values()))
