"""The tasks that carry out a plan: one for the log of each shard that has moved, and one for each group of chunks."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from operator import is_

from catchment.epoch.work import ChunkTask, SegmentTask, StagedGroup, Target, Writer
from catchment.feed.policies import Policies
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.epoch import Manifest, Plan, TableShape
from catchment.model.foreign_key import above
from catchment.model.position import LogOffset
from catchment.model.shard import Copies
from catchment.model.source import Endpoint
from catchment.model.table import TableId

# Where something stands that orders set aside, by shard.
Aside = Callable[[], Mapping[str, frozenset[LogOffset]]]


class Apart:
    """The tables that not all shards have, with those that do. They are gathered again where some shard has others."""

    def __init__(self) -> None:
        self._known: list[Copies] = []
        self._apart: dict[TableId, tuple[str, ...]] = {}

    def of(self, manifest: Manifest) -> dict[TableId, tuple[str, ...]]:
        """Those of an epoch. Shadow tables are among them."""
        states = manifest.cut.shards
        copies = [state.known for state in states.values()]
        if len(copies) != len(self._known) or not all(map(is_, copies, self._known)):
            self._known, self._apart = copies, {}
            # To name each shard for a table that all have would be quadratic.
            if sum(map(len, copies)) != len(manifest.shapes) * len(states):
                everywhere = len(states)
                self._apart = {t: s for t, s in manifest.holders.items() if len(s) < everywhere}
        return {**self._apart, **{one.table: one.shards for one in manifest.shadows}}


@dataclass(frozen=True)
class TaskMaker:
    """What the tasks of all epochs of a run have in common. `aside`: asked for each epoch."""

    endpoints: Mapping[str, Endpoint]
    writer: Writer
    policies: Policies
    mask_key: MaskKey | None = None
    aside: Aside = dict
    apart: Apart = field(default_factory=Apart)

    def segments(
        self, previous: Manifest, plan: Plan, attempt: str, unmoved: Collection[str] = ()
    ) -> list[SegmentTask]:
        """The tasks that read the log after `previous`, of the shards in the plan's tick without `unmoved` ones."""
        target = self._target(plan, attempt)
        states, aside, apart = previous.cut.shards, self.aside(), self.apart.of(previous)
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
            shapes=_of(previous, tables),
            target=target,
            mask_key=self.mask_key,
            parents=_of(previous, parents),
            staged=staged,
        )


def _of(manifest: Manifest, tables: Collection[TableId]) -> tuple[TableShape, ...]:
    """The shapes of some tables, those that it has."""
    known = manifest.known.by_table
    return tuple(known[table] for table in sorted(tables) if table in known)
