"""The epoch with which one table enters a feed. It ends where the newest one does.

The table has all rows that it has by then, where the logs have its CREATE. Else it has none, and is copied like others.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.config import Feed
from catchment.epoch.gather import renewed
from catchment.feed.asked import Asked
from catchment.feed.born import Births
from catchment.feed.families import Families
from catchment.model.birth import Birth, Born
from catchment.model.cut import Cut
from catchment.model.epoch import Manifest, TableDelta, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, CutMissed, SinkError, Unsupported
from catchment.model.foreign_key import ForeignKey
from catchment.model.renewal import Renewal
from catchment.model.retries import concerns_all
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.stale import Stale
from catchment.model.table import Table, TableId, Wording
from catchment.schema.continued import continued
from catchment.schema.ddl import Harmless
from catchment.schema.events import SchemaEvents
from catchment.schema.foreign_keys import dropped_keys
from catchment.schema.indexes import touch
from catchment.schema.shape import first_shape, merge
from catchment.sink.port import Sink
from catchment.source.comments import commented
from catchment.source.definitions_at import definitions_needed
from catchment.source.each_shard import each_shard
from catchment.state.carried import without


@dataclass(frozen=True, slots=True)
class _Seen:
    """A table that enters, as one shard has it: the shard's state with it, and how its log made it, if that tells all
    rows."""

    table: Table
    wording: Wording
    state: ShardState
    born: Born | None


@dataclass(frozen=True)
class Entering:
    """Lets tables enter. `asked`: the shards, for these tables. `coming`: all that may enter."""

    feed: Feed
    endpoints: Mapping[str, Endpoint]
    sink: Sink
    reads: Births
    asked: Asked
    coming: Collection[TableId]

    def epoch(self, standing: Manifest, table: TableId, births: Mapping[str, Birth]) -> Manifest:
        """The epoch with a table, or without a stale one that no shard has any more. `births`: where the logs have its
        CREATE, by shard. Raises CatchmentError where the table cannot enter yet."""
        return self._without(standing, table) or self._with(standing, table, births)

    def read_ahead(self, standing: Manifest, births: Mapping[TableId, Mapping[str, Birth]]) -> None:
        """Read at once what the logs have of tables that may enter with the same epoch; raises CatchmentError."""
        found = []
        for table, of_shards in births.items() if len(births) > 1 else ():
            try:
                entering, born = self._entering(standing, table, of_shards)
            except CatchmentError as error:
                if concerns_all(error):
                    raise
                continue  # as the try of the table alone will say
            if born:
                found.append((entering, entering.shape(table), born))
        self.reads.read_ahead(found)

    def _with(self, standing: Manifest, table: TableId, births: Mapping[str, Birth]) -> Manifest:
        """On all shards or, of a stale table, on those that have it."""
        entering, born = self._entering(standing, table, births)
        self.sink.must_be_free(entering)
        entering = replace(entering, outside=tuple(one for one in entering.outside if one.table != table))
        if not born:
            return entering
        shape = entering.shape(table)
        read = self.reads.read(entering, shape, born)
        if read.copies.keys() != born.keys():
            # What the log of a shard does not tell is copied: so it has to be proven visible.
            return self._with(standing, table, births)
        entered = self.reads.written(with_copies(entering, read.copies), shape, read.outputs)
        if any(table in state.copying for state in entered.cut.shards.values()):
            return entered
        stale = tuple(one for one in entered.stale if one.table != table)
        return replace(entered, stale=stale, shapes=renewed(entered.known, stale, entered.epoch))

    def _without(self, standing: Manifest, table: TableId) -> Manifest | None:
        """The epoch without a stale table that no shard has any more; None where one has it. Where the lake keeps its
        past, the table waits for another one of its name."""
        if standing.stale_since(table) is None or self.feed.treatment_of(table).mode.keeps_past:
            return None
        if any(table in self.asked.of(shard).listed for shard in standing.cut.shards):
            return None
        return without(standing, [table], standing.epoch + 1, dropped=True)

    def _entering(
        self, standing: Manifest, table: TableId, births: Mapping[str, Birth]
    ) -> tuple[Manifest, dict[str, Born]]:
        """The epoch with the table and no row of it, and the shards whose log tells its rows."""
        tables: dict[str, Table] = {}
        born: dict[str, Born] = {}
        wordings: dict[str, Wording] = {}
        states = dict(standing.cut.shards)
        stale = standing.stale_since(table)
        needed = states.keys() if stale is None else set(stale.shards)
        for shard, one in each_shard(
            states, lambda shard: self._seen(standing, shard, table, needed, births)
        ).items():
            if one is not None:
                tables[shard], wordings[shard], states[shard] = one.table, one.wording, one.state
                if one.born is not None:
                    born[shard] = one.born
        shape = first_shape(merge(tables), tables, self.feed.treatment_of(table), wordings)
        if stale is not None:
            must_hide_still(stale, shape)
            shape = self._going_on(stale, shape, tables)
        shape = commented(shape, [self.asked.of(shard).comments for shard in tables])
        shapes = {**standing.known.by_table, table: shape}
        for shard in tables:
            states[shard] = replace(states[shard], keys=self._keys(shard, states[shard], shapes, table))
        return _epoch_with(standing, shape, states), born

    def _keys(
        self, shard: str, state: ShardState, shapes: Mapping[TableId, TableShape], table: TableId
    ) -> tuple[ForeignKey, ...] | None:
        mine = [shapes[copy.table] for copy in state.copies]
        declared = self.asked.keys(shard)
        return Families(self.coming).keys(self.endpoints[shard], state, mine, table, declared)

    def _seen(
        self,
        standing: Manifest,
        shard: str,
        table: TableId,
        needed: Collection[str],
        births: Mapping[str, Birth],
    ) -> _Seen | None:
        """A table as one shard has it; None where it has none and need not. Raises CatchmentError."""
        state = standing.cut.shards[shard]
        seen = self.asked.table(shard, table, must_have=shard in needed)
        if seen is None:
            return None
        born = None
        # What foreign keys did to the rows of a child that was born is in no log.
        if shard in births and not self.asked.has_keys(shard, table):
            born = self.reads.of(shard, state, table, births[shard], self.asked)
        if born is None:
            _must_be_visible(self.asked, shard, state, table)
        found, copy, wording = seen
        return _Seen(found, wording, _entered(self.endpoints[shard], state, copy), born)

    def _going_on(self, stale: Stale, shape: TableShape, shards: Mapping[str, Table]) -> TableShape:
        """The shape of a table that enters again: one whose past the lake keeps goes on from what stands there."""
        former = self.sink.shape_at(stale.table, stale.epoch)
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


def must_hide_still(stale: Stale, shape: TableShape) -> None:
    """Raise Unsupported where a column may show what another one had that rules hid: it may have been renamed."""
    gone, came = stale.withheld.shown_by([one.name for one in shape.definition.columns], shape.rules)
    if gone and came:
        raise Unsupported(
            f"columns: {shape.table} has no column {', '.join(gone)} any more, which a rule hid, and {', '.join(came)} "
            f"is new and may have its values; add a rule for it and start the run again, or let it be shown by "
            f"`catchment dump start FEED.yaml --table {shape.table}`"
        )


def _must_be_visible(asked: Asked, shard: str, state: ShardState, table: TableId) -> None:
    """Raise CutMissed unless the table was where the feed stands as the catalog told it.

    No DDL on it stands in the log from the floor on, read after the catalog. So it was the same at the position, and no
    chunk of it meets its CREATE.
    """
    floor = state.sealed
    if floor is None:
        raise CutMissed(f"shard {shard}: nothing is proven visible up to {state.position.at} yet")
    for event in SchemaEvents([table]).of(asked.statements(shard, floor, table)):
        # Where its key was no key yet, rows cannot be told apart: an index that came matters as much as a column.
        # So does a foreign key that went, which the catalog does not tell any more.
        touched, gone = touch(event, table), dropped_keys(event, table)
        if not isinstance(event.effect, Harmless) or touched.drops or touched.adds_unique or gone:
            raise CutMissed(
                f"shard {shard}: the log does not prove yet that its DDL at {event.at} is visible; it does when "
                "another transaction follows"
            )


def _entered(endpoint: Endpoint, state: ShardState, copy: Copy) -> ShardState:
    known = state.definitions
    # Without any, the log describes itself; or each table of the shard had to be copied again.
    if known or not state.copies:
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
