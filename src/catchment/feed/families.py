"""Tables that enter a feed with their foreign keys. A child enters behind its parents, so that it can follow them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from catchment.model.epoch import TableShape
from catchment.model.errors import CutMissed, Unsupported
from catchment.model.foreign_key import ForeignKey, above
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.foreign_keys import columns_of
from catchment.source.foreign_keys import REMEDY, Cascading, DeclaredKeys, declared_keys
from catchment.source.session import connect


class ParentFirst(CutMissed):
    """A table is to enter behind a parent of it that is to enter, too."""

    def __init__(self, parent: TableId) -> None:
        super().__init__(f"its parent {parent} enters first")
        self.parent = parent


@dataclass(frozen=True)
class Families:
    """Asks a shard for the foreign keys of a table that enters. `coming`: the tables that are to enter."""

    coming: Collection[TableId]

    def keys(
        self,
        endpoint: Endpoint,
        state: ShardState,
        shapes: Iterable[TableShape],
        table: TableId,
        declared: DeclaredKeys,
    ) -> tuple[ForeignKey, ...] | None:
        """Those that are followed when the table has entered; None where nobody has asked the shard yet, and some
        other cannot be carried. `shapes`: of the tables that it has, that of the one that enters among them.
        `declared`: the keys of these.

        Raises ParentFirst, CutMissed while a parent is copied that has parents itself, Unsupported, SourceError.
        """
        found = declared.among(columns_of(shapes))
        for one in found:
            if one.refused and one.key.child == table:
                self._refuse(endpoint, state, one)
        if state.keys is None:
            # The segment makes children stale that entered before anybody asked.
            return None if any(one.refused for one in found) else tuple(one.key for one in found)
        mine = tuple(one.key for one in found if not one.refused and table in (one.key.child, one.key.parent))
        others = tuple(key for key in state.keys if table not in (key.child, key.parent))
        keys = (*others, *mine)
        # What happens to children of rows that are not copied yet is not known.
        parents = {key.child for key in keys} & above(keys, frozenset({table})) - {table}
        if copying := parents & state.copying.keys():
            raise CutMissed(f"shard {endpoint.shard}: its parent {min(copying)} is copied first")
        return keys

    def _refuse(self, endpoint: Endpoint, state: ShardState, one: Cascading) -> None:
        child, parent = one.key.child, one.key.parent
        if parent in self.coming:
            back = keys_on(endpoint, state, [parent]).among({parent: {}})
            if all(other.key.parent != child for other in back):
                raise ParentFirst(parent)
        raise Unsupported(f"shard {endpoint.shard}, {child}: {one.why}; {REMEDY}")


def keys_on(endpoint: Endpoint, state: ShardState, tables: Iterable[TableId]) -> DeclaredKeys:
    """What tables of a shard declare now. Raises SourceError."""
    with connect(endpoint, state.position.server) as session:
        return declared_keys(session, tables)
