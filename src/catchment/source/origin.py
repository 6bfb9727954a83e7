"""Where the shards of a feed begin, and the manifest that follows: empty tables as of a sealed cut."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from catchment import world
from catchment.model.chunk import Bound
from catchment.model.cut import Cut
from catchment.model.definition import Definition
from catchment.model.epoch import Manifest, TableDelta
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import ConfigError, Unsupported
from catchment.model.position import Position, Server
from catchment.model.shard import Copy, ShardState
from catchment.model.table import Table, TableId, Wording
from catchment.model.treatment import PLAIN, Treatment
from catchment.schema.shape import first_shape, merge
from catchment.source.comments import Found, commented
from catchment.source.foreign_keys import DeclaredKeys


@dataclass(frozen=True)
class Origin:
    """A shard at its first cut: `newest`, the largest key of each table; `left`, the tables of which it is not known or
    may have gone since. `estimates`: of the rows of all tables that were chosen. `unusable`: why some of them cannot be
    carried. `keys`: what the others declared, as of a moment after the cut and before the log behind it was read."""

    position: Position
    tables: dict[TableId, Table]
    estimates: dict[TableId, int]
    newest: dict[TableId, Bound | None]
    definitions: tuple[Definition, ...]
    left: frozenset[TableId]
    comments: Found
    wordings: Mapping[TableId, Wording]
    unusable: Mapping[TableId, Unsupported]
    keys: DeclaredKeys

    @property
    def state(self) -> ShardState:
        """The shard with nothing copied."""
        copies = tuple(self._copy(table) for table in sorted(self.tables))
        return ShardState(self.position, self.position.at, copies, self.definitions)

    def without(self, tables: Collection[TableId]) -> "Origin":
        """The same without some tables."""
        if not tables:
            return self
        return replace(
            self,
            tables={table: found for table, found in self.tables.items() if table not in tables},
            definitions=tuple(one for one in self.definitions if one.table not in tables),
        )

    def _copy(self, table: TableId) -> Copy:
        if table in self.left:  # at the cut its largest key was perhaps another one
            return Copy(table, rows_expected=self.estimates[table])
        newest = self.newest[table]
        return Copy(
            table,
            born_after=newest,
            done=newest is None,
            rows_expected=self.estimates[table] if newest else 0,
        )


def first_manifest(
    feed: str,
    origins: Mapping[str, Origin],
    after: int,
    treatment: Callable[[TableId], Treatment] = lambda table: PLAIN,
) -> Manifest:
    """The manifest of epoch zero. Its number lies above `after`. `treatment`: what the feed makes of a table.

    Raises ConfigError when no table is chosen or two shards are one server, SourceError when definitions differ.
    """
    must_be_apart({shard: origin.position for shard, origin in origins.items()})
    by_table: dict[TableId, dict[str, Table]] = {}
    wordings: dict[TableId, dict[str, Wording]] = {}
    for shard, origin in origins.items():
        for table in origin.tables.values():
            by_table.setdefault(table.id, {})[shard] = table
            wordings.setdefault(table.id, {})[shard] = origin.wordings[table.id]
    if not by_table:
        raise ConfigError("tables: the rules choose no table on any shard; check the names (schema.table)")
    comments = [origin.comments for origin in origins.values()]
    shapes = tuple(
        commented(first_shape(merge(tables), tables, treatment(table), wordings[table]), comments)
        for table, tables in sorted(by_table.items())
    )
    now = world.now_us()
    epoch = max(epoch_number(now // 1_000_000), after + 1)
    return Manifest(
        feed=feed,
        previous=0,
        window_us=0,
        cut=Cut(epoch, now, {shard: origin.state for shard, origin in origins.items()}),
        shapes=shapes,
        deltas=tuple(TableDelta(shape, ()) for shape in shapes),
    )


def must_be_apart(positions: Mapping[str, Position]) -> None:
    """Raise ConfigError for two shards that are one server: every row of it would be in the lake twice."""
    first: dict[Server, str] = {}
    for shard, position in positions.items():
        other = first.setdefault(position.server, shard)
        if other != shard:
            raise ConfigError(
                f"shards {other} and {shard} are one server, {position.server}: its rows would be copied twice; "
                "correct host and port of one of them or, if they are two servers, give each a server_id of its own"
            )
