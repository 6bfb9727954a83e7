"""Shards whose log was lost (purged, reset): what an epoch makes of them, which begins them again. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.model.cut import Cut
from catchment.model.epoch import Manifest
from catchment.model.position import LogOffset, Position
from catchment.model.shard import ShardState
from catchment.model.table import TableId


@dataclass(frozen=True, slots=True)
class BegunAgain:
    """A shard whose log no longer goes on where it was read to, and why. `position`: a new one, proven visible.
    `waits`: its tables are copied again when somebody orders that. `place`: where that is in its log which an order set
    aside."""

    position: Position
    reason: str
    waits: bool = True
    place: LogOffset | None = None


def begun_again(standing: Manifest, shards: Mapping[str, BegunAgain], epoch: int, time_us: int) -> Manifest:
    """The epoch behind `standing` in which shards stand at other positions, and none of their tables is followed.

    Nothing between the old position and the new one is taken as read. So each table that one of them has is stale, as
    of `standing` or earlier. Other tables and shards stay where they are.
    """
    having = {**standing.holders, **{one.table: one.shards for one in standing.lost}}
    reasons: dict[TableId, str] = {}
    for table, held in having.items():
        why = [shards[shard].reason for shard in held if shard in shards]
        if why:
            reasons[table] = "; ".join(why)
    places = {shard: one.place for shard, one in shards.items() if one.place is not None}
    stopped = [
        standing.stopped(
            table, time_us, reason, {shard: at for shard, at in places.items() if shard in having[table]}
        )
        for table, reason in reasons.items()
    ]
    stale = [one for one in standing.stale if one.table not in reasons]
    waits = any(one.waits for one in shards.values())
    stale += [replace(one, asked=False, waits=waits) for one in stopped]
    after = standing.repeated(epoch).without(reasons)
    states = {
        **after.cut.shards,
        **{shard: ShardState(one.position, one.position.at) for shard, one in shards.items()},
    }
    return replace(
        after,
        cut=Cut(epoch, standing.time_us, states),
        absent={shard: since for shard, since in standing.absent.items() if shard not in shards},
        stale=tuple(sorted(stale, key=lambda one: one.table)),
    )
