"""Which chunks an epoch copies: sized by time, limited by the log behind their floor."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from catchment import world
from catchment.config import ThrottleConfig
from catchment.epoch.standstill import Standstill
from catchment.epoch.work import ChunkReceipt, ChunkTask
from catchment.feed.chunk_steps import FIRST_ROWS, ROWS_MIN, Pace, Walk
from catchment.feed.pauses import Pauses
from catchment.feed.rationing import Rationing
from catchment.feed.throttle import Throttle
from catchment.model.budget import UNLIMITED, Allowance
from catchment.model.chunk import Chunk, chunk_key
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import TableShape
from catchment.model.errors import ConnectionLost, Diverged, OtherServer, Retry, SourceError
from catchment.model.position import LogOffset
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, TableId
from catchment.source.each_shard import each_shard
from catchment.source.offsets import log_bytes
from catchment.source.session import Session, connect

# What a group may cost, and a chunk at least, however small: each costs a few questions.
GROUP_COST, CHUNK_COST_MIN = 3.0, 0.015
# What a group may hold of the log behind it, as a multiple of the log that its floor may lie behind.
IMAGE_BUDGETS = 4
# Rows of a table that is its own parent, which a task of the run holds at once.
TREE_ROWS_MAX = 1_000_000
# Why a floor may lag for long even when the feed has caught up with the log.
_HELD_BACK = (
    "; transactions that XA RECOVER lists there, or that wait for a replica, hold it back until they end"
)
_FAR_FLOOR = f"what is proven visible lies more log behind than copy.log_budget{_HELD_BACK}"
_MUCH_LOG = "more log waits to be read than copy.log_budget, and the log comes first"


@dataclass(frozen=True)
class Limits:
    """`chunk_seconds`: aim for one SELECT. `groups`: per shard. `log_budget`: bytes of log behind a floor. `place_of`:
    tables of a lower place are copied first. `marked`: floors are the cuts before, which marks prove visible.
    `group_seconds`: what the SELECTs of a group take together; of less than a few chunks it has those. `trees`: tables
    that are their own parents are copied in one group, if they have so many rows at most."""

    chunk_seconds: float
    chunk_rows_max: int
    groups: int
    log_budget: int
    place_of: Callable[[TableId], int] = lambda table: 0
    marked: bool = False
    group_seconds: float = 0.0
    trees: int = 0


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a chunk was planned with. `group_rows`: those of its table in a full group."""

    rows: float = 0.0
    bytes: float = 0.0
    group_rows: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """A chunk that is planned, the rows that are expected in it, and what it takes of the GROUP_COST of a group."""

    chunk: Chunk
    rows: int
    cost: float


@dataclass(frozen=True, slots=True)
class _Planned:
    """What was planned of one shard. `held`: why no chunk was; `status` shows it. `lag`: bytes of log after its floor.
    `trees`: groups that are whole tables."""

    held: str = ""
    lag: int | None = None
    steps: Sequence[_Step] = ()
    trees: Sequence[tuple[Chunk, ...]] = ()


class Shares(Protocol):
    """The sessions that the run has, where their number has a ceiling."""

    def turn(self, *, idle: bool, groups: int) -> None:
        """A turn of the loop begins. `idle`: no rows are to be copied, else so many `groups` at a time."""
        ...

    def groups(self, shard: str) -> int:
        """So many groups of chunks of a shard are read at a time."""
        ...


class Planner:
    """Keeps the pace of every table and deals chunks to groups; not thread-safe.

    `floor_lag`: bytes of log from the floor to the newest tick, of shards with rows to copy; replaced whole, so that
    another thread may look. `unplanned`: what kept tables without a further chunk in the newest plan, though it was
    asked for one. `held`: by shard with rows to copy, why none was asked for. `throttled`: the shards that wait for the
    source's sake.

    `sessions`: those that the run has, where their number has a ceiling. `standstill`: tables whose chunks are refused.
    They are planned again after pauses, and `waiting` says whether the newest plan left one out for that.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        limits: Limits,
        throttle: Throttle | None = None,
        sessions: Shares | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._limits = limits
        self._sessions = sessions
        self._throttle = throttle or Throttle()
        self._paces: dict[ShardTable, Pace] = {}
        self._refused: set[ShardTable] = set()
        self._shrunk: set[ShardTable] = set()
        self.floor_lag: dict[str, int] = {}
        self.unplanned: dict[ShardTable, SourceError] = {}
        self.held: dict[str, str] = {}
        self.throttled: frozenset[str] = frozenset()
        self.standstill = Standstill()
        self._pauses = Pauses()
        self.waiting = False
        self._expected: dict[Chunk, _Expected] = {}
        self._rationing = Rationing()
        self._interval: float | None = None
        self._began, self._given, self._dealt = 0.0, 1.0, 0.0
        # What was read since the newest plan, in full groups of then and of now.
        self._groups_then = self._groups_now = 0.0

    def change(self, limits: Limits, throttle: ThrottleConfig) -> None:
        """Other limits from now on."""
        self._limits = limits
        self._throttle.change(throttle)
        for pace in self._paces.values():
            pace.rows = min(pace.rows, limits.chunk_rows_max)

    def close(self) -> None:
        """Ask no more whether shards bear the copy."""
        self._throttle.close()

    def turn(self, *, idle: bool, interval: float) -> None:
        """A turn of the loop begins. `idle`: no rows are to be copied. `interval`: seconds between two epochs that copy
        nothing. Raises StateError, LeaseLost, StoppedWaiting."""
        self._interval = interval
        if self._sessions is not None:
            self._sessions.turn(idle=idle, groups=self._limits.groups)

    def rest(self) -> None:
        """No row is to be copied now."""
        self.floor_lag = {}
        self.throttled = self._throttle.shut(())

    def groups(self, cut: Cut, shapes: Iterable[TableShape], tick: Tick) -> list[tuple[Chunk, ...]]:
        """Groups of chunks for the epoch behind `cut`. Within a table they follow one another from group to group."""
        self._began = world.steady_seconds()
        self.unplanned = {}
        self.waiting = False
        self._shrunk = set()
        self._expected = {}
        copying = {s: state for s, state in cut.shards.items() if s in tick.offsets and not state.idle}
        self.throttled = self._throttle.shut(copying)
        self._groups_then = self._groups_now = 0.0
        by_table = {shape.table: shape for shape in shapes} if copying else {}
        self._given = self._share_beside(cut, by_table)
        counts = {shard: self._groups(shard) for shard in copying}

        def plan(shard: str) -> _Planned:
            return self._planned(shard, copying[shard], by_table, tick.offsets[shard], counts[shard])

        planned = each_shard(copying, plan)
        self.held = {shard: one.held for shard, one in planned.items() if one.held}
        self.floor_lag = {shard: one.lag for shard, one in planned.items() if one.lag is not None}
        dealt = sum(sum(s.cost for s in one.steps) / counts[shard] for shard, one in planned.items())
        self._dealt = dealt / GROUP_COST / max(len(copying), 1)
        return [
            group
            for shard, one in planned.items()
            for group in (*one.trees, *self._deal(one.steps, counts[shard]))
        ]

    def read(self) -> None:
        """The epoch of the newest plan is read: learn from what it took. Call it behind `learn`."""
        self._rationing.learn(self._given, self._dealt, world.steady_seconds() - self._began)
        if self._groups_now:
            self._rationing.have_grown(self._groups_then / self._groups_now)

    def take_in(self, before: Cut, after: Cut, refused: Sequence[tuple[Chunk, str]]) -> None:
        """Take in the epoch of the newest plan: the cuts before and after it, and the chunks that were refused."""
        self._paces = {of: pace for of, pace in self._paces.items() if _has(after, of)}
        unplanned = {of: str(error) for of, error in self.unplanned.items()}
        self.standstill.count(before, after, refused, unplanned, self.held)
        self._pauses.take(self.standstill.refused)

    def all_chunks(self, shard: str, copy: Copy, shape: TableShape) -> tuple[Chunk, ...]:
        """Every remaining chunk of a table on one shard, for a caller that reads the table as a whole. None when the
        server refuses to say where one ends (`unplanned`)."""
        chunks: list[Chunk] = []
        with connect(self._endpoints[shard]) as session:
            walk = self._walk(session, shard, copy, shape)
            while (step := self._next(walk)) is not None:
                chunks.append(step[0])
        return tuple(chunks) if chunks and chunks[-1].last else ()

    def raise_refused(self) -> None:
        """Raise what kept a table out of the newest plan and would again; for callers that read no log meanwhile."""
        for error in self.unplanned.values():
            if error.retry is Retry.NEVER:
                raise error

    @property
    def image_bytes(self) -> int:
        """How much a group may hold of what the log behind it says of its keys."""
        return IMAGE_BUDGETS * self._limits.log_budget

    @property
    def shrunk(self) -> bool:
        """Whether chunks of the newest plan were too large, and can become smaller still."""
        return any(self._pace(of).wanted() > 1 for of in self._shrunk)

    def is_least(self, group: Sequence[Chunk]) -> bool:
        """Whether smaller chunks than these cannot be asked for."""
        return all(self._pace(chunk.of).wanted() == 1 for chunk in group)

    def shrink(self, group: Sequence[Chunk]) -> None:
        """Make the chunks of a group that was too large smaller; they grow again with those of later epochs.

        Call it before `learn`, which then takes nothing of these tables from other groups of the same epoch: theirs had
        few changes.
        """
        for of in {chunk.of for chunk in group}:
            self._shrunk.add(of)
            self._pace(of).halve()

    def learn(self, receipt: ChunkReceipt) -> None:
        """Take the pace of the chunks that were read, and which tables' were refused."""
        self.shrink([chunk for chunk, _ in receipt.refused if chunk.table in receipt.crowded])
        self._refused -= {copied.chunk.of for copied in receipt.copied}
        refused = {chunk.of for chunk, _ in receipt.refused}
        self._refused |= refused
        for of in refused - self._shrunk:
            self._pace(of).shrink()
        for copied in receipt.copied:
            expected = self._expected.get(copied.chunk, _Expected())
            rates = self._throttle.rates
            rates.take(receipt.shard, copied.rows - expected.rows, copied.bytes - expected.bytes)
            if copied.chunk.of in self._shrunk:
                continue
            pace = self._pace(copied.chunk.of)
            pace.learn(copied, self._limits.chunk_seconds, self._limits.chunk_rows_max)
            if expected.group_rows:
                self._groups_then += copied.rows / expected.group_rows
                self._groups_now += copied.rows / pace.of_group(self._limits.group_seconds)

    def bounded(self, task: ChunkTask) -> ChunkTask:
        """The task with the memory that it may take. Chunks of a table that was refused are read from near by."""
        return replace(task, image_bytes=self.image_bytes, nearest=self.were_refused(task.chunks))

    def were_refused(self, chunks: Iterable[Chunk]) -> bool:
        """Whether chunks of one of these tables were refused when they were read last."""
        return any(chunk.of in self._refused for chunk in chunks)

    def give_back(self, chunks: Iterable[Chunk]) -> None:
        """What these chunks took from the rates: they are not read."""
        for chunk in chunks:
            expected = self._expected.pop(chunk, _Expected())
            self._throttle.rates.take(chunk.shard, -expected.rows, -expected.bytes)

    def _planned(
        self,
        shard: str,
        state: ShardState,
        shapes: Mapping[TableId, TableShape],
        now: LogOffset,
        groups: int,
    ) -> "_Planned":
        """What an epoch copies of one shard; others are planned meanwhile. `now`: where its log stands."""
        floor = state.position.at if self._limits.marked else state.sealed
        if floor is None:
            return _Planned(f"nothing of the log since is proven visible yet{_HELD_BACK}")
        # Where the log stands still, so does the floor: a nearer one would never come.
        resting = now == state.position.at
        with connect(self._endpoints[shard]) as session:
            lag = log_bytes(session, floor, now)
            # Beyond the budget a group would have to read too much log: then the log comes first.
            if lag > self._limits.log_budget and not resting:
                return _Planned(_MUCH_LOG if self._limits.marked else _FAR_FLOOR, lag)
            if shard in self.throttled:
                return _Planned(lag=lag)
            trees = self._trees(session, shard, state, shapes)
            steps = self._steps(session, shard, state.without(trees), shapes, groups, self._given)
            return _Planned("", lag, steps, tuple(trees.values()))

    def _share_beside(self, cut: Cut, shapes: Collection[TableId]) -> float:
        """The part of full groups that an epoch copies: less than all where a table is followed, and read up to now."""
        copying = {copy.table for state in cut.shards.values() for copy in state.copying.values()}
        if self._interval is None or copying.issuperset(shapes):
            return 1.0
        return self._rationing.within(self._interval)

    def _groups(self, shard: str) -> int:
        """How many groups of a shard are read at a time."""
        return self._limits.groups if self._sessions is None else self._sessions.groups(shard)

    def _pace(self, of: ShardTable) -> Pace:
        first = Pace(rows=min(FIRST_ROWS, self._limits.chunk_rows_max))
        return self._paces.setdefault(of, first)

    def _trees(
        self, session: Session, shard: str, state: ShardState, shapes: Mapping[TableId, TableShape]
    ) -> dict[TableId, tuple[Chunk, ...]]:
        """All chunks of tables that are their own parents, if they are small and nothing of them is copied: which rows
        go with others is known where all are copied, or none."""
        found = {}
        trees = {key.child for key in state.keys or () if key.child == key.parent}
        for copy in state.copying.values() if self._limits.trees else ():
            bare = copy == Copy(copy.table, rows_expected=copy.rows_expected)
            if copy.table not in trees or not bare or self._waits(shard, copy):
                continue
            walk, rows = self._walk(session, shard, copy, shapes[copy.table]), 0
            chunks: list[Chunk] = []
            while rows <= self._limits.trees and (step := self._next(walk)) is not None:
                chunks.append(step[0])
                rows += step[1]
                self._expect(*step, walk)
            if chunks and chunks[-1].last:
                found[copy.table] = tuple(chunks)
            else:
                self.give_back(chunks)
        return found

    def _steps(
        self,
        session: Session,
        shard: str,
        state: ShardState,
        shapes: Mapping[TableId, TableShape],
        groups: int,
        share: float,
    ) -> list[_Step]:
        """Chunks of one shard, for so many groups, each with a `share` of what a full one has."""
        # A table whose chunks were refused comes behind the others: it may be locked.
        copies = sorted(
            (copy for copy in state.copying.values() if not copy.paused and not self._waits(shard, copy)),
            key=lambda copy: (
                ShardTable(shard, copy.table) in self._refused,
                self._limits.place_of(copy.table),
            ),
        )
        budget = groups * share * GROUP_COST
        allowance = self._throttle.rates.allowance(shard)
        planned: list[_Step] = []
        for copy in copies:
            walk = self._walk(session, shard, copy, shapes[copy.table])
            while budget >= CHUNK_COST_MIN and not allowance.is_used_up:
                rows_max = self._of_group(walk) * min(share, budget / GROUP_COST)
                step = self._next(walk, allowance.at_most(max(rows_max, ROWS_MIN)))
                if step is None:
                    break
                chunk, rows = step
                # Before its first step a walk knows nothing of the length of rows.
                cost = max(GROUP_COST * rows / self._of_group(walk), CHUNK_COST_MIN)
                planned.append(_Step(chunk, rows, cost))
                budget -= cost
                allowance = allowance.without(rows, walk.pace.row_bytes)
                self._expect(chunk, rows, walk)
        return planned

    def _waits(self, shard: str, copy: Copy) -> bool:
        waits = self._pauses.waits(ShardTable(shard, copy.table))
        if waits:
            self.waiting = True
        return waits

    def _of_group(self, walk: Walk) -> int:
        """Rows of the walk's table in a full group."""
        return walk.pace.of_group(self._limits.group_seconds)

    def _expect(self, chunk: Chunk, rows: int, walk: Walk) -> None:
        """Take what a chunk will copy from the rates. What is planned and not read stays taken: it may have been."""
        expected = _Expected(rows, rows * walk.pace.row_bytes, self._of_group(walk))
        self._expected[chunk] = expected
        self._throttle.rates.take(chunk.shard, expected.rows, expected.bytes)

    def _walk(self, session: Session, shard: str, copy: Copy, shape: TableShape) -> Walk:
        return Walk(
            session, shard, copy, chunk_key(shape.definition), self._pace(ShardTable(shard, copy.table))
        )

    def _next(self, walk: Walk, allowance: Allowance = UNLIMITED) -> tuple[Chunk, int] | None:
        """The walk's next chunk; None also when the server refuses it. The log of this epoch may say why: a DROP, a key
        renamed. Of a table that is locked or slow now, a later epoch asks again, for fewer rows.
        """
        try:
            return walk.step(allowance)
        except (ConnectionLost, Diverged, OtherServer):
            raise
        except SourceError as error:
            if error.retry is Retry.SAME:
                walk.pace.shrink()
            self.unplanned[walk.of] = error
            return None

    def _deal(self, steps: Sequence[_Step], count: int) -> list[tuple[Chunk, ...]]:
        """Contiguous runs of about equal numbers of rows, so many at most."""
        total = sum(step.rows for step in steps) or 1
        groups: list[list[Chunk]] = [[] for _ in range(count)]
        before = 0
        for step in steps:
            number = min(int((before + step.rows / 2) * count / total), count - 1)
            groups[number].append(step.chunk)
            before += step.rows
        return [tuple(group) for group in groups if group]


def _has(cut: Cut, of: ShardTable) -> bool:
    """Whether a shard has a table there."""
    state = cut.shards.get(of.shard)
    return state is not None and of.table in state.known.tables
