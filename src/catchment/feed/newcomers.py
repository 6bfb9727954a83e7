"""Tables whose copy begins while the feed runs: they enter it between two epochs.

They are chosen and came after it began, or they are stale: DDL changed their rows in no log. A table enters as of the
newest epoch. Where the log has its CREATE, it enters with all rows that it has by then. Else it enters with none, and
is copied as any other table: rows up to the last copied key follow the log. Of a stale one readers see the old copy
until the new one is complete.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed, NewTables, SchemaChange, takes
from catchment.feed.asked import Asked
from catchment.feed.born import Births
from catchment.feed.entering import Entering
from catchment.feed.families import ParentFirst
from catchment.model.birth import Birth
from catchment.model.epoch import Manifest, Outside, TableDelta
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, ConnectionLost, Unsupported
from catchment.model.log_fields import about
from catchment.model.position import LogOffset, Position
from catchment.model.retries import concerns_all
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.sink.port import Sink
from catchment.source.each_shard import each_shard
from catchment.state.notes import NotCarried

# The epoch after a CREATE proves it visible, as a rule: some attempts come at once, later ones after longer pauses.
_AT_ONCE = 3
_PAUSE_SECONDS = 0.05
_PAUSE_SECONDS_MAX = 60.0
# A stale table that entered and stopped again before its copy was complete: the first time it enters again at once.
_RETURN_SECONDS = 1.0
# So long a turn asks for more tables: an epoch has as many as are ready by then, and those that were asked for.
_TOGETHER_SECONDS = 1.0
# Of so many tables shards are asked at once, and their logs read once.
_ASKED_AT_ONCE = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Known:
    """What is known of a table that waits: what is proven visible, and where the logs have its CREATE."""

    floors: Mapping[str, LogOffset]
    births: Mapping[str, Birth]


@dataclass(slots=True)
class _Tries:
    """What came of a table's tries so far. `known`: what was known at the last one. `again`: no other before that
    (steady seconds). `told`: what was logged of it. `refused`: it cannot be carried as it is. `behind`: the parent that
    enters first."""

    known: _Known | None = None
    failures: int = 0
    again: float = -math.inf
    told: str = ""
    refused: bool = False
    behind: TableId | None = None


class Newcomers:
    """Lets tables enter a feed, those that are ready together. The loop's thread alone uses it. `waiting` says which
    tables the feed does not carry yet."""

    def __init__(
        self,
        feed: Feed,
        endpoints: Mapping[str, Endpoint],
        sink: Sink,
        waiting: Callable[[], Sequence[NotCarried]],
        births: Births,
    ) -> None:
        self._feed = feed
        self._endpoints = endpoints
        self._sink = sink
        self._waiting = waiting
        self._births = births
        self._tries: dict[TableId, _Tries] = {}  # of tables that may enter; others are forgotten
        self._coming: set[TableId] = set()
        self._returned: dict[TableId, tuple[int, float]] = {}

    def next(self, standing: Manifest) -> Manifest | None:
        """An epoch that ends where `standing` does and has more tables; None where none can enter now. After
        _TOGETHER_SECONDS those that nobody has been asked for wait for the next one: meanwhile the feed reads no log.

        What keeps a table out is logged once. It is tried again when the servers have proven more visible and a pause
        is over, and never ends a run. Raises CatchmentError for what concerns all tables, as a lake that is away.
        """
        entered: Manifest | None = None
        deltas: list[TableDelta] = []
        changes = 0
        base, until = standing, world.steady_seconds() + _TOGETHER_SECONDS
        for entering, table in self._in_turn(standing, until):
            found = self._tried_with(base, table, entering)
            if found is None:
                continue
            deltas += found.deltas
            changes += found.changes
            entered = replace(found, deltas=tuple(deltas), changes=changes)
            # The next one is added as if all of this had been there before.
            base = replace(entered, cut=replace(entered.cut, epoch=standing.epoch))
        return entered

    def _in_turn(self, standing: Manifest, until: float) -> Iterator[tuple[Entering, TableId]]:
        """The tables that are due. Shards are asked for many of them at once, for the first of them also after
        `until` (steady seconds)."""
        due = self._due(standing)
        for some in (due[at : at + _ASKED_AT_ONCE] for at in range(0, len(due), _ASKED_AT_ONCE)):
            if some[0] != due[0] and world.steady_seconds() > until:
                return
            together = self._entering(standing, some)
            births = {table: found for table in some if (found := self._births_of(standing, table))}
            try:
                each_shard(standing.cut.shards, together.asked.of)
                together.read_ahead(standing, births)
            except ConnectionLost as error:
                for table in some:
                    self._tries[table].known = self._known(standing, table)
                    self._put_off(table, self._tries[table], str(error))
                return
            except CatchmentError as error:
                if concerns_all(error):
                    raise
                # One of the tables may be why: then it keeps out no other.
                yield from ((self._entering(standing, [table]), table) for table in some)
                continue
            yield from ((together, table) for table in some)

    def _entering(self, standing: Manifest, tables: Sequence[TableId]) -> Entering:
        begins: dict[str, list[Position]] = {}
        for table in tables:
            for shard, birth in self._births_of(standing, table).items():
                begins.setdefault(shard, []).append(birth.start)
        budget = self._feed.copying.log_budget
        asked = Asked(self._endpoints, standing.cut.shards, tables, begins, budget)
        return Entering(self._feed, self._endpoints, self._sink, self._births, asked, self._coming)

    def _tried_with(self, standing: Manifest, table: TableId, entering: Entering) -> Manifest | None:
        """The epoch with a table, or without one that no shard has any more; None where it cannot be yet."""
        tries = self._tries[table]
        tries.known = self._known(standing, table)
        try:
            entered = entering.epoch(standing, table, tries.known.births)
        except ParentFirst as error:
            tries.behind = error.parent
            return None
        except CatchmentError as error:
            if concerns_all(error):
                raise
            if isinstance(error, Unsupported):
                tries.refused = True
            self._put_off(table, tries, str(error))
            return None
        if table in entered.tables:
            _log.info(
                "%s enters the feed as of epoch %s",
                table,
                epoch_text(entered.epoch),
                extra=about(tables=[table]),
            )
        if standing.stale_since(table) is not None:
            self._return(table)
        self._tries[table] = _Tries(tries.known)
        for one in self._tries.values():
            if one.behind == table:
                one.behind = None
        return entered

    def _due(self, standing: Manifest) -> list[TableId]:
        """The tables that may enter and whose pause is over: stale ones, and those that every shard has and that are
        new, or that left."""
        shards: dict[TableId, set[str]] = {}
        for one in self._waiting():
            shards.setdefault(one.table, set()).add(one.shard)
        self._coming = set()
        if not shards and not standing.stale:
            self._tries = {}
            return []
        left = {out.table for out in standing.outside if self._returns(out)}
        known = standing.tables | ({out.table for out in standing.outside} - left)
        carries = self._feed.new_tables is NewTables.CARRY
        new = [
            table
            for table, having in shards.items()
            if having == self._endpoints.keys() and table not in known and (carries or table in left)
        ]
        now, renewed = world.steady_seconds(), self._renewed(standing)
        stale = {one.table for one in standing.stale}
        self._returned = {table: known for table, known in self._returned.items() if table in stale}
        may = {*new, *renewed}
        self._tries = {table: self._tries.get(table) or _Tries() for table in may}
        self._coming = {table for table in may if not self._tries[table].refused}
        return [table for table in sorted(may) if self._is_due(standing, table, now)]

    def _returns(self, out: Outside) -> bool:
        return out.returns and not self._feed.treatment_of(out.table).mode.keeps_past

    def _return(self, table: TableId) -> None:
        """A stale table enters: when it stops once more, as by each row that has no key, there is a pause before that
        is tried again."""
        times = self._returned.get(table, (0, 0.0))[0] + 1
        pause = min(_RETURN_SECONDS * 2.0 ** min(times - 2, 10), _PAUSE_SECONDS_MAX) if times > 1 else 0.0
        self._returned[table] = times, world.steady_seconds() + pause

    def _is_due(self, standing: Manifest, table: TableId, now: float) -> bool:
        tries = self._tries[table]
        if tries.behind in self._coming or self._returned.get(table, (0, now))[1] > now:
            return False
        known, tried = self._known(standing, table), tries.known
        if tried is None or known.births != tried.births:
            return True
        return known.floors != tried.floors and tries.again <= now

    def _known(self, standing: Manifest, table: TableId) -> "_Known":
        return _Known(standing.cut.floors, self._births_of(standing, table))

    def enters(self, standing: Manifest) -> bool:
        """Whether a table enters with the next turn, as far as is known: the log has its CREATE on every shard."""
        states = standing.cut.shards.keys()
        return any(self._births_of(standing, table).keys() == states for table in self._due(standing))

    def _renewed(self, standing: Manifest) -> list[TableId]:
        """The stale tables that are to be copied anew."""
        return [
            one.table
            for one in standing.lost
            if takes(self._feed.tables, one.table)
            and (one.asked or not standing.is_taken(one.table))
            and (one.asked or (not one.waits and self._evolves(one.table)))
        ]

    def _evolves(self, table: TableId) -> bool:
        return self._feed.schema_change_of(table) is SchemaChange.EVOLVE

    def _put_off(self, table: TableId, tries: _Tries, why: str) -> None:
        tries.failures += 1
        if tries.failures > _AT_ONCE:
            pause = min(_PAUSE_SECONDS * 2.0 ** min(tries.failures - _AT_ONCE, 16), _PAUSE_SECONDS_MAX)
            tries.again = world.steady_seconds() + pause
        if tries.told != why:
            if all(one.told != why for one in self._tries.values()):  # what keeps out many tables is one line
                _log.warning("%s does not enter the feed yet: %s", table, why, extra=about(tables=[table]))
            tries.told = why

    def _births_of(self, standing: Manifest, table: TableId) -> Mapping[str, Birth]:
        stale = standing.stale_since(table)
        if stale is not None:
            return stale.births
        mine = (one for one in self._waiting() if one.table == table)
        return self._births.known(table, {one.shard: one.birth for one in mine if one.birth is not None})
