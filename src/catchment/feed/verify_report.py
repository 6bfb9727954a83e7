"""The result of a verification as a value, for people and for programs."""

import msgspec

from catchment.feed.repair import Repair
from catchment.feed.verdict import Verdict
from catchment.model.choice import ALL, Choice
from catchment.model.epoch_number import epoch_text
from catchment.model.order import Mended


class TableReport(msgspec.Struct, frozen=True):
    """Of a table the rows compared, the keys that differ and the first of them. `unproven`: keys that were compared by
    the log alone, since no later transaction has proven their last change visible to a SELECT."""

    table: str
    rows: int
    missing: int
    extra: int
    changed: int
    named: tuple[str, ...]
    unproven: int = 0


class VerifyReport(msgspec.Struct, frozen=True):
    """What was compared and found. `parts_compared` of `parts` chunks, where a sample was asked for: `percent` under
    `seed`. `portion`: of which table alone what was compared; empty for whole tables. `partial`, `stale`: what was
    compared in part, or not. `mended`, by table and shard, and `left`: None where no repair was asked for, or nothing
    differed. `resumed_rows`: compared before it was interrupted. `since_epoch`: only what changed behind it was
    compared, `changed_keys`, and of tables that are `whole` all rows; 0: everything."""

    first_epoch: int
    first_epoch_text: str
    last_epoch: int
    last_epoch_text: str
    tables: tuple[TableReport, ...]
    parts_compared: int
    parts: int
    percent: float
    seed: int
    portion: str
    partial: tuple[str, ...]
    stale: tuple[str, ...]
    resumed_rows: int
    since_epoch: int
    since_epoch_text: str
    changed_keys: int
    whole: tuple[str, ...]
    mended: dict[str, Mended] | None = None
    left: tuple[str, ...] | None = None

    @property
    def all_compared(self) -> bool:
        """Whether each chosen table is as of now, and each row of it was compared with what a SELECT returned."""
        return not self.stale and not any(one.unproven for one in self.tables)


def report_of(verdict: Verdict, choice: Choice = ALL, repair: Repair | None = None) -> VerifyReport:
    """The result of a verification, and of its repair if there was one."""
    first, last = verdict.epochs
    tables = []
    for table in sorted(verdict.rows.keys() | verdict.found.keys()):
        found = verdict.found[table]
        counts = (found.missing, found.extra, found.changed)
        unproven = verdict.unproven.get(table, 0)
        tables.append(TableReport(str(table), verdict.rows.get(table, 0), *counts, found.named, unproven))
    return VerifyReport(
        first_epoch=first,
        first_epoch_text=epoch_text(first),
        last_epoch=last,
        last_epoch_text=epoch_text(last),
        tables=tuple(tables),
        parts_compared=verdict.parts[0],
        parts=verdict.parts[1],
        percent=choice.sample.percent,
        seed=choice.sample.seed,
        portion="" if choice.portion is None else str(choice.portion),
        partial=verdict.partial,
        stale=tuple(str(one) for one in verdict.stale if choice.takes(one.table)),
        resumed_rows=verdict.resumed,
        since_epoch=0 if choice.since is None else choice.since.epoch,
        since_epoch_text="" if choice.since is None else epoch_text(choice.since.epoch),
        changed_keys=verdict.keys,
        whole=verdict.whole,
        mended=None if repair is None else repair.mended,
        left=None if repair is None else repair.left,
    )
