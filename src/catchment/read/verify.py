"""A task that compares chunks of a shard with the lake, both as of one epoch (DESIGN 4: rewind; 10: reader's
rule).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from catchment.api.read import TableState
from catchment.api.rule import double_quoted, output_schema
from catchment.epoch.work import ChunkTask, CopiedChunk, Failed
from catchment.model.chunk import Bound, Chunk, ChunkKey, chunk_key
from catchment.model.errors import CatchmentError, SinkError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.read.copy import read_group
from catchment.rewind.compare import Differences, differences
from catchment.rewind.ranges import covered, value_of
from catchment.sink.delta.layout import SHARD

Range = tuple[Bound | None, Bound | None]


@dataclass(frozen=True, slots=True)
class VerifyTask:
    """The chunks to read as of the epoch, and the lake's tables as of the same epoch."""

    copy: ChunkTask
    states: dict[TableId, TableState]

    @property
    def endpoint(self) -> Endpoint:
        """The shard that is read."""
        return self.copy.endpoint

    def ordered(self, table: TableId) -> bool:
        """Whether we know which keys lie in a chunk; else the task has all chunks of the table on its shard."""
        return chunk_key(self.states[table].shape.definition).ordered


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
    try:
        group = read_group(task.copy)
        # Of keys that we cannot order, the lake's rows of some chunks cannot be told from those of the others.
        broken = {chunk.table for chunk, _ in group.refused}
        compared = {table for table in group.rows if table not in broken or task.ordered(table)}
        found = {}
        for table in compared:
            rows = group.rows[table]
            ranges = [(read.chunk.lo, read.chunk.hi) for read in group.copied[table]]
            found[table] = _compare(task.states[table], shard, rows, ranges)
    except CatchmentError as error:
        return Failed(shard, error)
    rows_as_of = {table: group.rows[table].num_rows for table in compared}
    copied = {table: group.copied[table] for table in compared}
    return VerifyReceipt(shard, copied, rows_as_of, found, group.refused)


def _compare(state: TableState, shard: str, rows: pa.Table, ranges: Sequence[Range]) -> Differences:
    shape = state.shape
    key = chunk_key(shape.definition)
    lake = _lake_rows(state, shard, key, ranges)
    mask = covered(lake, key, ranges)
    if mask is not None:
        lake = lake.filter(pa.array(mask))
    return differences(rows, lake, shape.key, rows.schema.names)


def _lake_rows(state: TableState, shard: str, key: ChunkKey, ranges: Sequence[Range]) -> pa.Table:
    """The lake's rows of the shard, at least those of the ranges; of a key that only the server can order, all."""
    conditions, values = [f"{SHARD} = ?"], [shard]
    if key.ordered:
        name = double_quoted(key.columns[0].name)
        for operator, chosen, bounds in (
            (">=", min, [lo for lo, _ in ranges]),
            ("<=", max, [hi for _, hi in ranges]),
        ):
            known = [value_of(key.columns[0], bound[0]) for bound in bounds if bound is not None]
            if len(known) == len(bounds):
                conditions.append(f"{name} {operator} ?")
                values.append(chosen(known))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        query = f"SELECT * FROM ({state.sql()}) WHERE {' AND '.join(conditions)}"
        try:
            rows = connection.sql(query, params=values).to_arrow_table()
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            raise SinkError(f"{state.shape.table}: the files of the lake cannot be read: {error}") from error
    return rows.cast(output_schema(state.shape, state.origin))
