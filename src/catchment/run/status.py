"""Where a feed stands, from the state store alone: no shard and no lake is asked."""

import time
from collections.abc import Sequence

import msgspec

from catchment.model.chunk import Phase, Progress
from catchment.model.epoch import Manifest, Plan, epoch_text
from catchment.run.lease import holder
from catchment.run.store import Store


class TableStatus(msgspec.Struct, frozen=True):
    """A table over all shards; COPYING until it is copied from every one of them. `refused`: where its copy
    stands still, and why."""

    table: str
    phase: Phase
    rows: int
    rows_expected: int
    refused: tuple[str, ...] = ()


class Status(msgspec.Struct, frozen=True):
    """A feed: `epoch` is the newest committed one (0: none), `epoch_text` its spelling, `lag_seconds` the age of its
    cut, or how long ago all logs were seen to stand at it. `pending` names the record that the next one has for
    certain: a manifest, or nothing yet. `runner` is empty when nobody runs the feed."""

    feed: str
    runner: str
    epoch: int
    epoch_text: str
    lag_seconds: float | None
    pending: str
    cut: dict[str, str]
    tables: tuple[TableStatus, ...]


def read_status(store: Store) -> Status:
    """The status as of one moment; raises StateError."""
    plan, manifest, commit = store.newest()
    committed = store.manifest(commit.epoch) if commit else None
    owner = holder(store)
    epoch = commit.epoch if commit else 0
    return Status(
        feed=store.feed,
        runner=str(owner) if owner is not None and not owner.is_dead() else "",
        epoch=epoch,
        epoch_text=epoch_text(epoch) if commit else "",
        lag_seconds=time.time() - _as_of_us(committed, plan) / 1e6 if committed else None,
        pending="manifest" if manifest is not None and manifest.epoch > epoch else "",
        cut={shard: str(position) for shard, position in committed.cut.items()} if committed else {},
        tables=_tables(committed, plan),
    )


def _as_of_us(committed: Manifest, plan: Plan | None) -> int:
    """When the source was last known to be as in the newest epoch: at its cut, or at rest when planned again."""
    if plan is None or not committed.stood_at(plan.tick):
        return committed.time_us
    return max(committed.time_us, plan.tick.time_us)


def _tables(manifest: Manifest | None, plan: Plan | None) -> tuple[TableStatus, ...]:
    by_table: dict[str, list[Progress]] = {}
    for progress in manifest.progress if manifest else ():
        by_table.setdefault(str(progress.table), []).append(progress)
    return tuple(_table(name, parts, plan) for name, parts in sorted(by_table.items()))


def _table(name: str, parts: Sequence[Progress], plan: Plan | None) -> TableStatus:
    open_on = [p.shard for p in parts if not p.done]
    refused = [r for r in (plan.refused if plan else ()) if str(r.table) == name and r.shard in open_on]
    return TableStatus(
        name,
        Phase.FOLLOWING if all(p.done for p in parts) else Phase.COPYING,
        sum(p.rows for p in parts),
        sum(p.rows_expected for p in parts),
        tuple(str(refusal) for refusal in refused),
    )
