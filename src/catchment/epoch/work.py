"""What the driver hands to executor tasks and what it gets back: small frozen values, pickled by Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol, cast

import pyarrow as pa

from catchment.epoch.evidence import Evidence
from catchment.model.birth import Born
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.definition import Definition
from catchment.model.epoch import DataFile, Part, Shapes, TableShape
from catchment.model.errors import CatchmentError
from catchment.model.foreign_key import ForeignKey
from catchment.model.position import LogOffset, Position, Server, reaches
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.model.treatment import Changes, SchemaChange
from catchment.schema.existence import Existence
from catchment.schema.passage import Alteration, MetTable, Passage, Stopped


@dataclass(frozen=True, slots=True)
class FewRows:
    """Rows that go with a receipt; to another process as a stream of Arrow."""

    rows: pa.Table

    def __reduce__(self) -> tuple[Callable[[bytes], "FewRows"], tuple[bytes]]:
        """Arrow's own pickles hold all of the buffers that the rows are a slice of."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.rows.schema) as writer:
            writer.write_table(self.rows)
        return _few_rows, (sink.getvalue().to_pybytes(),)


def _few_rows(stream: bytes) -> FewRows:
    return FewRows(pa.ipc.open_stream(stream).read_all())


@dataclass(frozen=True, slots=True)
class Output:
    """Rows for one part of one table: a file when there are many, else the rows themselves."""

    table: TableId
    part: Part
    held: DataFile | FewRows
    upserts: int
    deletes: int


class Writer(Protocol):
    """The half of a sink that goes with a task: a value that another process can have."""

    def emit(
        self, tables: Iterable[pa.Table], shape: TableShape, shard: str, part: Part, *, epoch: int, name: str
    ) -> Output | None:
        """Write a shard's rows of one table under a name that no other attempt has, or carry them inline when they are
        few. None when there are none. Raises SinkError."""
        ...


class Reader(Protocol):
    """The half of a sink that goes with a task which compares: one table as of one epoch. Another process can have
    it."""

    def rows(self, chunks: Sequence[Chunk]) -> pa.Table:
        """Rows of the shard of these chunks, under the source's names: at least those with keys in one of them. All
        of them where only the server can order the keys. Raises SinkError."""
        ...

    def having(self, shard: str, values: pa.Table) -> pa.Table:
        """Rows of a shard that have one of the values in its columns, under the source's names. Raises SinkError."""
        ...

    def elsewhere(self, shards: Sequence[str]) -> Mapping[str | None, pa.Table]:
        """Rows that stand under none of these shards, by what stands there instead. Raises SinkError."""
        ...


class Stage(Protocol):
    """Where a sink keeps rows between their SELECT and the cut at which they count. Another process can have it."""

    def put(self, name: str, rows: pa.Table) -> None:
        """Keep rows, durably, under a name that no other attempt has. Raises SinkError."""
        ...

    def take(self, name: str) -> pa.Table:
        """The rows. Raises SinkError."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Let go of rows, if they are there. Raises SinkError."""
        ...


@dataclass(frozen=True, slots=True)
class Nowhere:
    """The writer of tasks whose rows somebody looks at and nobody writes."""

    def emit(
        self, tables: Iterable[pa.Table], shape: TableShape, shard: str, part: Part, *, epoch: int, name: str
    ) -> Output | None:
        """Raises TypeError: nobody asks for it."""
        raise TypeError(f"{shape.table}: the rows of this task are not to be written")


@dataclass(frozen=True, slots=True)
class Target:
    """Where and under which name a task writes; `shards` are all of the feed."""

    writer: Writer
    shards: tuple[str, ...]
    epoch: int
    attempt: str

    def emit(
        self, tables: Iterable[pa.Table], shape: TableShape, shard: str, part: Part, number: int
    ) -> Output | None:
        """As the writer does, for the output of that number of this attempt."""
        name = f"{self.epoch}-{self.attempt}-{number}"
        return self.writer.emit(tables, shape, shard, part, epoch=self.epoch, name=name)


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """Read one shard's log from the position of `start` to `stop` and write the net changes of the chosen tables.

    `start`: copies that are done may be left out. `holders`: the shards that have each table; all of the target's where
    it is not named. `changes`: what is done about DDL. `aside`: where something stands that orders have set aside.
    `born`: how the log made the one table of the task; what stands in front of that is of another one. `lake`: the
    tables with foreign keys that are followed, as of the epoch before; None: raise ChildrenSought where they are asked.
    """

    endpoint: Endpoint
    start: ShardState
    stop: LogOffset
    shapes: tuple[TableShape, ...]
    target: Target
    holders: dict[TableId, tuple[str, ...]] = field(default_factory=dict)
    changes: Changes = field(default_factory=lambda: Changes(SchemaChange.FAIL))
    mask_key: MaskKey | None = None
    aside: frozenset[LogOffset] = frozenset()
    born: Born | None = None
    lake: dict[TableId, Reader] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.shapes, Shapes):
            object.__setattr__(self, "shapes", Shapes(self.shapes))

    @property
    def known(self) -> Shapes:
        """The shapes, with what follows from them."""
        return cast(Shapes, self.shapes)

    def has(self, table: TableId) -> bool:
        """Whether the shard has a table, of those whose shapes are here."""
        shards = self.holders.get(table)
        return shards is None or self.endpoint.shard in shards

    @property
    def here(self) -> Mapping[TableId, TableShape]:
        """The shapes of the tables that the shard has."""
        known = self.known.by_table
        return {table: known[table] for table in known if self.has(table)} if self.holders else known

    @property
    def log_bytes(self) -> int | None:
        """Bytes of log that the task may have to read, prepared transactions with it; None across files."""
        start = self.start.position
        pieces = [(start.at, self.stop), *((one.start, one.end) for one in start.prepared)]
        if any(start.file != end.file for start, end in pieces):
            return None
        return sum(end.offset - start.offset for start, end in pieces)


@dataclass(frozen=True, slots=True)
class CopiedChunk:
    """One chunk that was read: rows as SELECT returned them, and what it took."""

    chunk: Chunk
    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Rows of one table that wait in a stage under a name: those of its chunks, one after another."""

    table: TableId
    name: str
    chunks: tuple[CopiedChunk, ...]


@dataclass(frozen=True, slots=True)
class StagedGroup:
    """A group of chunks that was SELECTed in front of the cut, and what shows at which cuts it counts. `floor`: where
    the log of its rows begins. `refused`: the chunks that were not read. `marks`: the table in which marks stand."""

    stage: Stage
    floor: LogOffset
    tables: tuple[StagedTable, ...]
    refused: tuple[tuple[Chunk, str], ...]
    evidence: Evidence
    marks: TableId


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A group of chunks of one shard: its SELECTs one after another, then one read of the log from `floor`. Where it is
    `staged`, the rows are there already, and the log is read to the epoch.

    `state`: of the shard at a cut from the floor on. Its XA transactions are at least those that are open at `floor` or
    were prepared between it and the last cut. `image_bytes`: hold no more of what the log says of the chunks' keys
    (None: all there is). `asks`: behind the log, whether it was reset since that cut. `parents`: the shapes of tables
    that are not copied, but change rows of those that are by foreign keys. `lake`: those of all these that foreign keys
    change, as of that cut; None: raise ChildrenSought where they are asked. `nearest`: chunks of these tables were
    refused before, so the nearest floor is proven that can be, for however little log.
    """

    endpoint: Endpoint
    state: ShardState
    floor: LogOffset
    epoch_at: LogOffset
    chunks: tuple[Chunk, ...]
    shapes: tuple[TableShape, ...]
    target: Target
    image_bytes: int | None = None
    asks: bool = True
    mask_key: MaskKey | None = None
    parents: tuple[TableShape, ...] = ()
    staged: StagedGroup | None = None
    nearest: bool = False
    lake: dict[TableId, Reader] | None = None

    @property
    def server(self) -> Server:
        """The server that is to answer."""
        return self.state.position.server


@dataclass(frozen=True, slots=True)
class Swapped:
    """A shadow table has the name of the table whose place it takes, since a statement `at` a place."""

    shadow: TableId
    at: LogOffset


@dataclass(frozen=True, slots=True)
class SegmentReceipt:
    """The log of one shard was read to `reached`.

    `met`: tables with rows in the stretch, as their last row event describes them. `event_time`: seconds
    since 1970 of the last group, 0 if there is none. `definitions`: those of the task as they are where the
    stretch ends; None: as they were. `existence`: which tables of the server its DDL made and took away, chosen
    or not. `stopped`: tables whose rows the log does not tell any more; the receipt says nothing else of them.
    `keys`: the foreign keys that are followed from there on. `swapped`: shadow tables that have taken places; their
    outputs are what stands in front.
    """

    shard: str
    reached: Position
    sealed: LogOffset | None
    outputs: tuple[Output, ...]
    altered: tuple[Alteration, ...]
    met: tuple[MetTable, ...]
    groups: int
    log_bytes: int
    event_time: int
    definitions: tuple[Definition, ...] | None = None
    existence: Existence = field(default_factory=Existence)
    stopped: tuple[Stopped, ...] = ()
    keys: tuple[ForeignKey, ...] | None = None
    swapped: tuple[Swapped, ...] = ()

    def passages(self) -> dict[TableId, Passage]:
        """What the tables went through that were altered."""
        met = {one.table.id: one for one in self.met}
        altered: dict[TableId, list[Alteration]] = {}
        for alteration in self.altered:
            altered.setdefault(alteration.effect.table, []).append(alteration)
        return {table: Passage.of(met.get(table), found) for table, found in altered.items()}


@dataclass(frozen=True, slots=True)
class ChunkReceipt:
    """What a group delivered: for each table an unbroken run of its chunks from the first on, and why it
    stopped. `crowded`: the tables of those refused that need smaller chunks, for what the log says of them.
    """

    shard: str
    copied: tuple[CopiedChunk, ...]
    outputs: tuple[Output, ...]
    refused: tuple[tuple[Chunk, str], ...]
    log_bytes: int
    crowded: frozenset[TableId] = frozenset()


@dataclass(frozen=True, slots=True)
class Failed:
    """A task ended in an error of ours; the error travels as it is."""

    shard: str
    error: CatchmentError


@dataclass(frozen=True, slots=True)
class BirthsTask:
    """Read one shard's log once for several tables that it made: `tasks` are those that would each read one of them, to
    the same place. The log of the shard describes itself."""

    tasks: tuple[SegmentTask, ...]

    @property
    def first(self) -> SegmentTask:
        """The task whose table was made first."""
        return reduce(lambda a, b: a if reaches(_begin(b), _begin(a)) else b, self.tasks)

    @property
    def endpoint(self) -> Endpoint:
        """Where the log is."""
        return self.tasks[0].endpoint

    @property
    def log_bytes(self) -> int | None:
        """As of a SegmentTask."""
        return self.first.log_bytes


def _begin(task: SegmentTask) -> LogOffset:
    return task.start.position.at


@dataclass(frozen=True, slots=True)
class BornRows:
    """The rows of a table that a log made, up to the place where its task ends; None where there are none."""

    table: TableId
    output: Output | None


@dataclass(frozen=True, slots=True)
class BirthsReceipt:
    """What was read of the tables of a BirthsTask; of those that are not in it a task of their own is to tell."""

    shard: str
    told: tuple[BornRows, ...]


Task = SegmentTask | ChunkTask
Receipt = SegmentReceipt | ChunkReceipt | BirthsReceipt | Failed
