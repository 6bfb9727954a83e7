"""Tables whose copy begins while the feed runs: they enter it between two epochs.

They are chosen and came after it began, or they are stale: DDL changed their rows in no log. A table enters as of the
newest epoch. Where the log has its CREATE, it enters with all rows that it has by then. Else it enters with none, and
is copied as any other table: rows up to the last copied key follow the log. Of a stale one readers see the old copy
until the new one is complete.
"""

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed, NewTables, SchemaChange, takes
from catchment.epoch.gather import renewed
from catchment.feed.born import Births
from catchment.feed.families import Families, ParentFirst, has_keys
from catchment.model.birth import Birth, Born
from catchment.model.cut import Cut
from catchment.model.epoch import Manifest, Outside, TableDelta, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, CutMissed, SinkError, Unsupported
from catchment.model.foreign_key import ForeignKey
from catchment.model.log_fields import about
from catchment.model.position import LogOffset
from catchment.model.renewal import Renewal
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.stale import Stale
from catchment.model.table import RESERVED, Table, TableId, Wording
from catchment.schema.continued import continued
from catchment.schema.ddl import Harmless
from catchment.schema.events import SchemaEvents
from catchment.schema.foreign_keys import dropped_keys
from catchment.schema.indexes import touch
from catchment.schema.shape import first_shape, merge
from catchment.sink.port import Sink
from catchment.source.catalog import listed_tables, read_table
from catchment.source.comments import commented_now
from catchment.source.definitions_at import definitions_needed
from catchment.source.each_shard import each_shard
from catchment.source.log import read_facts
from catchment.source.session import connect
from catchment.source.wording import read_wordings
from catchment.state.carried import without
from catchment.state.notes import NotCarried

# The epoch after a CREATE proves it visible, as a rule: some attempts come at once, later ones after longer pauses.
_AT_ONCE = 3
_PAUSE_SECONDS = 0.05
_PAUSE_SECONDS_MAX = 60.0
# A stale table that entered and stopped again before its copy was complete: the first time it enters again at once.
_RETURN_SECONDS = 1.0
# So long a turn lets tables enter: an epoch has as many of them as are ready by then.
_TOGETHER_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Known:
    """What is known of a table that waits: what is proven visible, and where the logs have its CREATE."""

    floors: Mapping[str, LogOffset]
    births: Mapping[str, Birth]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A table that enters, as one shard has it: the shard's state with it, and how its log made it, if that tells all
    rows."""

    table: Table
    wording: Wording
    state: ShardState
    born: Born | None


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
        _TOGETHER_SECONDS those that are left wait for the next one: meanwhile the feed reads no log.

        What keeps a table out is logged once. It is tried again when the servers have proven more visible and a pause
        is over, and never ends a run.
        """
        entered: Manifest | None = None
        deltas: list[TableDelta] = []
        changes = 0
        base, until = standing, world.steady_seconds() + _TOGETHER_SECONDS
        for table in self._due(standing):
            if entered is not None and world.steady_seconds() > until:
                break
            found = self._tried_with(base, table)
            if found is None:
                continue
            deltas += found.deltas
            changes += found.changes
            entered = replace(found, deltas=tuple(deltas), changes=changes)
            # The next one is added as if all of this had been there before.
            base = replace(entered, cut=replace(entered.cut, epoch=standing.epoch))
        return entered

    def _tried_with(self, standing: Manifest, table: TableId) -> Manifest | None:
        """The epoch with a table, or without one that no shard has any more; None where it cannot be yet."""
        tries = self._tries[table]
        tries.known = self._known(standing, table)
        try:
            entered = self._without(standing, table) or self._with(standing, table)
        except ParentFirst as error:
            tries.behind = error.parent
            return None
        except CatchmentError as error:
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

    def _with(self, standing: Manifest, table: TableId) -> Manifest:
        """The epoch with the table, on all shards or, of a stale one, on those that have it; raises CatchmentError."""
        entering, born = self._entering(standing, table)
        self._sink.must_be_free(entering)
        entering = replace(entering, outside=tuple(one for one in entering.outside if one.table != table))
        if not born:
            return entering
        shape = entering.shape(table)
        read = self._births.read(entering, shape, born)
        if read.copies.keys() != born.keys():
            # What the log of a shard does not tell is copied: so it has to be proven visible.
            return self._with(standing, table)
        entered = self._births.written(with_copies(entering, read.copies), shape, read.outputs)
        if any(table in state.copying for state in entered.cut.shards.values()):
            return entered
        stale = tuple(one for one in entered.stale if one.table != table)
        return replace(entered, stale=stale, shapes=renewed(entered.known, stale, entered.epoch))

    def _without(self, standing: Manifest, table: TableId) -> Manifest | None:
        """The epoch without a stale table that no shard has any more; None where one has it. Where the lake keeps its
        past, the table waits for another one of its name."""
        if standing.stale_since(table) is None or self._feed.treatment_of(table).mode.keeps_past:
            return None
        for shard, state in standing.cut.shards.items():
            with connect(self._endpoints[shard], state.position.server) as session:
                if listed_tables(session, lambda one: one == table):
                    return None
        return without(standing, [table], standing.epoch + 1, dropped=True)

    def _entering(self, standing: Manifest, table: TableId) -> tuple[Manifest, dict[str, Born]]:
        """The epoch with the table and no row of it, and the shards whose log tells its rows."""
        tables: dict[str, Table] = {}
        born: dict[str, Born] = {}
        wordings: dict[str, Wording] = {}
        states = dict(standing.cut.shards)
        stale = standing.stale_since(table)
        needed = states.keys() if stale is None else set(stale.shards)
        births = self._births_of(standing, table)
        for shard, one in each_shard(
            states, lambda shard: self._seen(standing, shard, table, needed, births)
        ).items():
            if one is not None:
                tables[shard], wordings[shard], states[shard] = one.table, one.wording, one.state
                if one.born is not None:
                    born[shard] = one.born
        shape = first_shape(merge(tables), tables, self._feed.treatment_of(table), wordings)
        if stale is not None:
            must_hide_still(stale, shape)
            shape = self._going_on(stale, shape, tables)
        holders = [self._endpoints[shard] for shard in tables]
        (shape,) = commented_now([shape], holders)
        shapes = {**standing.known.by_table, table: shape}

        def keys(shard: str) -> tuple[ForeignKey, ...] | None:
            mine = [shapes[copy.table] for copy in states[shard].copies]
            return Families(self._coming).keys(self._endpoints[shard], states[shard], mine, table)

        states |= {
            shard: replace(states[shard], keys=found) for shard, found in each_shard(tables, keys).items()
        }
        return _epoch_with(standing, shape, states), born

    def _seen(
        self,
        standing: Manifest,
        shard: str,
        table: TableId,
        needed: Collection[str],
        births: Mapping[str, Birth],
    ) -> "_Seen | None":
        """A table as one shard has it; None where it has none and need not. Raises CatchmentError."""
        endpoint, state = self._endpoints[shard], standing.cut.shards[shard]
        seen = table_seen(endpoint, state, table, must_have=shard in needed)
        if seen is None:
            return None
        born = None
        # What foreign keys did to the rows of a child that was born is in no log.
        if shard in births and not has_keys(endpoint, state, table):
            born = self._births.of(shard, state, table, births[shard])
        if born is None:
            _must_be_visible(endpoint, state, table)
        found, copy, wording = seen
        return _Seen(found, wording, _entered(endpoint, state, copy), born)

    def _going_on(self, stale: Stale, shape: TableShape, shards: Mapping[str, Table]) -> TableShape:
        """The shape of a table that enters again: one whose past the lake keeps goes on from what stands there."""
        former = self._sink.shape_at(stale.table, stale.epoch)
        if former is None and not shape.mode.keeps_past:
            return shape
        if former is None:
            raise SinkError(
                f"{stale.table} stands as of epoch {epoch_text(stale.epoch)}, which the epochs table lacks; put back a "
                "copy of the directory _catchment of the lake"
            )
        if not former.mode.keeps_past and not shape.mode.keeps_past:
            return shape
        return continued(shape, former, Renewal(stale.epoch), shards, ordered=stale.asked)

    def _births_of(self, standing: Manifest, table: TableId) -> Mapping[str, Birth]:
        stale = standing.stale_since(table)
        if stale is not None:
            return stale.births
        mine = (one for one in self._waiting() if one.table == table)
        return self._births.known(table, {one.shard: one.birth for one in mine if one.birth is not None})


def table_seen(
    endpoint: Endpoint, state: ShardState, table: TableId, *, must_have: bool
) -> tuple[Table, Copy, Wording] | None:
    """A table of a shard as its catalog has it, its copy, its wording; None where the shard has none and need not."""
    with connect(endpoint, state.position.server) as session:
        estimate = listed_tables(session, lambda one: one == table).get(table)
        if isinstance(estimate, Unsupported):
            raise estimate
        if estimate is None and must_have:
            raise CutMissed(f"shard {endpoint.shard}: it has no table {table} any more")
        found = None if estimate is None else read_table(session, table, RESERVED)
        wording = read_wordings(session, [table])[table]
    if found is None or estimate is None:
        return None
    return found, Copy(table, rows_expected=estimate), wording


def must_hide_still(stale: Stale, shape: TableShape) -> None:
    """Raise Unsupported where a column may show what another one had that rules hid: it may have been renamed."""
    gone, came = stale.withheld.shown_by([one.name for one in shape.definition.columns], shape.rules)
    if gone and came:
        raise Unsupported(
            f"columns: {shape.table} has no column {', '.join(gone)} any more, which a rule hid, and {', '.join(came)} "
            f"is new and may have its values; add a rule for it and start the run again, or let it be shown by "
            f"`catchment dump start FEED.yaml --table {shape.table}`"
        )


def _must_be_visible(endpoint: Endpoint, state: ShardState, table: TableId) -> None:
    """Raise CutMissed unless the table was where the feed stands as the catalog told it, which was asked before.

    No DDL on it stands in the log from the floor on, read after the catalog. So it was the same at the position, and no
    chunk of it meets its CREATE.
    """
    floor, position = state.sealed, state.position
    if floor is None:
        raise CutMissed(f"shard {endpoint.shard}: nothing is proven visible up to {position.at} yet")
    facts = read_facts(endpoint, position.server, floor, None).facts
    for event in SchemaEvents([table]).of(facts):
        # Where its key was no key yet, rows cannot be told apart: an index that came matters as much as a column.
        # So does a foreign key that went, which the catalog does not tell any more.
        touched, gone = touch(event, table), dropped_keys(event, table)
        if not isinstance(event.effect, Harmless) or touched.drops or touched.adds_unique or gone:
            raise CutMissed(
                f"shard {endpoint.shard}: the log does not prove yet that its DDL at {event.at} is visible; it does "
                "when another transaction follows"
            )


def _entered(endpoint: Endpoint, state: ShardState, copy: Copy) -> ShardState:
    known = state.definitions
    if known:
        known += definitions_needed(endpoint, state.position, [copy.table])
    return replace(state, copies=(*state.copies, copy), definitions=known)


def with_copies(entering: Manifest, copies: Mapping[str, Copy]) -> Manifest:
    """The same with other copies of one table."""
    states = dict(entering.cut.shards)
    for shard, copy in copies.items():
        others = tuple(one for one in states[shard].copies if one.table != copy.table)
        states[shard] = replace(states[shard], copies=(*others, copy))
    return replace(entering, cut=replace(entering.cut, shards=states))


def _epoch_with(standing: Manifest, shape: TableShape, states: Mapping[str, ShardState]) -> Manifest:
    epoch = standing.epoch + 1  # the next tick has a higher number, or is waited for
    shape = replace(shape, generation=epoch)
    return replace(
        standing.repeated(epoch),
        cut=Cut(epoch, standing.time_us, dict(states)),
        shapes=(*standing.shapes, shape),
        deltas=(TableDelta(shape, ()),),
        shadows=tuple(one for one in standing.shadows if one.place_of != shape.table),
    )
