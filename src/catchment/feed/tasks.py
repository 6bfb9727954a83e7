"""The tasks that carry out a plan: one for the log of each shard that has moved, then one for each group of chunks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from catchment.epoch.work import ChunkTask, SegmentTask, Target, Task, Writer
from catchment.model.chunk import Chunk, Progress
from catchment.model.epoch import Manifest, Plan
from catchment.model.source import Endpoint
from catchment.model.table import TableId


@dataclass(frozen=True)
class TaskMaker:
    """What the tasks of all epochs of a run have in common. `image_bytes` is as `ChunkTask` has it."""

    endpoints: Mapping[str, Endpoint]
    writer: Writer
    evolves: bool
    image_bytes: int

    def of(
        self,
        previous: Manifest,
        plan: Plan,
        groups: Sequence[tuple[Chunk, ...]],
        attempt: str,
        unmoved: Collection[str] = (),
    ) -> list[Task]:
        """The tasks of the epoch after `previous`, in the order of `endpoints`, without those of `unmoved` shards, and
        of `groups`."""
        target = Target(self.writer, tuple(self.endpoints), plan.epoch, attempt)
        return [
            *self._segments(previous, plan, target, unmoved),
            *(self._copy(previous, plan, group, target) for group in groups),
        ]

    def _segments(
        self, previous: Manifest, plan: Plan, target: Target, unmoved: Collection[str]
    ) -> list[SegmentTask]:
        copying: dict[str, dict[TableId, Progress]] = {}
        for progress in previous.progress:
            if not progress.done:
                copying.setdefault(progress.shard, {})[progress.table] = progress
        everywhere = len(target.shards)
        # A task takes all shards to have a table that is not named: naming them to each shard is quadratic.
        whole = len(previous.progress) == len(previous.shapes) * everywhere
        holders = {} if whole else previous.holders
        apart = {table: shards for table, shards in holders.items() if len(shards) < everywhere}
        return [
            SegmentTask(
                endpoint=endpoint,
                start=previous.cut[shard],
                sealed=previous.sealed.get(shard),
                stop=plan.tick.offsets[shard],
                shapes=previous.shapes,
                progress=copying.get(shard, {}),
                target=target,
                definitions=previous.definitions.get(shard, ()),
                holders=apart,
                evolves=self.evolves,
            )
            for shard, endpoint in self.endpoints.items()
            if shard not in unmoved
        ]

    def _copy(self, previous: Manifest, plan: Plan, group: tuple[Chunk, ...], target: Target) -> ChunkTask:
        shard, tables = group[0].shard, {chunk.table for chunk in group}
        return ChunkTask(
            endpoint=self.endpoints[shard],
            server=previous.cut[shard].server,
            floor=plan.floors[shard],
            epoch_at=plan.tick.offsets[shard],
            chunks=group,
            shapes=tuple(shape for shape in previous.shapes if shape.table in tables),
            target=target,
            prepared=previous.cut[shard].prepared,
            definitions=previous.definitions.get(shard, ()),
            image_bytes=self.image_bytes,
        )
