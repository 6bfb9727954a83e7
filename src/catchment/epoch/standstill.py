"""Tables whose copy stands still: their chunks are refused each time (DESIGN 2 and 4).

The planner tries a refused chunk again, and usually it succeeds. This module notices the chunks that never do. They
hold up their own table alone.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TypeVar

from catchment.model.chunk import Chunk
from catchment.model.cut import Cut
from catchment.model.differences import replaced
from catchment.model.log_fields import about
from catchment.model.named import by_cause, tables_named
from catchment.model.refusal import Refusal
from catchment.model.shared_troubles import SharedTroubles
from catchment.model.table import ShardTable

# With the pauses between the tries (feed/pauses.py) one to two minutes: a run that is to catch up waits no longer.
STILL_FROM = 10
# An ALTER or a short lock refuses the chunks of an epoch or two.
LOGGED_FROM = 3
# A shard whose log grew for as long as a feed paused, or whose commits waited, needs a few epochs.
_HELD_FROM = 10

V = TypeVar("V")

_log = logging.getLogger(__name__)


class Standstill:
    """Counts, per shard and table, the epochs in a row that refused chunks and copied none. Counts, per shard, the
    epochs in a row that planned none.

    `refused`: tables whose chunks were refused. `refusals`: the same, and tables of shards that are held back for long.
    Both are replaced whole, so that another thread may look.
    """

    def __init__(self) -> None:
        self.refused: tuple[Refusal, ...] = ()
        self.refusals: tuple[Refusal, ...] = ()
        self._known: dict[ShardTable, Refusal] = {}
        self._held: dict[str, int] = {}
        self._logged = SharedTroubles[ShardTable]()

    def count(
        self,
        before: Cut,
        after: Cut,
        refused: Sequence[tuple[Chunk, str]],
        unplanned: Mapping[ShardTable, str],
        held: Mapping[str, str],
    ) -> None:
        """Take in an epoch: the cuts before and after it, chunks refused, why tables had none, and why no table of a
        shard had any. Nothing of this ends a run, since the changes of all other tables are followed."""
        known = dict(self._known)
        copied_again: list[ShardTable] = []
        reasons: dict[ShardTable, str] = {}
        for chunk, reason in refused:
            reasons.setdefault(chunk.of, reason)
        reasons = {**unplanned, **reasons}
        for shard, state in after.shards.items():
            for place in replaced(before.shards[shard].copies, state.copies):
                copied = ShardTable(shard, state.copies[place].table)
                if known.pop(copied, None) is not None:
                    copied_again.append(copied)
                reasons.pop(copied, None)
        reasons, known = _still_copied(reasons, after), _still_copied(known, after)
        new: list[Refusal] = []
        for of, reason in reasons.items():
            last = known.get(of)
            known[of] = refusal = Refusal(*of, reason, last.epochs + 1 if last else 1)
            if _is_news(refusal, last):
                new.append(refusal)
        self._tell(new, copied_again, [of for of in self._known if of not in known])
        self._known = known
        self.refused = tuple(known.values())
        self.refusals = (*self.refused, *self._held_back(after, held))

    @property
    def still(self) -> frozenset[ShardTable]:
        """The tables whose copies stand still."""
        return frozenset(ShardTable(one.shard, one.table) for one in self.refused if one.epochs >= STILL_FROM)

    def _tell(self, new: Sequence[Refusal], copied: Sequence[ShardTable], gone: Sequence[ShardTable]) -> None:
        """One line for each trouble when it begins, and one when the last of its tables is copied again."""
        for said, refused in by_cause((one, one.said) for one in new).items():
            tables, shard = [one.table for one in refused], refused[0].shard
            _log.warning("%s %s", tables_named(tables), said, extra=about(shard=shard, tables=tables))
            self._logged.begin([ShardTable(shard, table) for table in tables])
        for over in self._logged.passed(copied, gone):
            tables, shard = [table for _, table in over], over[0].shard
            _log.info(
                "%s copied again on shard %s",
                tables_named(tables),
                shard,
                extra=about(shard=shard, tables=tables),
            )

    def _held_back(self, cut: Cut, held: Mapping[str, str]) -> list[Refusal]:
        """What is not copied on shards held for long, of which each is logged once."""
        for shard in self._held.keys() - held.keys():
            if self._held[shard] >= _HELD_FROM:
                _log.info("shard %s: rows are copied again", shard, extra=about(shard=shard))
        self._held = {shard: self._held.get(shard, 0) + 1 for shard in held}
        if not held:
            return []
        for shard, epochs in self._held.items():
            if epochs == _HELD_FROM:
                _log.warning(
                    "shard %s: no rows were copied in %d epochs in a row: %s",
                    shard,
                    epochs,
                    held[shard],
                    extra=about(shard=shard),
                )
        return [
            Refusal(shard, table, held[shard], epochs)
            for shard, epochs in self._held.items()
            if epochs >= _HELD_FROM
            for table in cut.shards[shard].copying
            if ShardTable(shard, table) not in self._known
        ]


def _still_copied(of_tables: dict[ShardTable, V], cut: Cut) -> dict[ShardTable, V]:
    """The entries of tables of which rows are left to copy; others may have left the feed, or begin anew."""
    copying = {shard: cut.shards[shard].copying for shard, _ in of_tables}
    return {of: value for of, value in of_tables.items() if of.table in copying[of.shard]}


def _is_news(refusal: Refusal, last: Refusal | None) -> bool:
    """Whether the log is to have it: once it has lasted, and again when the reason is another one."""
    if refusal.epochs == LOGGED_FROM:
        return True
    return refusal.epochs > LOGGED_FROM and last is not None and last.reason != refusal.reason
