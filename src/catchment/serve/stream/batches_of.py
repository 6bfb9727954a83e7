"""A turn as Arrow: rows of each table with their change columns, in the order in which they are to be applied."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.errors import Unsupported
from catchment.model.image import CHANGE, GROUP, INTERNAL
from catchment.model.table import Table, without_case
from catchment.serve.changes.rows import CHANGE_FIELDS, changed_rows, copied_rows
from catchment.serve.stream.advance import Altered, Told
from catchment.serve.stream.epochs import ShardTurn, Turn
from catchment.serve.stream.events import Batch, LastPk, Part
from catchment.serve.stream.source import ShardName
from catchment.serve.stream.told import completed, ddl_of, restarts, vgtid_of

_NAMES = frozenset(field.name for field in CHANGE_FIELDS)


def parts(turn: Turn) -> Iterator[Part]:
    """The parts of a turn; its vgtid is last. Raises Unsupported where a column has a name of ours."""
    cut = turn.stands.cut
    for shard in turn.shards:
        name = ShardName.parse(shard.shard)
        yield from restarts(name, shard.again)
        if shard.told is not None:
            yield from _of_log(name, shard.told, cut.epoch)
            yield from restarts(name, shard.told.voids)
        yield from _of_chunks(name, shard, cut.epoch, cut.time_us)
    yield from vgtid_of(turn)


def _of_log(name: ShardName, told: Told, epoch: int) -> Iterator[Part]:
    begin = 0
    for altered in sorted(told.altered, key=lambda one: one.group):
        yield from _between(name, told, epoch, begin, altered)
        yield ddl_of(name, altered)
        begin = altered.group
    yield from _between(name, told, epoch, begin, None)


def _between(name: ShardName, told: Told, epoch: int, begin: int, end: Altered | None) -> Iterator[Batch]:
    """The rows of groups from one to the next that altered a table."""
    for changed in sorted(told.changed, key=lambda one: one.first):
        rows = changed.rows
        if told.altered:
            groups = rows.column(GROUP)
            inside = pc.greater_equal(groups, begin)
            rows = rows.filter(inside if end is None else pc.and_(inside, pc.less(groups, end.group)))
        if rows.num_rows:
            shown = changed_rows(rows, told.groups, str(name), epoch)
            yield _batch(name, changed.table, shown.drop_columns([*INTERNAL, CHANGE]))


def _of_chunks(name: ShardName, turn: ShardTurn, epoch: int, time_us: int) -> Iterator[Part]:
    for copied in turn.copied:
        table = copied.table
        rows = copied_rows(copied.rows, str(name), epoch, time_us)
        rows = rows.append_column("_gtid", pa.nulls(rows.num_rows, pa.string()))
        yield _batch(name, table, rows)
        yield LastPk(*name, table.id, copied.last)
        yield from completed(name, copied)


def _batch(name: ShardName, table: Table, rows: pa.Table) -> Batch:
    taken = [column.name for column in table.columns if without_case(column.name) in _NAMES]
    if taken:
        raise Unsupported(
            f"{table.id}: column {', '.join(taken)} has the name of a column that batches have beside those of the "
            "table; rename the column, or read events"
        )
    columns = [column.name for column in table.columns]
    order = [*(one for one in columns if one in rows.schema.names), *(field.name for field in CHANGE_FIELDS)]
    return Batch(*name, table.id, table.key, rows.select(order))
