"""What executors read for `format("catchment")`: a range of a shard's log, or a group of chunks.

A piece of work says which feed file to load: passwords are in no partition, plan or checkpoint. Reading
the same piece again gives the same rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import StructType

from catchment.epoch.work import ChunkTask, Nowhere, Target
from catchment.epoch.xa import Commits, commits
from catchment.model.chunk import Bound, Chunk, chunk_key
from catchment.model.epoch import TableShape
from catchment.model.errors import SourceError, Undescribed, Unsupported
from catchment.model.image import INTERNAL
from catchment.model.position import LogOffset
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import Table
from catchment.readers.checks import alterations, must_be_whole, must_keep_keys
from catchment.readers.copy import GroupRows, read_group
from catchment.readers.xa_rows import PreparedRows
from catchment.rewind.change_types import typed
from catchment.rewind.ranges import Mask, follows_log
from catchment.rewind.sequence import ImageSequence
from catchment.rewind.states import in_commit_order, without_values, without_voids
from catchment.schema.follow import Followed
from catchment.schema.passage import Alteration
from catchment.serve.changes.rows import GroupFacts, changed_rows, copied_rows, numbered
from catchment.serve.spark_source.columns import must_be_new
from catchment.serve.spark_source.options import SourceOptions
from catchment.serve.spark_source.rows import batches
from catchment.source.ask_ranges import inside
from catchment.source.catalog import read_table
from catchment.source.definitions_at import described
from catchment.source.identity import must_be_same_log
from catchment.source.log import EndedGroups, read_log
from catchment.source.session import connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Images


@dataclass(frozen=True, slots=True)
class LogRange:
    """A shard's log from the position of `state` to `stop`; changes count as far as rows are copied there."""

    options: SourceOptions
    shape: TableShape
    shard: str
    state: ShardState
    stop: LogOffset
    epoch: int
    dropped: tuple[str, ...] = ()

    @property
    def copy(self) -> Copy:
        """How far the rows are copied at the start."""
        table = self.shape.table
        return self.state.copying.get(table, Copy(table, done=True))


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """Chunks of a shard as of the cut of `state`, with the log from its floor read behind their SELECTs.

    `log_bytes`: read no more log than that (None: as much as there is).
    """

    options: SourceOptions
    shape: TableShape
    shard: str
    state: ShardState
    chunks: tuple[Chunk, ...]
    epoch: int
    time_us: int
    log_bytes: int | None = None


Work = LogRange | ChunkGroup


def read_work(work: Work, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a piece of work in exactly the types of `schema`; raises CatchmentError."""
    _, endpoints = work.options.load()
    endpoint = endpoints[work.shard]
    try:
        yield from _read(work, endpoint, schema)
    except Undescribed:  # before any row: the log is read to its end first
        here = described(endpoint, work.state)
        if here == work.state:
            raise
        yield from _read(replace(work, state=here), endpoint, schema)


def _read(work: Work, endpoint: Endpoint, schema: StructType) -> Iterator[pa.RecordBatch]:
    if isinstance(work, LogRange):
        return _read_log(work, endpoint, schema)
    return _read_chunks(work, endpoint, schema)


def _read_chunks(work: ChunkGroup, endpoint: Endpoint, schema: StructType) -> Iterator[pa.RecordBatch]:
    target = Target(Nowhere(), (work.shard,), work.epoch, "source")
    at = work.state.position.at
    task = ChunkTask(
        endpoint=endpoint,
        state=work.state,
        floor=work.state.floor,
        epoch_at=at,
        chunks=work.chunks,
        shapes=(work.shape,),
        target=target,
        asks=False,
    )

    def asked(states: pa.Table, ranges: Sequence[tuple[Bound | None, Bound | None]]) -> Mask:
        with connect(endpoint, task.server) as session:
            return inside(session, _table(work.shape), states, ranges)

    group = read_group(task, work.log_bytes, asked)
    if group.refused:
        chunk, reason = group.refused[0]
        raise SourceError(f"{chunk} could not be read as of {at}: {reason}; {_way_out(group, chunk)}")
    for rows in group.rows.values():
        yield from batches(copied_rows(rows, work.shard, work.epoch, work.time_us), schema)


def _way_out(group: GroupRows, chunk: Chunk) -> str:
    """What a stream's offset names is read again until it succeeds; what the log holds behind it stays there."""
    if chunk.table in group.spoiled:
        return (
            "that was written after the chunk was planned, so that it never can be read: start a stream with a new "
            "checkpoint and an empty target, and alter the table before its copy or after it; read a batch again"
        )
    return "start the query again, a stream with the same checkpoint"


def _table(shape: TableShape) -> Table:
    return Table(shape.table, tuple(c.column for c in shape.columns), shape.key)


def _read_log(work: LogRange, endpoint: Endpoint, schema: StructType) -> Iterator[pa.RecordBatch]:
    table, start, definitions = work.shape.table, work.state.position, work.state.definitions
    server, groups = start.server, GroupFacts()
    at_start = Wanted.of([work.shape], definitions, before="full")
    with ImageSequence() as kept:
        must_be_same_log(endpoint, start)
        followed = Followed([table], definitions)
        with read_log(endpoint, server, start, work.stop, at_start.along(followed)) as log:
            for piece in log:
                if isinstance(piece, EndedGroups):
                    groups.add(piece.batch)
                else:
                    kept.add(_followed(work, piece))
        stretch = log.stretch
        must_be_whole(work.shard, start, work.stop, stretch)
        followed.must_follow()
        events = tuple(followed.events.of(stretch.facts))
        stored = StoredAt(endpoint, server, start.at, stretch.at, events)
        altered = alterations(work.shard, [table], stored)
        must_keep_keys(endpoint, server, [work.shape], events, stretch.at)
        ends = commits(work.shard, start.prepared, stretch.xa)
        for piece in PreparedRows(endpoint, server, ends.earlier, at_start):
            kept.add(_followed(work, piece))
        must_be_new(work.shard, table, work.dropped, altered)
        _must_be_known(work, endpoint, altered)
        known = groups.table()
        for images in kept.tables():
            counted = _counted(stretch, ends, altered, images)
            if counted.num_rows:
                yield from batches(changed_rows(counted, known, work.shard, work.epoch), schema)


def _followed(work: LogRange, read: Images) -> pa.Table:
    """The images that count, in the columns that the source shows; others may have the names of its own."""
    shown = {*INTERNAL, *(c.column.name for c in work.shape.columns)}
    images = pa.Table.from_batches([read.batch]).select([n for n in read.batch.schema.names if n in shown])
    key = chunk_key(Table(read.table.id, read.table.columns, work.shape.key))
    return typed(images, follows_log(images, key, work.copy))


def _counted(stretch: Stretch, ends: Commits, altered: list[Alteration], images: pa.Table) -> pa.Table:
    images = in_commit_order(without_voids(images, stretch.voids), ends.moves)
    if ends.moves:
        images = numbered(images)
    for alteration in altered:
        images = without_values(images, alteration.effect.dropped, alteration.group)
    return images


def _must_be_known(work: LogRange, endpoint: Endpoint, altered: list[Alteration]) -> None:
    """Raise Unsupported when a column was added that the table has now and this query does not know."""
    known = {c.column.name.lower() for c in work.shape.columns}
    added = {name.lower() for a in altered for name in a.effect.added} - known
    if not added:
        return
    with connect(endpoint, work.state.position.server) as session:
        now = {column.name.lower() for column in read_table(session, work.shape.table).columns}
    if added & now:
        raise Unsupported(
            f"shard {work.shard}, {work.shape.table}: column {', '.join(sorted(added & now))} was added; "
            "start the "
            "query again with the same checkpoint: it goes on with the new column"
        )
