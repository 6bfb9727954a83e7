"""A task that compares chunks of a shard with the lake, both as of one epoch (DESIGN 4: rewind)."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from catchment.epoch.work import ChunkTask, CopiedChunk, Failed, Reader
from catchment.model.chunk import Chunk, chunk_key
from catchment.model.epoch import TableShape
from catchment.model.errors import CatchmentError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.copy import read_group
from catchment.rewind.compare import Differences, differences
from catchment.rewind.ranges import covered


@dataclass(frozen=True, slots=True)
class VerifyTask:
    """The chunks to read as of the epoch, and what reads the sink's tables as of the same epoch."""

    copy: ChunkTask
    readers: dict[TableId, Reader]

    @property
    def endpoint(self) -> Endpoint:
        """The shard that is read."""
        return self.copy.endpoint

    @property
    def shapes(self) -> dict[TableId, TableShape]:
        """The tables' shapes as of the epoch."""
        return {shape.table: shape for shape in self.copy.shapes}


@dataclass(frozen=True, slots=True)
class VerifyReceipt:
    """What was compared, by table: an unbroken run of chunks, their rows as of the epoch, and what differs.
    Chunks in `refused` were not compared: repeat them at a later epoch."""

    shard: str
    compared: dict[TableId, tuple[CopiedChunk, ...]]
    rows: dict[TableId, int]
    found: dict[TableId, Differences]
    refused: tuple[tuple[Chunk, str], ...]


def verify_chunks(task: VerifyTask) -> VerifyReceipt | Failed:
    """Read both sides and compare row by row."""
    shard = task.endpoint.shard
    shapes = task.shapes
    try:
        group = read_group(task.copy)
        # Of keys that we cannot order, the lake's rows of some chunks cannot be told from those of the others.
        broken = {chunk.table for chunk, _ in group.refused}
        compared = {table for table in group.rows if table not in broken or _ordered(shapes[table])}
        found = {}
        for table in compared:
            chunks = [read.chunk for read in group.copied[table]]
            lake = task.readers[table].rows(chunks)
            found[table] = _compare(shapes[table], group.rows[table], lake, chunks)
    except CatchmentError as error:
        return Failed(shard, error)
    rows_as_of = {table: group.rows[table].num_rows for table in compared}
    copied = {table: group.copied[table] for table in compared}
    return VerifyReceipt(shard, copied, rows_as_of, found, group.refused)


def _ordered(shape: TableShape) -> bool:
    """Whether we know which keys lie in a chunk; else the task has all chunks of the table on its shard."""
    return chunk_key(shape.definition).ordered


def _compare(shape: TableShape, rows: pa.Table, lake: pa.Table, chunks: Sequence[Chunk]) -> Differences:
    mask = covered(lake, chunk_key(shape.definition), [(chunk.lo, chunk.hi) for chunk in chunks])
    if mask is not None:
        lake = lake.filter(pa.array(mask))
    return differences(rows, lake, shape.key, rows.schema.names)
