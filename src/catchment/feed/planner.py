"""Which chunks an epoch copies: sized by time, limited by the log behind their floor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from catchment.config import ThrottleConfig
from catchment.epoch.work import ChunkReceipt, ChunkTask
from catchment.feed.chunk_steps import FIRST_ROWS, Pace, Walk
from catchment.feed.throttle import Throttle
from catchment.model.budget import UNLIMITED, Allowance
from catchment.model.chunk import Chunk, chunk_key
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import TableShape
from catchment.model.errors import ConnectionLost, Diverged, OtherServer, Retry, SourceError
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, TableId
from catchment.source.offsets import log_bytes
from catchment.source.session import Session, connect

# What a group may cost, and a chunk at least, however small: each costs a few questions.
GROUP_COST, CHUNK_COST_MIN = 3.0, 0.015
# What a group may hold of the log behind it, as a multiple of the log that its floor may lie behind.
IMAGE_BUDGETS = 4
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
    `group_seconds`: what the SELECTs of a group take together; of less than a few chunks it has those."""

    chunk_seconds: float
    chunk_rows_max: int
    groups: int
    log_budget: int
    place_of: Callable[[TableId], int] = lambda table: 0
    marked: bool = False
    group_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a chunk was planned with."""

    rows: float = 0.0
    bytes: float = 0.0


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

    `sessions`: those that the run has, where their number has a ceiling.
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
        self._expected: dict[Chunk, _Expected] = {}

    def change(self, limits: Limits, throttle: ThrottleConfig) -> None:
        """Other limits from now on."""
        self._limits = limits
        self._throttle.change(throttle)
        for pace in self._paces.values():
            pace.rows = min(pace.rows, limits.chunk_rows_max)

    def close(self) -> None:
        """Ask no more whether shards bear the copy."""
        self._throttle.close()

    def turn(self, *, idle: bool) -> None:
        """A turn of the loop begins. `idle`: no rows are to be copied. Raises StateError, LeaseLost, StoppedWaiting."""
        if self._sessions is not None:
            self._sessions.turn(idle=idle, groups=self._limits.groups)

    def rest(self) -> None:
        """No row is to be copied now."""
        self.throttled = self._throttle.shut(())

    def groups(self, cut: Cut, shapes: Iterable[TableShape], tick: Tick) -> list[tuple[Chunk, ...]]:
        """Groups of chunks for the epoch behind `cut`. Within a table they follow one another from group to group."""
        by_table = {shape.table: shape for shape in shapes}
        groups = []
        lags: dict[str, int] = {}
        self.unplanned = {}
        self.held = {}
        self._shrunk = set()
        self._expected = {}
        copying = {s: state for s, state in cut.shards.items() if s in tick.offsets and not state.idle}
        self.throttled = self._throttle.shut(copying)
        for shard, state in copying.items():
            floor = state.position.at if self._limits.marked else state.sealed
            now = tick.offsets[shard]
            # Where the log stands still, so does the floor: a nearer one would never come.
            resting = now == state.position.at
            if floor is None:
                self.held[shard] = f"nothing of the log since is proven visible yet{_HELD_BACK}"
                continue
            with connect(self._endpoints[shard]) as session:
                lags[shard] = log_bytes(session, floor, now)
                # Beyond the budget a group would have to read too much log: then the log comes first.
                if lags[shard] > self._limits.log_budget and not resting:
                    self.held[shard] = _MUCH_LOG if self._limits.marked else _FAR_FLOOR
                    continue
                if shard not in self.throttled:
                    groups += self._deal(self._steps(session, shard, state, by_table), self._groups(shard))
        self.floor_lag = lags
        return groups

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
        self._refused -= {copied.chunk.of for copied in receipt.copied}
        refused = {chunk.of for chunk, _ in receipt.refused}
        self._refused |= refused
        for of in refused:
            self._pace(of).shrink()
        for copied in receipt.copied:
            expected = self._expected.get(copied.chunk, _Expected())
            rates = self._throttle.rates
            rates.take(receipt.shard, copied.rows - expected.rows, copied.bytes - expected.bytes)
            if copied.chunk.of in self._shrunk:
                continue
            pace = self._pace(copied.chunk.of)
            pace.learn(copied, self._limits.chunk_seconds, self._limits.chunk_rows_max)

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

    def _groups(self, shard: str) -> int:
        """How many groups of a shard are read at a time."""
        return self._limits.groups if self._sessions is None else self._sessions.groups(shard)

    def _pace(self, of: ShardTable) -> Pace:
        first = Pace(rows=min(FIRST_ROWS, self._limits.chunk_rows_max))
        return self._paces.setdefault(of, first)

    def _steps(
        self, session: Session, shard: str, state: ShardState, shapes: Mapping[TableId, TableShape]
    ) -> list[tuple[Chunk, int]]:
        """Chunks of one shard with the rows expected in each."""
        # A table whose chunks were refused comes behind the others: it may be locked.
        copies = sorted(
            (copy for copy in state.copying.values() if not copy.paused),
            key=lambda copy: (
                ShardTable(shard, copy.table) in self._refused,
                self._limits.place_of(copy.table),
            ),
        )
        budget = self._groups(shard) * GROUP_COST
        allowance = self._throttle.rates.allowance(shard)
        planned: list[tuple[Chunk, int]] = []
        for copy in copies:
            walk = self._walk(session, shard, copy, shapes[copy.table])
            while budget > 0 and not allowance.is_used_up:
                step = self._next(walk, allowance)
                if step is None:
                    break
                planned.append(step)
                of_group = walk.pace.of_group(self._limits.group_seconds)
                budget -= max(GROUP_COST * step[1] / of_group, CHUNK_COST_MIN)
                allowance = allowance.without(step[1], walk.pace.row_bytes)
                self._expect(step, walk.pace.row_bytes)
        return planned

    def _expect(self, step: tuple[Chunk, int], row_bytes: float) -> None:
        """Take what a chunk will copy from the rates. What is planned and not read stays taken: it may have been."""
        chunk, rows = step
        expected = self._expected[chunk] = _Expected(rows, rows * row_bytes)
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

    def _deal(self, chunks: list[tuple[Chunk, int]], count: int) -> list[tuple[Chunk, ...]]:
        """Contiguous runs of about equal numbers of rows, so many at most."""
        total = sum(rows for _, rows in chunks) or 1
        groups: list[list[Chunk]] = [[] for _ in range(count)]
        before = 0
        for chunk, rows in chunks:
            groups[min(int((before + rows / 2) * len(groups) / total), len(groups) - 1)].append(chunk)
            before += rows
        return [tuple(group) for group in groups if group]
