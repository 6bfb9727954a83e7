"""Turning a task's rows into lake rows, and writing them where they were read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

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
    count = rows.num_rows
    own = {
        "_shard": pa.repeat(pa.scalar(shard, schema.field("_shard").type), count),
        "_epoch": pa.repeat(pa.scalar(epoch, pa.int64()), count),
        "_deleted": rows.column(DELETED) if DELETED in there else pa.repeat(pa.scalar(False), count),
    }
    source = {c.physical: c.column.name for c in shape.columns if c.live and c.column.name in there}
    columns = []
    for field in schema:
        if field.name in own:
            columns.append(own[field.name])
        elif field.name in source:
            column = rows.column(source[field.name])
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.table(columns, schema=schema)


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
        if second is None and first.nbytes <= INLINE_BYTES:
            return Output(shape.table, part, FewRows(first), counts["upserts"], counts["deletes"])
        batches = chain([first], [] if second is None else [second], stream)
        directory = tail_of(self.root, shape)
        file = write_file(directory, part, name, batches, arrow_schema(shape), identity_columns(shape)[1:])
        return Output(shape.table, part, file, counts["upserts"], counts["deletes"])
