"""How far apart the shards come to a client that asked for them side by side.

No transaction may be told that was written more than two seconds after the oldest one that another shard has still to
tell. Times are whole seconds, by the simulation's clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.world.sim.history import Group
from tests.world.sim.serve.ledger import Ledger, Told, Wrong
from tests.world.sim.server import START_SECONDS, Server

_BOUND_SECONDS = 2
# What a log says in whole seconds may be one more.
_ROUNDING = 1
# What came into a log just before a turn may not have been seen by it.
_SEEN_SECONDS = 1.0


@dataclass
class Skew:
    """`judges`: whether all shards answer, and have answered for a while. `told`: how many transactions were judged."""

    servers: Mapping[str, Server]
    judges: bool = False
    told: int = 0
    most: float = 0.0

    def take(self, ledger: Ledger, told: Told, since: Mapping[str, tuple[int, int]]) -> None:
        """What a client received up to its ledger's vgtid; `since`: where the shards stood before. Raises Wrong."""
        if not self.judges or ledger.cut is None or not ledger.cut.done or told.restarts:
            return
        seen = ledger.cut.time_us / 1e6 - START_SECONDS - _SEEN_SECONDS
        rest = {shard: self._rest(shard, place, seen) for shard, place in since.items()}
        for one in told.transactions:
            if one.begin.copied:
                continue
            shard, written = one.begin.shard, self._time(one.begin.shard, one.begin.time)
            mine = rest[shard]
            while mine and mine[0].seconds != one.begin.time:
                mine.pop(0)  # of tables that are not told
            if mine:
                mine.pop(0)
            self.told += 1
            for other, left in rest.items():
                if other != shard and left:
                    ahead = written - self._time(other, left[0].seconds)
                    self.most = max(self.most, ahead)
                    if ahead > _BOUND_SECONDS + _ROUNDING:
                        raise Wrong(f"{shard} comes {ahead:.1f} s ahead of what {other} has still to send")

    def _rest(self, shard: str, place: tuple[int, int], seen: float) -> list[Group]:
        """The transactions behind a place that a turn may know of."""
        groups = self.servers[shard].history.groups
        return [group for group in groups if group.end > place and group.logged_at <= seen and group.changes]

    def _time(self, shard: str, seconds: int) -> float:
        """By the simulation's clock."""
        return seconds - self.servers[shard].ahead
