"""What an epoch makes of shadow tables: they are followed, take places, or are not followed any more. Pure."""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from catchment.epoch.work import SegmentReceipt
from catchment.model.birth import Birth
from catchment.model.epoch import Manifest, Shadow, TableShape
from catchment.model.table import TableId
from catchment.model.treatment import Mode


def shadows_after(
    previous: Manifest,
    segments: Mapping[str, SegmentReceipt],
    stopped: Collection[TableId],
    shapes: Iterable[TableShape],
) -> tuple[Shadow, ...]:
    """The shadow tables behind an epoch: those of `shapes`, that are followed still, as long as they can take their
    place. `stopped`: the carried tables that the epoch does not follow any more."""
    if not previous.shadows:
        return ()
    followed = {shape.table: shape for shape in shapes}
    found = []
    for shadow in previous.shadows:
        if shadow.table not in followed:
            continue
        after = _swapped(shadow, previous, segments)
        if not after.swapped or _takes_place(after, shadow, previous, stopped):
            found.append(replace(after, shape=followed[shadow.table]))
    return tuple(found)


def _swapped(shadow: Shadow, previous: Manifest, segments: Mapping[str, SegmentReceipt]) -> Shadow:
    """A shadow table with the shards where it has taken its place in this epoch."""
    new = {
        shard: Birth(previous.cut.shards[shard].position, one.at)
        for shard, segment in segments.items()
        for one in segment.swapped
        if one.shadow == shadow.table
    }
    if not new:
        return shadow
    left = tuple(shard for shard in shadow.shards if shard not in new)
    return replace(shadow, shards=left, swapped={**shadow.swapped, **new})


def _takes_place(after: Shadow, before: Shadow, previous: Manifest, stopped: Collection[TableId]) -> bool:
    """Whether a shadow table that has taken its place on some shards can do so on all: each shard of the table has it.
    With the first of them the table stops, which was exact in the epoch before and of an earlier generation."""
    table = after.place_of
    if before.swapped:
        return any(one.table == table and after.covers(one.shards) for one in previous.lost)
    exact = [one for one in previous.shapes if one.table == table and previous.stale_since(table) is None]
    return (
        table in stopped
        and after.covers(previous.holders.get(table, ()))
        and all(one.generation < after.shape.generation and one.mode is Mode.MIRROR for one in exact)
        and bool(exact)
    )
