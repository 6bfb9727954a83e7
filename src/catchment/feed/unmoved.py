"""Shards whose log has not moved, and of which no row is left to copy: an epoch has nothing to read there.

What a turn owes them is the identity of their logs (DESIGN 3). The clock asks for it in the sessions that it has, so
that such a shard costs neither a task nor a login.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from catchment.epoch.work import SegmentReceipt
from catchment.feed.clock import Clock
from catchment.model.epoch import Manifest, Tick
from catchment.model.source import Endpoint
from catchment.source.identity import must_be_unbroken


def unmoved(standing: Manifest, tick: Tick) -> tuple[str, ...]:
    """The shards that stand at the cut, whose resets are known, and whose rows are all copied.

    Floors are for copying. So it does not matter that MySQL could seal the cut meanwhile, as it does without a log that
    moves; MariaDB seals nothing then.
    """
    copying = {progress.shard for progress in standing.progress if not progress.done}
    return tuple(
        shard
        for shard, at in tick.offsets.items()
        if shard not in copying and standing.cut[shard].at == at and standing.cut[shard].resets is not None
    )


def inherited(
    standing: Manifest, shards: tuple[str, ...], clock: Clock, endpoints: Mapping[str, Endpoint]
) -> list[SegmentReceipt]:
    """What an epoch takes over of unmoved shards that answer, with the counts of RESET as of now.

    The count or a restart shows that a log was reset, or that a server was replaced or put back to older data. Raises
    as `must_be_same_log`, when all shards have answered.
    """
    if not shards:
        return []
    now = clock.resets(shards)
    for shard in now:
        must_be_unbroken(endpoints[shard], standing.cut[shard], now[shard])
    return [
        SegmentReceipt(
            shard=shard,
            reached=replace(standing.cut[shard], resets=now[shard]),
            sealed=standing.sealed.get(shard),
            outputs=(),
            altered=(),
            met=(),
            groups=0,
            log_bytes=0,
            event_time=0,
            definitions=standing.definitions.get(shard, ()),
        )
        for shard in now
    ]


def at_rest(
    standing: Manifest, tick: Tick, receipts: Sequence[SegmentReceipt], absent: dict[str, int]
) -> Manifest:
    """The manifest of a turn without an epoch, in which no shard's log has moved: the cut as it was identified now."""
    return replace(
        standing,
        epoch=tick.number,
        previous=standing.epoch,
        time_us=tick.time_us,
        window_us=tick.window_us,
        cut={**standing.cut, **{receipt.shard: receipt.reached for receipt in receipts}},
        deltas=(),
        changes=0,
        log_bytes=0,
        chunk_bytes=0,
        absent=absent,
    )
