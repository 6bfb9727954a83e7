"""Turning a task's rows into lake rows, and writing them where they were read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from catchment.epoch.work import FewRows, Output
from catchment.model.epoch import Part, TableShape
from catchment.model.image import DELETED
from catchment.model.location import Location
from catchment.sink.delta.files import write_file
from catchment.sink.delta.layout import arrow_schema, identity_columns, tail_of

# Fewer bytes than this go to the driver, which writes one file per table and epoch for all tasks.
INLINE_BYTES = 256 << 10


def lake_rows(rows: pa.Table, shape: TableShape, shard: str, epoch: int) -> pa.Table:
    """Rows under the lake's physical names and types; columns that the source lacks are null."""
    schema, there = arrow_schema(shape), set(rows.schema.names)
    own = _own_columns(rows, schema, shard, epoch)
    alike = _as_they_come(rows, own, schema, {c.column.name: c.physical for c in shape.columns if c.live})
    if alike is not None:
        return alike
    source = {c.physical: c.column.name for c in shape.columns if c.live and c.column.name in there}
    columns = []
    for field in schema:
        if field.name in own:
            columns.append(own[field.name])
        elif field.name in source:
            column = rows.column(source[field.name])
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.table(columns, schema=schema)


def _own_columns(rows: pa.Table, schema: pa.Schema, shard: str, epoch: int) -> dict[str, Any]:
    """Those with which each table of the lake begins, by their names."""
    count, deleted = rows.num_rows, DELETED in rows.schema.names
    return {
        "_shard": pa.repeat(pa.scalar(shard, schema.field("_shard").type), count),
        "_epoch": pa.repeat(pa.scalar(epoch, pa.int64()), count),
        "_deleted": rows.column(DELETED) if deleted else pa.repeat(pa.scalar(False), count),
    }


def _as_they_come(
    rows: pa.Table, own: Mapping[str, Any], schema: pa.Schema, physical: Mapping[str, str]
) -> pa.Table | None:
    """The rows under the names of the lake, if these are all of its columns in its order, as nearly always. Then no
    column is looked at: of one row, that takes longer than all else."""
    names = [name for name in rows.schema.names if name != DELETED]
    if not physical.keys() >= set(names):
        return None
    found = rows.select(names).rename_columns([physical[name] for name in names])
    for at, column in enumerate(own.values()):
        found = found.add_column(at, schema.field(at), column)
    return found if found.schema == schema else None


@dataclass(frozen=True, slots=True)
class LakeWriter:
    """Writes the rows of tasks as files of the lake at `root`."""

    root: Location

    def emit(
        self, tables: Iterable[pa.Table], shape: TableShape, shard: str, part: Part, *, epoch: int, name: str
    ) -> Output | None:
        """As the port has it: a file, or the rows."""
        counts = {"upserts": 0, "deletes": 0}

        def converted() -> Iterator[pa.Table]:
            for rows in tables:
                deleted = rows.column(DELETED).chunks if DELETED in rows.schema.names else ()
                deletes = sum(chunk.true_count for chunk in deleted)
                counts["deletes"] += deletes
                counts["upserts"] += rows.num_rows - deletes
                if rows.num_rows:
                    yield lake_rows(rows, shape, shard, epoch)

        stream = converted()
        first = next(stream, None)
        if first is None:
            return None
        second = next(stream, None)
        # The first says little of a slice of much, and the second looks at each column.
        few = first.get_total_buffer_size() <= INLINE_BYTES or first.nbytes <= INLINE_BYTES
        if second is None and few:
            return Output(shape.table, part, FewRows(first), counts["upserts"], counts["deletes"])
        batches = chain([first], [] if second is None else [second], stream)
        directory = tail_of(self.root, shape)
        file = write_file(directory, part, name, batches, arrow_schema(shape), identity_columns(shape)[1:])
        return Output(shape.table, part, file, counts["upserts"], counts["deletes"])
