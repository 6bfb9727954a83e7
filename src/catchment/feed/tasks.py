"""The tasks that carry out a plan: one for the log of each shard that has moved, and one for each group of chunks."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from catchment.epoch.work import ChunkTask, SegmentTask, StagedGroup, Target, Writer
from catchment.feed.policies import Policies
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.epoch import Manifest, Plan
from catchment.model.foreign_key import above
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint

# Where something stands that orders set aside, by shard.
Aside = Callable[[], Mapping[str, frozenset[LogOffset]]]


@dataclass(frozen=True)
class TaskMaker:
    """What the tasks of all epochs of a run have in common. `aside`: asked for each epoch."""

    endpoints: Mapping[str, Endpoint]
    writer: Writer
    policies: Policies
    mask_key: MaskKey | None = None
    aside: Aside = dict

    def segments(
        self, previous: Manifest, plan: Plan, attempt: str, unmoved: Collection[str] = ()
    ) -> list[SegmentTask]:
        """The tasks that read the log after `previous`, of the shards in the plan's tick without `unmoved` ones."""
        target = self._target(plan, attempt)
        states = previous.cut.shards
        everywhere = len(target.shards)
        # A task takes all shards to have a table that is not named: naming them to each shard is quadratic.
        whole = sum(len(state.copies) for state in states.values()) == len(previous.shapes) * everywhere
        whole = whole and not previous.shadows
        holders = {} if whole else previous.holders
        apart = {table: shards for table, shards in holders.items() if len(shards) < everywhere}
        aside = self.aside()
        changes = self.policies.of(previous.shapes).following(one.table for one in previous.shadows)
        return [
            SegmentTask(
                endpoint=endpoint,
                start=states[shard].unfinished,
                stop=plan.tick.offsets[shard],
                shapes=previous.followed,
                target=target,
                holders=apart,
                changes=changes,
                mask_key=self.mask_key,
                aside=aside.get(shard, frozenset()),
            )
            for shard, endpoint in self.endpoints.items()
            if shard in plan.tick.offsets and shard not in unmoved
        ]

    def copies(
        self,
        previous: Manifest,
        plan: Plan,
        groups: Mapping[tuple[Chunk, ...], StagedGroup | None],
        attempt: str,
    ) -> list[ChunkTask]:
        """The tasks that read groups of chunks, in their order; some may be staged."""
        target = self._target(plan, attempt)
        return [self._copy(previous, plan, group, target, staged) for group, staged in groups.items()]

    def _target(self, plan: Plan, attempt: str) -> Target:
        return Target(self.writer, tuple(self.endpoints), plan.epoch, attempt)

    def _copy(
        self,
        previous: Manifest,
        plan: Plan,
        group: tuple[Chunk, ...],
        target: Target,
        staged: StagedGroup | None,
    ) -> ChunkTask:
        shard, tables = group[0].shard, frozenset(chunk.table for chunk in group)
        parents = above(previous.cut.shards[shard].keys or (), tables) - tables
        return ChunkTask(
            endpoint=self.endpoints[shard],
            state=previous.cut.shards[shard].unfinished,
            floor=plan.floors[shard] if staged is None else staged.floor,
            epoch_at=plan.tick.offsets[shard],
            chunks=group,
            shapes=tuple(shape for shape in previous.shapes if shape.table in tables),
            target=target,
            mask_key=self.mask_key,
            parents=tuple(shape for shape in previous.shapes if shape.table in parents),
            staged=staged,
        )
