"""Shards whose log has not moved, and of which no row is left to copy: an epoch has nothing to read there.

What a turn owes them is the identity of their logs (DESIGN 3). The clock asks for it in the sessions that it has, so
that such a shard costs neither a task nor a login.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from catchment.epoch.work import SegmentReceipt
from catchment.feed.clock import Clock
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError
from catchment.model.position import LogOffset
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.source.identity import must_be_unbroken


def unmoved(standing: Cut, tick: Tick) -> tuple[str, ...]:
    """The shards that stand at the cut, whose resets are known, and whose rows are all copied.

    Floors are for copying. So it does not matter that MySQL could seal the cut meanwhile, as it does without a log that
    moves; MariaDB seals nothing then.
    """
    return tuple(shard for shard, at in tick.offsets.items() if _rests(standing.shards[shard], at))


def _rests(state: ShardState, at: LogOffset) -> bool:
    return state.position.at == at and state.position.resets is not None and state.idle


def inherited(
    standing: Cut, shards: tuple[str, ...], clock: Clock, endpoints: Mapping[str, Endpoint]
) -> list[SegmentReceipt]:
    """What an epoch takes over of unmoved shards that answer, with the counts of RESET as of now.

    The count or a restart shows that a log was reset, or that a server was replaced or put back to older data. Raises
    as `must_be_same_log`, when all shards have answered.
    """
    if not shards:
        return []
    now = clock.resets(shards)
    for shard in now:
        try:
            must_be_unbroken(endpoints[shard], standing.shards[shard].position, now[shard])
        except CatchmentError as error:
            error.shard = shard
            raise
    return [
        SegmentReceipt(
            shard=shard,
            reached=replace(standing.shards[shard].position, resets=now[shard]),
            sealed=standing.shards[shard].sealed,
            outputs=(),
            altered=(),
            met=(),
            groups=0,
            log_bytes=0,
            event_time=0,
            keys=standing.shards[shard].keys,
        )
        for shard in now
    ]


def at_rest(
    standing: Manifest, tick: Tick, receipts: Sequence[SegmentReceipt], absent: dict[str, int]
) -> Manifest:
    """The manifest of a turn without an epoch, in which no shard's log has moved: the cut as it was identified now."""
    states = standing.cut.shards
    asked = {one.shard: replace(states[one.shard], position=one.reached) for one in receipts}
    cut = Cut(tick.number, tick.time_us, {**states, **asked})
    return replace(standing.without_rows(cut, tick.window_us), absent=absent)
