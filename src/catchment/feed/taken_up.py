"""Where a run begins, and where it goes on after the log of a shard was lost or something in it was set aside. A shard
that cannot go on holds up itself alone."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from catchment import world
from catchment.feed.adoption import Adopted
from catchment.feed.lost_logs import LostLog, begun, looked_again, looked_at, new_cuts
from catchment.feed.shard_reader import Admit
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import CatchmentError, LogLost
from catchment.model.position import LogOffset, Position
from catchment.model.retries import may_pass
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.set_aside import BY_ORDER


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Where a run begins. `highest`: of the epoch numbers used so far. `present`: the tables that the rules take, of
    each shard that can be read. `first`: the epoch that comes first, where shards begin again. `unready`: what shards
    have to pass before anything more is asked of them. `bears`: the run waits for a shard that somebody has to mend.
    `adopted`: the server that a shard has now."""

    standing: Manifest
    highest: int
    present: dict[str, list[TableId]]
    first: Manifest | None = None
    unready: Mapping[str, Admit] = field(default_factory=dict)
    bears: bool = False
    adopted: Adopted | None = None

    @property
    def positions(self) -> dict[str, Position]:
        """Where the logs are read from."""
        return (self.first or self.standing).cut.positions

    def again(
        self, standing: Manifest, highest: int, endpoints: Mapping[str, Endpoint], met: LogLost
    ) -> "TakenUp":
        """Where the run goes on after `standing`, since it has met that the log of a shard is lost. The log may have
        been purged where it held nothing more. A shard that cannot be looked at, or cannot begin again, holds up itself
        alone where the run bears that.

        Raises `met` where another look at the log does not find it lost, and SourceError where the run does not bear
        what the shard meets.
        """
        shard = met.shard
        if shard not in endpoints:
            raise met
        looked = looked_at({shard: endpoints[shard]}, standing)
        after = dataclasses.replace(
            self,
            standing=replace(standing, cut=standing.cut.moved(looked.positions)),
            highest=highest,
            first=None,
        )
        if looked.failed:
            return after._without(looked.failed, lambda shard: looked_again(endpoints[shard], standing))
        if after.standing.cut.positions != standing.cut.positions:
            return after
        if not looked.lost:
            raise met
        return after.begun_again(endpoints, looked.lost)

    def behind(
        self,
        standing: Manifest,
        highest: int,
        endpoints: Mapping[str, Endpoint],
        met: CatchmentError,
        at: LogOffset,
    ) -> "TakenUp":
        """Where the run goes on after an order has set aside what stopped it, which is `at` a place of its shard's log:
        the shard begins again. Raises as `again`."""
        lost = LostLog(f"shard {met.shard} at {at}: {met}; {BY_ORDER}", at)
        after = dataclasses.replace(self, standing=standing, highest=highest, first=None)
        return after.begun_again(endpoints, {met.shard: lost}, waits=False)

    def begun_again(
        self, endpoints: Mapping[str, Endpoint], lost: Mapping[str, LostLog], *, waits: bool = True
    ) -> "TakenUp":
        """The same, where shards whose log is lost begin again in an epoch that comes first. `waits`: their tables wait
        for an order. Raises SourceError where one cannot begin, and the run does not bear that."""
        cuts = new_cuts(self.standing, endpoints, lost, waits=waits)
        after = self
        if cuts.shards:
            epoch = max(epoch_number(world.now_us() // 1_000_000), self.highest + 1)
            unready = {shard: admit for shard, admit in self.unready.items() if shard not in cuts.shards}
            first = cuts.epoch(self.standing, epoch)
            after = dataclasses.replace(self, highest=epoch, first=first, unready=unready)
        return after._without(cuts.failed, lambda shard: begun(endpoints[shard], self.standing))

    def _without(self, failed: Mapping[str, CatchmentError], admit: Callable[[str], object]) -> "TakenUp":
        """The same, where shards that failed hold up themselves until `admit` has let them pass. Raises their error
        where the run does not bear that."""
        for error in failed.values():
            if not may_pass(error, bears=self.bears):
                raise error
        later = {shard: partial(admit, shard) for shard in failed}
        return dataclasses.replace(self, unready={**self.unready, **later})
