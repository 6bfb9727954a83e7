"""What an epoch makes of shadow tables: they are followed, take places, or are not followed any more. Pure."""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from catchment.epoch.work import SegmentReceipt
from catchment.model.birth import Birth
from catchment.model.epoch import Former, Manifest, Shadow, Stood, TableShape
from catchment.model.errors import Unsupported
from catchment.model.table import TableId
from catchment.model.treatment import Mode
from catchment.schema.replaced import replaced


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
        after = replace(_swapped(shadow, previous, segments), shape=followed[shadow.table])
        placed = _placed(after, shadow, previous, stopped) if after.swapped else after
        if placed is not None:
            found.append(placed)
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


def _placed(after: Shadow, before: Shadow, previous: Manifest, stopped: Collection[TableId]) -> Shadow | None:
    """A shadow table that has taken its place on some shards; None where the table is to be copied.

    With the first of them the table stops, which was exact in the epoch before and of an earlier generation. Where a
    shard has no shadow table, its rows are to stay.
    """
    table = after.place_of
    if before.swapped:
        lost = [one for one in previous.lost if one.table == table]
        goes_on = any(after.former is not None or after.covers(one.shards) for one in lost)
        return after if goes_on else None
    exact = [one for one in previous.shapes if one.table == table and previous.stale_since(table) is None]
    if table not in stopped or not exact:
        return None
    (shape,) = exact
    if shape.generation >= after.shape.generation or shape.mode is not Mode.MIRROR:
        return None
    holders = previous.holders.get(table, ())
    if after.covers(holders):
        return after
    stood = _stood(previous, table, [shard for shard in holders if not after.covers([shard])])
    return replace(after, former=Former(shape, stood)) if stood and _fits(shape, after, holders) else None


def _stood(previous: Manifest, table: TableId, shards: Collection[str]) -> dict[str, Stood]:
    """Where these shards stood; nothing where rows of one were to be copied still, or its log lacks names."""
    found = {}
    for shard in shards:
        state = previous.cut.shards[shard]
        (copy,) = (one for one in state.copies if one.table == table)
        if not copy.done or state.definitions:
            return {}
        found[shard] = Stood(state.position, copy)
    return found


def _fits(former: TableShape, shadow: Shadow, holders: Collection[str]) -> bool:
    """Whether rows of both may lie in one table."""
    try:
        replaced(former, shadow.shape, {*shadow.shards, *shadow.swapped}, holders)
    except Unsupported:
        return False
    return True
