"""Shadow tables: a tool for schema changes fills one beside a carried table, and swaps the two by RENAME.

Where the log has its CREATE, it is followed unseen from its first row on, in a tail of the carried table. Between two
epochs it takes the place that it has got on every shard. Nothing is copied from the source. In all doubt it is not
followed any more, and the carried table is copied anew.
"""

import logging
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from catchment.config import Feed, SchemaChange
from catchment.config.shadows import beside, is_filled_beside
from catchment.feed.asked import Asked
from catchment.feed.born import Births, still_there
from catchment.feed.swap import Swaps
from catchment.model.birth import Birth, Born
from catchment.model.epoch import Manifest, Shadow, TableDelta, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, Retry, SourceError, Unsupported
from catchment.model.retries import concerns_all
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, Table, TableId, Wording
from catchment.model.treatment import Mode
from catchment.schema.columns import table_on
from catchment.schema.existence import Existence
from catchment.schema.shape import first_shape, merge
from catchment.sink.port import Sink

_log = logging.getLogger(__name__)


class Shadows:
    """The shadow tables of one run. The loop's thread alone uses it."""

    def __init__(self, feed: Feed, endpoints: Mapping[str, Endpoint], sink: Sink, births: Births) -> None:
        self._feed, self._endpoints = feed, endpoints
        self._sink, self._births = sink, births
        self._swaps = Swaps(feed, endpoints, births)
        self._heard: dict[ShardTable, Birth] = {}
        self._refused: set[tuple[ShardTable, Birth]] = set()
        self._told: dict[TableId, str] = {}

    def hear(self, existence: Mapping[str, Existence]) -> None:
        """An epoch was read: `existence` says what its DDL did, by shard."""
        for shard, found in existence.items():
            for of in [of for of in self._heard if of.shard == shard]:
                birth = found.birth_after(of.table, self._heard.pop(of))
                if birth is not None:
                    self._heard[of] = birth
            for table, birth in found.born.items():
                if is_filled_beside(self._feed.shadow_tables, self._feed.tables, table):
                    self._heard[ShardTable(shard, table)] = birth
        self._refused = still_there(self._refused, existence)

    def takes_place(self, standing: Manifest) -> bool:
        """Whether a shadow table takes its place with the next turn."""
        return any(_has_place(one, standing) for one in standing.shadows) or bool(self._settled(standing))

    def next(self, standing: Manifest) -> Manifest | None:
        """An epoch that ends where `standing` does, in which a shadow table takes its place, or is followed from on;
        None where none does."""
        there = {of.table for of in self._heard} | {one.table for one in standing.shadows}
        self._told = {table: message for table, message in self._told.items() if table in there}
        if settled := self._settled(standing):
            return self._seen(standing, settled)
        for shadow in standing.shadows:
            if _has_place(shadow, standing) and (after := self._taking_place(standing, shadow)) is not None:
                return after
        for table in sorted({of.table for of in self._heard}):
            if (after := self._followed(standing, table)) is not None:
                return after
        return None

    def _settled(self, standing: Manifest) -> list[TableShape]:
        """The tables that wait for a settle, and of which it was."""
        waits = {one.table for one in standing.stale if one.settles}
        return [one for one in standing.shapes if one.table in waits and self._sink.has_replaced(one)]

    def _seen(self, standing: Manifest, settled: Sequence[TableShape]) -> Manifest:
        """The epoch from which readers see these tables as of now."""
        tables, epoch = {shape.table for shape in settled}, standing.epoch + 1
        for table in sorted(tables):
            _log.info("%s has the rows of its new tables, as of epoch %s", table, epoch_text(epoch))
        left = tuple(one for one in standing.stale if one.table not in tables)
        return replace(standing.repeated(epoch), stale=left)

    def _taking_place(self, standing: Manifest, shadow: Shadow) -> Manifest | None:
        """The epoch in which it takes its place, or is given up; None where a later turn tries again."""
        table, place = shadow.table, shadow.place_of
        try:
            after = self._swaps.epoch(standing, shadow)
        except CatchmentError as error:
            if concerns_all(error):
                raise
            if error.retry is not Retry.NEVER:
                self._tell(table, f"{table} does not take the place of {place} yet: {error}")
                return None
            _log.warning("%s takes the place of %s, which is copied again: %s", table, place, error)
            left = tuple(one for one in standing.shadows if one.table != table)
            return replace(standing.repeated(standing.epoch + 1), shadows=left)
        _tell_place(table, after, place)
        return after

    def _followed(self, standing: Manifest, table: TableId) -> Manifest | None:
        """The epoch from which a shadow table is followed, on more shards than before; None where it is not."""
        known = next((one for one in standing.shadows if one.table == table), None)
        place = self._place_of(standing, table)
        births = {of.shard: birth for of, birth in self._heard.items() if of.table == table}
        new = {
            shard: birth
            for shard, birth in births.items()
            if (ShardTable(shard, table), birth) not in self._refused
            and (known is None or shard not in known.shards)
        }
        if place is None or not new or (known is not None and known.swapped):
            return None
        new = {shard: birth for shard, birth in new.items() if shard in standing.holders[place.table]}
        try:
            return self._entered(standing, table, known, place, new)
        except CatchmentError as error:
            if concerns_all(error):
                raise
            if error.retry is Retry.NEVER:
                self._refused |= {(ShardTable(shard, table), birth) for shard, birth in new.items()}
            self._tell(table, f"{table} is not followed beside {place.table}: {error}")
            return None

    def _place_of(self, standing: Manifest, table: TableId) -> TableShape | None:
        """The shape of the carried table whose place a shadow table may take without a copy."""
        place = beside(table, (shape.table for shape in standing.shapes))
        if place is None or standing.stale_since(place) is not None:
            return None
        mirrors = self._feed.treatment_of(place).mode is Mode.MIRROR
        evolves = self._feed.schema_change_of(place) is SchemaChange.EVOLVE
        shape = standing.shape(place)
        return shape if mirrors and evolves and shape.mode is Mode.MIRROR else None

    def _entered(
        self,
        standing: Manifest,
        table: TableId,
        known: Shadow | None,
        place: TableShape,
        births: Mapping[str, Birth],
    ) -> Manifest | None:
        seen: dict[str, tuple[Table, Wording]] = {}
        born: dict[str, Born] = {}
        states = standing.cut.shards
        asked = Asked(self._endpoints, states, [table], {}, 0)
        for shard, birth in births.items():
            try:
                found = None if states[shard].definitions else _followable(asked, shard, table)
                one = found and self._births.of(shard, states[shard], table, birth, asked)
            except SourceError as error:
                if error.retry is not Retry.NEVER:  # DDL on it may stand behind the cut
                    continue
                found = one = None
            if not found or one is None:
                self._refused.add((ShardTable(shard, table), birth))
                continue
            seen[shard], born[shard] = found, one
        if not born:
            return None
        epoch = standing.epoch + 1
        shape = self._first_shape(place.table, seen, epoch) if known is None else known.shape
        for shard, (as_seen, _) in seen.items():
            _must_be_alike(shape, shard, as_seen)
        shards = tuple(sorted({*born, *(known.shards if known is not None else ())}))
        entering = _with(standing.repeated(epoch), Shadow(shape, shards))
        if known is None:
            entering = replace(entering, deltas=(TableDelta(shape, ()),))
            self._sink.must_be_free(entering)
        read = self._births.read(entering, shape, born)
        if read.copies.keys() != born.keys():
            return None  # of a shard whose log does not tell it, this is known by now
        _log.info("%s is followed beside %s from epoch %s on", table, place.table, epoch_text(epoch))
        return self._births.written(entering, shape, read.outputs)

    def _first_shape(
        self, place: TableId, seen: Mapping[str, tuple[Table, Wording]], epoch: int
    ) -> TableShape:
        tables = {shard: table for shard, (table, _) in seen.items()}
        wordings = {shard: wording for shard, (_, wording) in seen.items()}
        shape = first_shape(merge(tables), tables, self._feed.treatment_of(place), wordings)
        return replace(shape, generation=epoch, place_of=place)

    def _tell(self, table: TableId, message: str) -> None:
        if self._told.get(table) != message:
            self._told[table] = message
            _log.info("%s", message)


def _followable(asked: Asked, shard: str, table: TableId) -> tuple[Table, Wording] | None:
    """A shadow table as the catalog of a shard has it; None where it is gone, or its rows cannot be followed."""
    found = None if asked.has_keys(shard, table) else asked.table(shard, table, must_have=False)
    return None if found is None else (found[0], found[2])


def _has_place(shadow: Shadow, standing: Manifest) -> bool:
    """Whether a shadow table has the name of the carried one on every shard that had that, or on all that have one."""
    stale = standing.stale_since(shadow.place_of)
    if not shadow.swapped or stale is None:
        return False
    everywhere = set(stale.shards) <= shadow.swapped.keys()
    return everywhere or (shadow.former is not None and not shadow.shards)


def _tell_place(table: TableId, after: Manifest, place: TableId) -> None:
    replaces, epoch = after.shape(place).replaces, epoch_text(after.epoch)
    if replaces is None:
        _log.info("%s has taken the place of %s as of epoch %s", table, place, epoch)
        return
    shards = ", ".join(replaces.shards)
    _log.info(
        "%s takes the place of %s on %s with the next settle behind epoch %s", table, place, shards, epoch
    )


def _must_be_alike(shape: TableShape, shard: str, table: Table) -> None:
    """Raise Unsupported where a shard has a shadow table otherwise than the others."""
    if (set(table.columns), table.key) != (set(table_on(shape, shard).columns), shape.key):
        raise Unsupported(f"shard {shard} has it with other columns, or another key, than other shards")


def _with(standing: Manifest, shadow: Shadow) -> Manifest:
    others = [one for one in standing.shadows if one.table != shadow.table]
    return replace(standing, shadows=tuple(sorted((*others, shadow), key=lambda one: one.table)))
