"""A lake table's shape as one shard's log moves on, when not every ALTER is followed by a row that shows the
result.
"""

from collections.abc import Sequence

from catchment.flow.epoch.ddl import Columns
from catchment.flow.epoch.shape import evolve
from catchment.model.epoch import TableShape
from catchment.model.table import Table


def table_on(shape: TableShape, shard: str) -> Table:
    """The source table as a shard has it, as far as the shape knows."""
    columns = tuple(c.column for c in shape.columns if c.live and shard not in c.missing)
    return Table(shape.table, columns, shape.key)


def shape_after(
    shape: TableShape,
    shard: str,
    shards: Sequence[str],
    seen: Sequence[Table],
    effects: Sequence[Columns],
    epoch: int,
) -> TableShape:
    """The shape once `shard` has gone through `effects` in `epoch`.

    `seen`: definitions of the table in the order of trust: as the last row event described it, as the catalog
    has it. The first one that the effects can have led to is taken. Without one, columns are dropped but none
    is added yet: no row has a value there. Columns that are new without an effect were added in an earlier
    epoch that changed no rows. Raises as `shape.evolve`.
    """
    before = table_on(shape, shard)
    table = next((t for t in seen if _results_from(t, effects)), None)
    if table is None:
        effects = [Columns(e.table, (), e.dropped) for e in effects]
        dropped = {name.lower() for e in effects for name in e.dropped}
        table = Table(
            shape.table, tuple(c for c in before.columns if c.name.lower() not in dropped), shape.key
        )
    else:
        table = Table(table.id, table.columns, shape.key)
        announced = {name.lower() for e in effects for name in e.added} | {
            c.name.lower() for c in before.columns
        }
        late = tuple(c.name for c in table.columns if c.name.lower() not in announced)
        effects = [Columns(shape.table, late, ()), *effects] if late else effects
    if table == before and not effects:
        return shape
    others = {other: table_on(shape, other) for other in shards if other != shard}
    return evolve(shape, table, effects, epoch, shard=shard, others=others)


def _results_from(table: Table, effects: Sequence[Columns]) -> bool:
    stays: dict[str, bool] = {}
    for e in effects:
        stays |= {name.lower(): False for name in e.dropped}
        stays |= {name.lower(): True for name in e.added}
    names = {c.name.lower() for c in table.columns}
    return all((name in names) == there for name, there in stays.items())
