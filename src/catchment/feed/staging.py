"""The step in front of a tick: rows that have to be SELECTed in front of the cut are read here. Those are all rows of
the strategies that work so, and of any strategy those that foreign keys change in no log.

    plan chunks -> SELECT and stage -> cut -> plan -> read -> manifest

Rows that are staged belong to one turn. Whatever ends it before its manifest loses them, and they are read again.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from catchment import world
from catchment.engine.port import Engine
from catchment.epoch.staging import StageReceipt, StageTask
from catchment.epoch.work import ChunkReceipt, Failed, Stage, StagedGroup
from catchment.feed.clock import Clock
from catchment.feed.planner import Planner
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import Manifest
from catchment.model.errors import CutMissed, SinkError, SourceError
from catchment.model.source import Endpoint
from catchment.model.strategy import Strategy
from catchment.model.table import ShardTable, TableId
from catchment.readers.stage import run_stage
from catchment.source.marks import marks_session, remove_marks

Group = tuple[Chunk, ...]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Copying:
    """How a feed copies rows: by which strategy, to which table its marks go, and with which key columns are masked."""

    feed: str
    strategy: Strategy
    marks: TableId
    mask_key: MaskKey | None = None


@dataclass(frozen=True)
class Ahead:
    """What was read in front of a cut: by group what is staged, or why nothing is; None: it is to be read behind the
    cut. That is a tick beyond tick `after` that the clock tried to take `since` then (steady seconds)."""

    groups: Mapping[Group, StagedGroup | Failed | None]
    after: int
    since: float

    @property
    def readable(self) -> dict[Group, StagedGroup | None]:
        """The groups that did not fail."""
        return {group: one for group, one in self.groups.items() if not isinstance(one, Failed)}

    def with_failed(
        self, copies: Mapping[Group, ChunkReceipt | Failed]
    ) -> dict[Group, ChunkReceipt | Failed]:
        """What became of all groups, in their order: of a table nothing counts behind a group that failed."""
        found: dict[Group, ChunkReceipt | Failed] = {}
        for group, one in self.groups.items():
            if isinstance(one, Failed):
                found[group] = one
            elif group in copies:
                found[group] = copies[group]
        return found


class Staging:
    """Stages the rows of one loop. `attempt`: the names of staged rows begin so."""

    def __init__(
        self,
        copying: Copying,
        endpoints: Mapping[str, Endpoint],
        planner: Planner,
        clock: Clock,
        engine: Engine,
        stage: Stage,
        attempt: str,
    ) -> None:
        self._copying = copying
        self._endpoints = endpoints
        self._planner = planner
        self._clock = clock
        self._engine = engine
        self._stage = stage
        self._attempt = f"{copying.feed}-{attempt}"
        # Marks of an earlier run may stand there.
        self._marked = set(endpoints) if copying.strategy is Strategy.WATERMARK else set()

    def ahead(self, previous: Manifest, timeout: float) -> Ahead | None:
        """What is read in front of the next cut; None where all is read behind it, or there is nothing to copy.

        Raises as the clock, the planner and the engine.
        """
        rewinds = self._copying.strategy is Strategy.REWIND
        children = _children(previous.cut) if rewinds else frozenset()
        if rewinds and not children:
            return None
        if self._marked:
            self._clean_up(previous.cut)
        if previous.cut.idle:
            return None
        tick = self._clock.after(previous.epoch, timeout)
        groups = self._planner.groups(previous.cut, previous.shapes, tick) if tick is not None else []
        staged = [group for group in groups if not rewinds or any(chunk.of in children for chunk in group)]
        tasks = [self._task(previous, group) for group in staged]
        receipts = self._engine.each(run_stage, tasks) if tasks else []
        known = {
            group: self._known(previous, receipt) for group, receipt in zip(staged, receipts, strict=True)
        }
        found = {group: known.get(group) for group in groups}
        return Ahead(found, max(previous.epoch, self._clock.number), world.steady_seconds())

    def tick(self, ahead: Ahead, timeout: float) -> Tick | None:
        """A cut behind the SELECTs; None at the timeout."""
        return self._clock.after(ahead.after, timeout, since=ahead.since)

    def let_go(self, ahead: Ahead) -> None:
        """The turn is over: its rows are in the files of an epoch, or are read again."""
        staged = [group for group in ahead.groups.values() if isinstance(group, StagedGroup)]
        names = [table.name for group in staged for table in group.tables]
        try:
            self._stage.remove(names)
        except SinkError as error:
            _log.warning("staged rows stay until the lake is cleaned: %s", error)

    def _task(self, previous: Manifest, group: Group) -> StageTask:
        shard, tables = group[0].shard, {chunk.table for chunk in group}
        state = previous.cut.shards[shard]
        if self._copying.strategy is Strategy.WATERMARK:
            self._marked.add(shard)
        return StageTask(
            endpoint=self._endpoints[shard],
            server=state.position.server,
            strategy=self._copying.strategy,
            chunks=group,
            shapes=tuple(shape for shape in previous.shapes if shape.table in tables),
            stage=self._stage,
            name=self._attempt,
            feed=self._copying.feed,
            marks=self._copying.marks,
            sealed=state.sealed,
            at=state.position.at,
            at_once=any(key.child == key.parent and key.child in tables for key in state.keys or ()),
            mask_key=self._copying.mask_key,
        )

    def _known(self, previous: Manifest, receipt: StageReceipt | Failed) -> StagedGroup | Failed:
        if isinstance(receipt, Failed):
            return receipt
        floor = receipt.evidence.floor(previous.cut.shards[receipt.shard])
        if floor is None:
            return Failed(receipt.shard, CutMissed(f"shard {receipt.shard}: nothing is proven visible"))
        return StagedGroup(
            self._stage, floor, receipt.tables, receipt.refused, receipt.evidence, self._copying.marks
        )

    def _clean_up(self, cut: Cut) -> None:
        """Take the feed's row of marks away where all rows are copied."""
        for shard in [shard for shard in self._marked if cut.shards[shard].copied]:
            self._marked.remove(shard)
            try:
                with marks_session(self._endpoints[shard]) as session:
                    remove_marks(session, self._copying.marks, self._copying.feed)
            except SourceError as error:
                _log.warning("shard %s: a row of %s stays: %s", shard, self._copying.marks, error)


def _children(cut: Cut) -> frozenset[ShardTable]:
    """The tables with rows to copy that foreign keys change in no log."""
    return frozenset(
        ShardTable(shard, key.child)
        for shard, state in cut.shards.items()
        for key in state.keys or ()
        if key.child in state.copying
    )
