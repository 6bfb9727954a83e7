"""What is compared where only what changed behind an epoch is asked for: keys of most tables, and some tables whole."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.feed.verdict import Compared
from catchment.model.choice import Since
from catchment.model.epoch import Manifest, TableShape
from catchment.model.table import TableId
from catchment.source.chosen_keys import can_be_named

Shards = Mapping[TableId, frozenset[str]]


@dataclass(frozen=True)
class SinceThen:
    """By table, on which shards the keys are compared that changed, and on which all rows."""

    keys: Shards
    whole: Shards

    @classmethod
    def of(cls, since: Since, manifest: Manifest, tables: Collection[TableId]) -> "SinceThen":
        """Of these tables, as far as they are not stale."""
        keys, whole = {}, {}
        for table, shards in manifest.holders.items():
            if table in tables and manifest.stale_since(table) is None:
                mine = frozenset(shard for shard in shards if since.shard in ("", shard))
                whole[table] = _all_may_have_changed(manifest.shape(table), mine, since.epoch)
                keys[table] = mine - whole[table]
        return cls(keys, whole)

    def of_whole(self, compared: Compared) -> Compared:
        """Of what there is to compare that of tables which are compared whole."""
        return {
            shard: tuple(
                copy if shard in self.whole.get(copy.table, ()) else replace(copy, done=True)
                for copy in copies
            )
            for shard, copies in compared.items()
        }

    @property
    def told(self) -> tuple[str, ...]:
        """The tables that are compared whole, and on which shards."""
        return tuple(
            f"{table} on {shard}" for table in sorted(self.whole) for shard in sorted(self.whole[table])
        )


def _all_may_have_changed(shape: TableShape, shards: frozenset[str], since: int) -> frozenset[str]:
    """Those of the shards where rows changed that no change names. The table was copied since, or a TRUNCATE took them,
    or a column came with a value. All of them where no SELECT can name the keys."""
    keys = {column.physical for column in shape.kept if column.column.name in shape.key}
    retyped = any(one.shards for one in shape.widened if one.column in keys)
    if shape.generation > since or retyped or not can_be_named(shape.definition):
        return shards
    emptied = (one.shards for one in shape.emptied if one.before > since)
    filled = (one.shards for one in shape.fills if one.before > since)
    return shards & frozenset(shard for named in (*emptied, *filled) for shard in named)
