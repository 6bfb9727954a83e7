"""A task that compares chunks of a shard with the lake, both as of one epoch (DESIGN 4: rewind). It may write what
makes them equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from catchment import world
from catchment.epoch.work import ChunkTask, CopiedChunk, Failed, Output, Reader, Target
from catchment.model.chunk import Chunk, chunk_key
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import CatchmentError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.copy import read_group
from catchment.rewind.compare import Compared, Differences, compared
from catchment.rewind.key_chunks import keys_of
from catchment.rewind.ranges import covered


@dataclass(frozen=True, slots=True)
class VerifyTask:
    """The chunks to read as of the epoch, and what reads the sink's tables as of the same epoch. `mends`: write the
    differences as changes of the target's epoch, which is a later one and ends where this one does."""

    copy: ChunkTask
    readers: dict[TableId, Reader]
    mends: bool = False

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
    Chunks in `refused` were not compared: repeat them at a later epoch. `outputs`: the changes that mend the lake.
    `differing`: of chunks of chosen keys those that differ. `unproven`: keys whose SELECTs returned rows of before a
    change in the log, by table: nothing has proven that change visible yet, so they count as the log has them.
    `crowded`: the tables of those refused that need smaller chunks, for what the log says of them."""

    shard: str
    compared: dict[TableId, tuple[CopiedChunk, ...]]
    rows: dict[TableId, int]
    found: dict[TableId, Differences]
    refused: tuple[tuple[Chunk, str], ...]
    outputs: tuple[Output, ...] = ()
    differing: dict[TableId, pa.Table] = field(default_factory=dict)
    unproven: dict[TableId, int] = field(default_factory=dict)
    crowded: frozenset[TableId] = frozenset()


def bounded(task: VerifyTask, image_bytes: int | None) -> VerifyTask:
    """The task with the memory that it may take for what the log says of its keys; None: as much as it needs."""
    return replace(task, copy=replace(task.copy, image_bytes=image_bytes))


def verify_chunks(task: VerifyTask) -> VerifyReceipt | Failed:
    """Read both sides and compare row by row. An error of ours comes back as a value."""
    shard = task.endpoint.shard
    shapes = task.shapes
    try:
        group = read_group(task.copy, against_log=True)
        # Of keys that we cannot order, the lake's rows of some chunks cannot be told from those of the others.
        broken = {chunk.table for chunk, _ in group.refused}
        chosen = {chunk.table for chunk in task.copy.chunks if chunk.keys}
        whole = {
            table for table in group.rows if table not in broken or table in chosen or _ordered(shapes[table])
        }
        sides = {}
        for table in whole:
            chunks = [read.chunk for read in group.copied[table]]
            sides[table] = _compare(
                shapes[table], group.rows[table], _lake_rows(task.readers[table], chunks), chunks
            )
        outputs = _mended(task, sides) if task.mends else ()
    except CatchmentError as error:
        return Failed(shard, error)
    return VerifyReceipt(
        shard,
        {table: group.copied[table] for table in whole},
        {table: group.rows[table].num_rows for table in whole},
        {table: both.differences for table, both in sides.items()},
        group.refused,
        outputs,
        {table: _keys(shapes[table], sides[table]) for table in chosen & sides.keys()},
        {table: keys for table, keys in group.unproven.items() if keys and table in whole},
        group.crowded,
    )


def _mended(task: VerifyTask, sides: Mapping[TableId, Compared]) -> tuple[Output, ...]:
    """Write what makes the sides equal, each run of the task under a name of its own."""
    asked = task.copy.target
    target: Target = replace(asked, attempt=f"{asked.attempt}-{world.token()[:12]}")
    outputs = []
    for number, (table, both) in enumerate(sides.items()):
        if both.differences.total:
            shard = task.endpoint.shard
            output = target.emit([both.mending()], task.shapes[table], shard, Part.CHANGES, number)
            if output is not None:
                outputs.append(output)
    return tuple(outputs)


def _lake_rows(reader: Reader, chunks: Sequence[Chunk]) -> pa.Table:
    keys = keys_of(chunks)
    return reader.rows(chunks) if keys is None else reader.having(chunks[0].shard, keys)


def _keys(shape: TableShape, both: Compared) -> pa.Table:
    """The keys that differ."""
    return both.mending().select(list(shape.key))


def _ordered(shape: TableShape) -> bool:
    """Whether we know which keys lie in a chunk; else the task has all chunks of the table on its shard."""
    return chunk_key(shape.definition).ordered


def _compare(shape: TableShape, rows: pa.Table, lake: pa.Table, chunks: Sequence[Chunk]) -> Compared:
    chosen = any(chunk.keys for chunk in chunks)  # then the lake's rows are theirs already
    ranges = [(chunk.lo, chunk.hi) for chunk in chunks]
    mask = None if chosen else covered(lake, chunk_key(shape.definition), ranges)
    if mask is not None:
        lake = lake.filter(pa.array(mask))
    if shape.widened:  # the shard may have a former type still
        rows = rows.cast(pa.schema([lake.schema.field(name) for name in rows.schema.names]))
    return compared(rows, lake, shape.key)
