"""A turn as Arrow: rows of each table with their change columns, in the order in which they are to be applied."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from catchment.model.errors import Unsupported
from catchment.model.image import CHANGE, GROUP, INTERNAL
from catchment.model.table import Table, without_case
from catchment.serve.changes.rows import CHANGE_FIELDS, changed_rows, copied_rows
from catchment.serve.stream.events import Batch, LastPk, Part
from catchment.serve.stream.source import ShardName
from catchment.serve.stream.spans import Span, spans
from catchment.serve.stream.told import completed, ddl_of, restarts, vgtid_of
from catchment.serve.stream.turn import ShardTurn, Turn

# Images of which the next span has more, by the `id` of their Changed: to read them takes longer than to cut them.
_Kept = dict[int, pa.Table]
_NAMES = frozenset(field.name for field in CHANGE_FIELDS)


def parts(turn: Turn) -> Iterator[Part]:
    """The parts of a turn; its vgtid is last. Raises Unsupported where a column has a name of ours."""
    cut = turn.stands.cut
    for shard in turn.shards:
        yield from restarts(ShardName.parse(shard.shard), shard.again)
    kept: _Kept = {}
    for span in spans(turn):
        yield from _of_log(span, cut.epoch, kept)
    for shard in turn.shards:
        name = ShardName.parse(shard.shard)
        yield from restarts(name, shard.told.voids if shard.told else ())
        yield from _of_chunks(name, shard, cut.epoch, cut.time_us)
    yield from vgtid_of(turn)


def _of_log(span: Span, epoch: int, kept: _Kept) -> Iterator[Part]:
    """The rows of a span, and between them what altered their tables."""
    name = ShardName.parse(span.shard)
    altered = [one for one in span.told.altered if span.begin <= one.group < span.end]
    begin = span.begin
    for one in sorted(altered, key=lambda one: one.group):
        yield from _rows(name, replace(span, begin=begin, end=one.group), epoch, kept)
        yield ddl_of(name, one)
        begin = one.group
    yield from _rows(name, replace(span, begin=begin), epoch, kept)


def _rows(name: ShardName, span: Span, epoch: int, kept: _Kept) -> Iterator[Batch]:
    told = span.told
    for changed in sorted(told.changed, key=lambda one: one.first):
        if not changed.within(span.begin, span.end):
            continue
        rows = kept.pop(id(changed)) if id(changed) in kept else changed.rows
        if changed.within(span.end, sys.maxsize):
            kept[id(changed)] = rows
        first, behind = np.searchsorted(rows.column(GROUP).to_numpy(), (span.begin, span.end))
        rows = rows.slice(first, behind - first)
        if rows.num_rows:
            shown = changed_rows(rows, told.groups.table(), str(name), epoch)
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
