"""Tasks that compare chunks of the shards with the lake, and those that mend it by the way."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catchment.epoch.work import ChunkTask, Nowhere, Target
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.source import Endpoint
from catchment.readers.verify import VerifyTask
from catchment.sink.port import Sink


@dataclass(frozen=True)
class Comparisons:
    """What the comparisons of a feed have in common. `mask_key`: for columns whose values become HMACs."""

    endpoints: Mapping[str, Endpoint]
    sink: Sink
    mask_key: MaskKey | None

    def task(self, row: EpochRow, standing: Manifest, chunks: tuple[Chunk, ...]) -> VerifyTask:
        """Compare chunks of one shard with the lake as of `row`. `standing`: the same epoch, of which more may be
        proven visible since. Raises SinkError."""
        shard, tables = chunks[0].shard, {chunk.table for chunk in chunks}
        state = standing.cut.shards[shard]
        copy = ChunkTask(
            endpoint=self.endpoints[shard],
            state=state,
            floor=state.floor,
            epoch_at=state.position.at,
            chunks=chunks,
            shapes=tuple(shape for shape in standing.shapes if shape.table in tables),
            target=Target(Nowhere(), tuple(self.endpoints), standing.epoch, "verify"),
            mask_key=self.mask_key,
        )
        return VerifyTask(copy, {table: self.sink.reader(row, table) for table in tables})

    def mending(
        self, row: EpochRow, standing: Manifest, chunks: tuple[Chunk, ...], *, epoch: int, attempt: str
    ) -> VerifyTask:
        """The same, and write the differences as changes of a later epoch that ends where this one does."""
        task = self.task(row, standing, chunks)
        target = Target(self.sink.writer, tuple(self.endpoints), epoch, attempt)
        return replace(task, copy=replace(task.copy, target=target), mends=True)
