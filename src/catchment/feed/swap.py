"""The epoch in which a shadow table takes the place of the table that it was filled beside."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.config import Feed, SchemaChange
from catchment.feed.born import Births
from catchment.feed.entering import must_hide_still, with_copies
from catchment.feed.families import Families, keys_on
from catchment.model.birth import Birth, Born
from catchment.model.epoch import Manifest, Shadow, TableDelta, TableShape
from catchment.model.errors import Unsupported
from catchment.model.renewal import Replacement
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.stale import Stale
from catchment.schema.columns import table_on
from catchment.schema.replaced import replaced
from catchment.source.catalog import read_table
from catchment.source.comments import commented_now
from catchment.source.session import connect


def _in_place(shadow: Shadow, stale: Stale | None) -> TableShape:
    """The shape with the shadow table in its place, on all shards or on those that have one. Raises Unsupported."""
    former = shadow.former
    if former is None or stale is None:
        return shadow.shape
    shards = tuple(sorted(shadow.swapped))
    shape = replaced(former.shape, shadow.shape, shards, stale.shards)
    return replace(shape, replaces=Replacement(shards, stale.epoch))


def _stale(entered: Manifest, shape: TableShape) -> tuple[Stale, ...]:
    """The tables that are stale with the epoch: not this one, unless it is to be settled first."""
    others = (one for one in entered.stale if one.table != shape.table)
    mine = entered.stale_since(shape.table) if shape.replaces is not None else None
    waits = [] if mine is None else [replace(mine, settles=True, births={})]
    return tuple(sorted((*others, *waits), key=lambda one: one.table))


@dataclass(frozen=True, slots=True)
class Swaps:
    """Lets shadow tables take their places. Under the carried table's name the log is read once more, from the epoch
    with the RENAME on. What stands in front of the RENAME is in the tail.

    Of a shard that has no shadow table the lake has the rows, up to the epoch in front of the first RENAME. Then the
    table is seen as of there until a settle has put the new rows beside them.
    """

    feed: Feed
    endpoints: Mapping[str, Endpoint]
    births: Births

    def epoch(self, standing: Manifest, shadow: Shadow) -> Manifest:
        """An epoch that ends where `standing` does. Raises SourceError, Unsupported where the table is to be copied."""
        shape = self._shape(standing, shadow)
        stood = {} if shadow.former is None else shadow.former.stood
        states = dict(standing.cut.shards)
        begins = {shard: Birth(one.position, one.position.at) for shard, one in stood.items()}
        for shard, birth in {**begins, **shadow.swapped}.items():
            self._must_be_near(shard, states[shard], birth, shape)
            states[shard] = self._with_keys(shard, states[shard], shape, standing)
        entering = replace(
            standing.repeated(standing.epoch + 1),
            shapes=(*standing.shapes, shape),
            deltas=(TableDelta(shape, ()),),
            shadows=tuple(one for one in standing.shadows if one.place_of != shape.table),
        )
        entering = replace(entering, cut=replace(entering.cut, shards=states))
        born = {shard: Born(birth, birth.at) for shard, birth in shadow.swapped.items()}
        read = self.births.read(entering, shape, born, stood)
        if read.copies.keys() != {*born, *stood}:
            raise Unsupported(f"what stands behind the RENAME of {shadow.table} cannot be told from the log")
        entered = self.births.written(with_copies(entering, read.copies), shape, read.outputs)
        return replace(entered, stale=_stale(entered, shape))

    def _shape(self, standing: Manifest, shadow: Shadow) -> TableShape:
        """The shape of the carried table from now on; it is what the shadow table's was."""
        table = shadow.place_of
        treatment, stale = self.feed.treatment_of(table), standing.stale_since(table)
        shape = replace(
            _in_place(shadow, stale), table=table, place_of=None, arrangement=treatment.arrangement
        )
        if self.feed.schema_change_of(table) is not SchemaChange.EVOLVE:
            raise Unsupported(f"schema_change of {table} does not follow it any more")
        if (treatment.mode, treatment.rules) != (shape.mode, shape.rules):
            raise Unsupported(
                f"the feed file says other things of {table} than when the shadow table was made"
            )
        if shape.replaces is not None and treatment.arrangement != shadow.shape.arrangement:
            raise Unsupported(f"the feed file arranges the files of {table} otherwise than they lie")
        if stale is not None:
            must_hide_still(stale, shape)
        (commented,) = commented_now([shape], [self.endpoints[shard] for shard in shadow.swapped])
        return commented

    def _must_be_near(self, shard: str, state: ShardState, birth: Birth, shape: TableShape) -> None:
        """Raise Unsupported where the log since the RENAME is too much to be read once more. Also where the catalog has
        the table otherwise: it was altered, perhaps behind the cut."""
        if not self.births.is_near(shard, state, birth):
            raise Unsupported(f"on shard {shard} more log lies behind the RENAME than copy.log_budget")
        with connect(self.endpoints[shard], state.position.server) as session:
            found = read_table(session, shape.table)
        if (set(found.columns), found.key) != (set(table_on(shape, shard).columns), shape.key):
            raise Unsupported(f"shard {shard} has other columns, or another key, than the shadow table had")

    def _with_keys(self, shard: str, state: ShardState, shape: TableShape, standing: Manifest) -> ShardState:
        """The state of a shard that has the table. Raises Unsupported where foreign keys may have changed its rows."""
        here = {copy.table for copy in state.copies}
        declared = keys_on(self.endpoints[shard], state, {*here, shape.table})
        if declared.among({shape.table: {}}):
            raise Unsupported(f"shard {shard}: what its foreign keys did to the shadow table is in no log")
        shapes = [one for one in (*standing.shapes, shape) if one.table in here or one is shape]
        keys = Families(()).keys(self.endpoints[shard], state, shapes, shape.table, declared)
        return replace(state, copies=(*state.copies, Copy(shape.table)), keys=keys)
