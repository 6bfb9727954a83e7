"""What of a manifest is not as in an earlier one: most records hold no more (model/records.py)."""

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from catchment.model.cut import Cut
from catchment.model.definition import Definition
from catchment.model.differences import replaced, restored
from catchment.model.epoch import Manifest, Outside, Shadow, TableDelta, TableShape
from catchment.model.foreign_key import ForeignKey
from catchment.model.position import LogOffset, Position, Resets
from catchment.model.shard import Copy, ShardState
from catchment.model.stale import Stale


class ShardChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What of a shard's state is not as in the base; copies by their place."""

    position: Position | UnsetType = UNSET
    sealed: LogOffset | UnsetType | None = UNSET
    copies: dict[int, Copy] = {}
    definitions: tuple[Definition, ...] | UnsetType = UNSET
    keys: tuple[ForeignKey, ...] | UnsetType | None = UNSET


_NOTHING = ShardChange()


class ManifestChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is not as in the base: states by shard, shapes by place. `resets`: of shards that are the same but for
    them."""

    version: int
    base: int
    base_digest: str
    epoch: int
    previous: int
    time_us: int
    window_us: int
    shards: dict[str, ShardChange] = {}
    resets: dict[str, Resets | None] = {}
    shapes: dict[int, TableShape] = {}
    deltas: tuple[TableDelta, ...] = ()
    changes: int = 0
    log_bytes: int = 0
    chunk_bytes: int = 0
    outside: tuple[Outside, ...] | None = None
    absent: dict[str, int] = {}
    stale: tuple[Stale, ...] | None = None
    shadows: tuple[Shadow, ...] | None = None


def change_of(
    after: Manifest, before: Manifest, *, version: int, base: int, base_digest: str
) -> ManifestChange | None:
    """None where shards, tables or their number are others: an epoch that is worth a whole record."""
    now, then = after.cut.shards, before.cut.shards
    if after.feed != before.feed or now.keys() != then.keys() or len(after.shapes) != len(before.shapes):
        return None
    shards: dict[str, ShardChange] = {}
    resets: dict[str, Resets | None] = {}
    for shard, state in now.items():
        known = then[shard]
        if state is known:
            continue
        if len(state.copies) != len(known.copies):
            return None
        change = _shard_change(state, known)
        if change is None:
            resets[shard] = state.position.resets
        elif change != _NOTHING:
            shards[shard] = change
    return ManifestChange(
        version=version,
        base=base,
        base_digest=base_digest,
        epoch=after.epoch,
        previous=after.previous,
        time_us=after.time_us,
        window_us=after.window_us,
        shards=shards,
        resets=resets,
        shapes=replaced(before.shapes, after.shapes),
        deltas=after.deltas,
        changes=after.changes,
        log_bytes=after.log_bytes,
        chunk_bytes=after.chunk_bytes,
        outside=None if after.outside == before.outside else after.outside,
        absent=after.absent,
        stale=None if after.stale == before.stale else after.stale,
        shadows=None if after.shadows == before.shadows else after.shadows,
    )


def _shard_change(after: ShardState, before: ShardState) -> ShardChange | None:
    """None where all but the resets of the position is the same."""
    position: Position | UnsetType = UNSET if after.position == before.position else after.position
    change = ShardChange(
        position=position,
        sealed=UNSET if after.sealed == before.sealed else after.sealed,
        copies=replaced(before.copies, after.copies),
        definitions=UNSET if after.definitions == before.definitions else after.definitions,
        keys=UNSET if after.keys == before.keys else after.keys,
    )
    asked = replace(before.position, resets=after.position.resets)
    return None if change == ShardChange(position=asked) else change


def manifest_after(change: ManifestChange, base: Manifest) -> Manifest:
    """The manifest of a change and its base. Raises ValueError where they do not fit."""
    states = base.cut.shards
    unknown = (change.shards.keys() | change.resets.keys()) - states.keys()
    if unknown:
        raise ValueError(f"names shards that its base does not have: {', '.join(sorted(unknown))}")
    shards = {
        **states,
        **{shard: _asked(states[shard], resets) for shard, resets in change.resets.items()},
        **{shard: _state_after(states[shard], one) for shard, one in change.shards.items()},
    }
    return Manifest(
        feed=base.feed,
        previous=change.previous,
        window_us=change.window_us,
        cut=Cut(change.epoch, change.time_us, shards),
        shapes=restored(base.shapes, change.shapes),
        deltas=change.deltas,
        changes=change.changes,
        log_bytes=change.log_bytes,
        chunk_bytes=change.chunk_bytes,
        outside=base.outside if change.outside is None else change.outside,
        absent=change.absent,
        stale=base.stale if change.stale is None else change.stale,
        shadows=base.shadows if change.shadows is None else change.shadows,
    )


def _asked(state: ShardState, resets: Resets | None) -> ShardState:
    return replace(state, position=replace(state.position, resets=resets))


def _state_after(state: ShardState, change: ShardChange) -> ShardState:
    return ShardState(
        state.position if change.position is UNSET else change.position,
        state.sealed if change.sealed is UNSET else change.sealed,
        restored(state.copies, change.copies),
        state.definitions if change.definitions is UNSET else change.definitions,
        state.keys if change.keys is UNSET else change.keys,
    )
