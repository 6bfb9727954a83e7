"""Where a stream stands beside a tick, and after a turn."""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from catchment.model.cut import Cut, Tick
from catchment.model.position import reaches
from catchment.serve.stream.shard_reader import Step
from catchment.serve.stream.vgtid import StreamCut


def shown_by(tick: Tick, stands: StreamCut) -> StreamCut:
    """The same place, where the tick shows that the logs of some shards end there."""
    shards = stands.cut.shards
    unshown = [shard for shard in stands.unshown if shards[shard].position.at != tick.offsets.get(shard)]
    return replace(stands, unshown=tuple(unshown))


def not_back(tick: Tick, stands: StreamCut) -> Tick:
    """The tick with the places of shards that have come further: a log may hold what no snapshot shows yet."""
    shards = stands.cut.shards
    ahead = {
        shard: shards[shard].position.at
        for shard, at in tick.offsets.items()
        if reaches(shards[shard].position.at, at)
    }
    return replace(tick, offsets={**tick.offsets, **ahead})


def stands_after(
    stands: StreamCut, tick: Tick, steps: Mapping[str, Step], hidden: Collection[str]
) -> StreamCut:
    """After a turn of these steps; the same object where no shard moved. `hidden`: shards of which no tick showed that
    their log ends there."""
    before = stands.cut.shards
    if all(step.state == before[shard] for shard, step in steps.items()):
        return stands
    told = {shard: step.told for shard, step in steps.items()}
    unshown = {shard for shard in stands.unshown if told.get(shard) is None}
    unshown |= {shard for shard, one in told.items() if one is not None and not one.shown}
    unshown |= set(hidden)
    shards = {**before, **{shard: step.state for shard, step in steps.items()}}
    return replace(stands, cut=Cut(tick.number, tick.time_us, shards), unshown=tuple(sorted(unshown)))
