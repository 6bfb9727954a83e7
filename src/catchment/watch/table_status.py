"""Where a table stands over all shards, and how far its copy is: from a manifest, and from the progress of a run."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from catchment.model.cut import Cut
from catchment.model.epoch import Manifest, Plan
from catchment.model.epoch_number import epoch_text
from catchment.model.progress import THROUGH, Basis, CopyProgress, Forecast, Progress, together
from catchment.model.shard import Copy
from catchment.model.table import ShardTable, TableId
from catchment.model.table_state import TableState, state_with
from catchment.watch.copies_left import PAUSED, UNCOUNTED

NOBODY_RUNS = "nobody runs the feed"
NOT_YET = "it is not known yet"


class PartStatus(msgspec.Struct, frozen=True):
    """A table on a shard: rows done of those `expected`, and how sure that number is (`basis`). `rate`: rows a second,
    lately. None where it is unknown; `left` says why, where it has no end."""

    shard: str
    rows: int
    expected: int | None
    basis: Basis
    rate: float | None
    left: Forecast


class TableStatus(msgspec.Struct, frozen=True):
    """A table over all shards; COPYING until it is copied from every one of them. `rows_expected`: as the servers
    estimated when the copy began. `refused`: where its copy stands still, and why. `throttled`: where its rows wait for
    the source's sake. `as_of`: the epoch as of which
    readers see it, where that is not the newest, and `reason`. A table that is not copied whole has `parts` by shard.
    Over all of them are how many rows are `expected`, how many come a second (`rate`), and until when (`left`)."""

    table: str
    state: TableState
    rows: int
    rows_expected: int
    refused: tuple[str, ...] = ()
    as_of: str = ""
    reason: str = ""
    throttled: tuple[str, ...] = ()
    parts: tuple[PartStatus, ...] = ()
    expected: int | None = None
    rate: float | None = None
    left: Forecast = THROUGH


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known beside a manifest: the newest plan and, if the feed `runs`, how far it is, and what is said of
    throttled shards."""

    plan: Plan | None
    runs: bool
    progress: Progress | None
    throttled: Mapping[str, str]


def table_statuses(manifest: Manifest, beside: Beside) -> tuple[TableStatus, ...]:
    """All tables of a feed, by name."""
    by_table: dict[TableId, dict[str, Copy]] = {table: {} for table in manifest.tables}
    for shard, state in manifest.cut.shards.items():
        for copy in state.copies:
            by_table[copy.table][shard] = copy
    parts = parts_by_table(manifest.cut, beside.progress, runs=beside.runs)
    return tuple(
        _table(manifest, table, copies, beside, parts.get(table, ()))
        for table, copies in sorted(by_table.items())
    )


def parts_by_table(
    cut: Cut, progress: Progress | None, *, runs: bool
) -> dict[TableId, tuple[PartStatus, ...]]:
    """The parts of tables that are not copied whole."""
    unfinished = {copy.table for copy in cut.copies if not copy.done}
    told = {ShardTable(one.shard, one.table): one for one in progress.copies} if progress and runs else {}
    found: dict[TableId, list[PartStatus]] = {table: [] for table in sorted(unfinished)}
    idle = NOT_YET if runs else NOBODY_RUNS
    for shard, state in cut.shards.items() if unfinished else ():
        for copy in state.copies:
            if copy.table in unfinished:
                part = _part(shard, copy, told.get(ShardTable(shard, copy.table)), idle)
                found[copy.table].append(part)
    return {table: tuple(parts) for table, parts in found.items()}


def expected_of(parts: Collection[PartStatus]) -> int | None:
    """Rows of all parts together; None where those of one are unknown."""
    known = [part.expected for part in parts if part.expected is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def rate_of(parts: Iterable[PartStatus]) -> float | None:
    """Rows a second over all parts; None where that of none is known."""
    known = [part.rate for part in parts if part.rate is not None]
    return sum(known) if known else None


def _part(shard: str, copy: Copy, told: CopyProgress | None, idle: str) -> PartStatus:
    if copy.done:
        return PartStatus(shard, copy.rows, copy.rows, Basis.COUNTED, None, THROUGH)
    paused = Forecast(why=PAUSED) if copy.paused else None
    if told is not None:
        expected = None if told.expected is None else max(told.expected, copy.rows)
        rate = None if copy.paused else told.rate
        return PartStatus(shard, copy.rows, expected, told.basis, rate, paused or told.left)
    if copy.rows_expected > copy.rows:
        left = paused or Forecast(why=idle)
        return PartStatus(shard, copy.rows, copy.rows_expected, Basis.CATALOG, None, left)
    return PartStatus(shard, copy.rows, None, Basis.UNKNOWN, None, paused or Forecast(why=UNCOUNTED))


def _table(
    manifest: Manifest,
    table: TableId,
    copies: Mapping[str, Copy],
    beside: Beside,
    parts: tuple[PartStatus, ...],
) -> TableStatus:
    open_on = [shard for shard, copy in copies.items() if not copy.done]
    plan, awaited = beside.plan, [shard for shard in open_on if not copies[shard].paused]
    refused = [r for r in (plan.refused if plan else ()) if r.table == table and r.shard in open_on]
    stale = manifest.stale_since(table)
    return TableStatus(
        str(table),
        state_with(manifest, table, copies.values()),
        sum(copy.rows for copy in copies.values()),
        sum(copy.rows_expected for copy in copies.values()),
        tuple(str(refusal) for refusal in refused),
        "" if stale is None else epoch_text(stale.epoch),
        "" if stale is None else stale.reason,
        tuple(text for shard, text in beside.throttled.items() if shard in awaited),
        parts,
        expected_of(parts),
        rate_of(parts),
        together(part.left for part in parts),
    )
