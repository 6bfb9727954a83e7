"""Tasks that compare chunks of the shards with the lake, and those that mend it by the way."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catchment.epoch.work import ChunkTask, Failed, Nowhere, Target
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.foreign_key import above
from catchment.model.order import Order
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.strays import StrayTask, find_strays
from catchment.readers.verify import VerifyReceipt, VerifyTask, verify_chunks
from catchment.sink.port import Sink


@dataclass(frozen=True)
class Comparisons:
    """What the comparisons of a feed have in common. `mask_key`: for columns whose values become HMACs."""

    endpoints: Mapping[str, Endpoint]
    sink: Sink
    mask_key: MaskKey | None

    def task(
        self, row: EpochRow, standing: Manifest, chunks: tuple[Chunk, ...], *, nearest: bool = False
    ) -> VerifyTask:
        """Compare chunks of one shard with the lake as of `row`. `standing`: the same epoch, of which more may be
        proven visible since. `nearest`: as `ChunkTask` has it. Raises SinkError."""
        shard, tables = chunks[0].shard, frozenset(chunk.table for chunk in chunks)
        state = standing.cut.shards[shard]
        parents = above(state.keys or (), tables) - tables
        children = (tables | parents) & {key.child for key in state.keys or ()}
        copy = ChunkTask(
            endpoint=self.endpoints[shard],
            state=state,
            floor=state.floor,
            epoch_at=state.position.at,
            chunks=chunks,
            shapes=tuple(shape for shape in standing.shapes if shape.table in tables),
            target=Target(Nowhere(), tuple(self.endpoints), standing.epoch, "verify"),
            mask_key=self.mask_key,
            parents=tuple(shape for shape in standing.shapes if shape.table in parents),
            nearest=nearest,
            lake={table: self.sink.reader(row, table) for table in children},
        )
        return VerifyTask(copy, {table: self.sink.reader(row, table) for table in tables})

    def strays(self, row: EpochRow, standing: Manifest, table: TableId) -> StrayTask:
        """Look for rows of a table under shards that do not have it. Raises SinkError."""
        return StrayTask(standing.shape(table), standing.holders[table], self.sink.reader(row, table))

    def mending(
        self,
        row: EpochRow,
        standing: Manifest,
        order: Order,
        *,
        epoch: int,
        attempt: str,
        again: bool = False,
    ) -> VerifyTask | StrayTask:
        """Compare what an order names, and write the differences as changes of a later epoch that ends where this one
        does. `again`: it failed before. Raises SinkError; ValueError for an order without a table."""
        target = Target(self.sink.writer, tuple(self.endpoints), epoch, attempt)
        if order.chunks:
            task = self.task(row, standing, order.chunks, nearest=again)
            return replace(task, copy=replace(task.copy, target=target), mends=True)
        if order.table is None:
            raise ValueError(f"{order} names no table")
        return replace(self.strays(row, standing, order.table), target=target)


def compare(task: VerifyTask | StrayTask) -> VerifyReceipt | Failed:
    """Carry out a task of either kind."""
    return verify_chunks(task) if isinstance(task, VerifyTask) else find_strays(task)
