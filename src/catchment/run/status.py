"""Where a feed stands, from the state store alone: no shard and no lake is asked."""

import time
from collections.abc import Iterable

import msgspec

from catchment.model.chunk import Phase, Progress
from catchment.model.epoch import Manifest
from catchment.run.lease import holder
from catchment.run.store import Store


class TableStatus(msgspec.Struct, frozen=True):
    """A table over all shards; COPYING until it is copied from every one of them."""

    table: str
    phase: Phase
    rows: int
    rows_expected: int


class Status(msgspec.Struct, frozen=True):
    """A feed: `epoch` is the newest committed one (0: none), `lag_seconds` the age of its cut. `pending`
    names the newest record that is not committed yet. `runner` is empty when nobody runs the feed."""

    feed: str
    runner: str
    epoch: int
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
    pending = ""
    if manifest is not None and manifest.epoch > epoch:
        pending = "manifest"
    elif plan is not None and plan.epoch > epoch:
        pending = "plan"
    return Status(
        feed=store.feed,
        runner=str(owner) if owner is not None and not owner.is_dead() else "",
        epoch=epoch,
        lag_seconds=time.time() - committed.time_us / 1e6 if committed else None,
        pending=pending,
        cut={shard: str(position) for shard, position in committed.cut.items()} if committed else {},
        tables=_tables(committed),
    )


def _tables(manifest: Manifest | None) -> tuple[TableStatus, ...]:
    by_table: dict[str, list[Progress]] = {}
    for progress in manifest.progress if manifest else ():
        by_table.setdefault(str(progress.table), []).append(progress)
    return tuple(_table(name, parts) for name, parts in sorted(by_table.items()))


def _table(name: str, parts: Iterable[Progress]) -> TableStatus:
    parts = list(parts)
    return TableStatus(
        name,
        Phase.FOLLOWING if all(p.done for p in parts) else Phase.COPYING,
        sum(p.rows for p in parts),
        sum(p.rows_expected for p in parts),
    )
