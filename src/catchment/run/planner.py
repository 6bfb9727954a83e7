"""Which chunks an epoch copies: sized by time, limited by the log behind their floor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pymysql
from pymysql.connections import Connection

from catchment.flow.capture.bounds import key_after, newest_key, oldest_key
from catchment.flow.capture.connect import connect, pin
from catchment.model.chunk import Bound, Chunk, ChunkKey, Progress, chunk_key
from catchment.model.epoch import Manifest, TableShape, Tick
from catchment.model.errors import ServerSaid
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import INTEGERS, TableId
from catchment.spark.work import ChunkReceipt

FIRST_ROWS = 50_000
ROWS_MIN = 500
# SELECT time that one group of an epoch is dealt, as a multiple of a chunk's.
CHUNKS_PER_GROUP = 3
SPACING_GROWTH_MAX = 8.0
# Server errors: lock wait timeout exceeded, max_statement_time exceeded.
_WAITED_TOO_LONG = (1205, 1969)


@dataclass(frozen=True)
class Limits:
    """`chunk_seconds`: aim for one SELECT. `groups`: per shard. `log_budget`: bytes of log behind a floor."""

    chunk_seconds: float
    chunk_rows_max: int
    groups: int
    log_budget: int


@dataclass
class _Pace:
    """What chunks of a table on a shard have taught: rows per second, and how far apart integer keys lie."""

    rows: int = FIRST_ROWS
    spacing: float = 1.0
    known: bool = False


class Planner:
    """Keeps the pace of every table and deals chunks to groups; not thread-safe.

    `unplanned`: why tables have no further chunk in the newest plan, though it was asked for one.
    """

    def __init__(self, endpoints: Mapping[str, Endpoint], limits: Limits) -> None:
        self._endpoints = endpoints
        self._limits = limits
        self._paces: dict[tuple[str, TableId], _Pace] = {}
        self._failed: set[tuple[str, TableId]] = set()
        self.floor_lag: dict[str, int] = {}
        self.unplanned: dict[tuple[str, TableId], str] = {}

    def groups(self, manifest: Manifest, tick: Tick) -> list[tuple[Chunk, ...]]:
        """Groups of chunks for the next epoch; within a table they follow one another from group to group."""
        shapes = {shape.table: shape for shape in manifest.shapes}
        waiting: dict[str, list[Progress]] = {}
        for progress in manifest.progress:
            if not progress.done:
                waiting.setdefault(progress.shard, []).append(progress)
        groups = []
        self.unplanned = {}
        for shard, tables in waiting.items():
            # A table whose chunks failed, as a locked one's do, stands behind the others.
            tables.sort(key=lambda progress: (progress.shard, progress.table) in self._failed)
            floor, now = manifest.sealed.get(shard), tick.offsets[shard]
            # Where the log stands still the floor does: waiting for a nearer one would be for ever.
            resting = now == manifest.cut[shard].at
            if floor is None or (self._too_far(shard, floor, now) and not resting):
                continue
            groups += self._deal(self._shard(shard, tables, shapes))
        return groups

    def learn(self, receipt: ChunkReceipt) -> None:
        """Take the pace of the chunks that were read, and which tables' failed."""
        self._failed -= {(receipt.shard, copied.chunk.table) for copied in receipt.copied}
        self._failed |= {(receipt.shard, chunk.table) for chunk, _ in receipt.failed}
        for copied in receipt.copied:
            pace = self._pace(receipt.shard, copied.chunk.table)
            rate = copied.rows / max(copied.seconds, 0.001)
            wanted = int(rate * self._limits.chunk_seconds)
            pace.rows = min(max(wanted, ROWS_MIN, pace.rows // 2), pace.rows * 2, self._limits.chunk_rows_max)
            lo, hi = copied.chunk.lo, copied.chunk.hi
            if lo and hi and isinstance(lo[0], int) and isinstance(hi[0], int) and hi[0] > lo[0]:
                found = (hi[0] - lo[0]) / max(copied.rows, 1)
                pace.spacing = min(max(found, 1e-6), pace.spacing * SPACING_GROWTH_MAX)

    def _pace(self, shard: str, table: TableId) -> _Pace:
        first = _Pace(rows=min(FIRST_ROWS, self._limits.chunk_rows_max))
        return self._paces.setdefault((shard, table), first)

    def _too_far(self, shard: str, floor: LogOffset, now: LogOffset) -> bool:
        """Whether a group would have to read more log than its budget: then the log comes first."""
        behind = now.offset - floor.offset if now.file == floor.file else now.offset
        self.floor_lag[shard] = max(behind, 0)
        return behind > self._limits.log_budget

    def _shard(
        self, shard: str, tables: Sequence[Progress], shapes: Mapping[TableId, TableShape]
    ) -> list[tuple[Chunk, int]]:
        """Chunks of one shard with the rows expected in each."""
        budget = self._limits.groups * CHUNKS_PER_GROUP * 1.0
        planned: list[tuple[Chunk, int]] = []
        endpoint = self._endpoints[shard]
        connection = connect(endpoint)
        try:
            pin(connection, endpoint)
            for progress in tables:
                shape = shapes[progress.table]
                walk = _Walk(
                    connection,
                    endpoint,
                    progress,
                    chunk_key(shape.definition),
                    self._pace(shard, progress.table),
                )
                while budget > 0 and (step := self._next(walk, progress)) is not None:
                    planned.append(step)
                    budget -= max(step[1] / max(walk.pace.rows, 1), 0.05)
        finally:
            connection.close()
        return planned

    def _next(self, walk: "_Walk", progress: Progress) -> tuple[Chunk, int] | None:
        """The walk's next chunk; None also when the table is locked or slow now: a later epoch asks again."""
        try:
            return walk.step()
        except ServerSaid as error:
            if error.code not in _WAITED_TOO_LONG:
                raise
            self.unplanned[progress.shard, progress.table] = str(error)
            return None

    def _deal(self, chunks: list[tuple[Chunk, int]]) -> list[tuple[Chunk, ...]]:
        """Contiguous runs of about equal numbers of rows."""
        total = sum(rows for _, rows in chunks) or 1
        groups: list[list[Chunk]] = [[] for _ in range(self._limits.groups)]
        before = 0
        for chunk, rows in chunks:
            groups[min(int((before + rows / 2) * len(groups) / total), len(groups) - 1)].append(chunk)
            before += rows
        return [tuple(group) for group in groups if group]


class _Walk:
    """Steps through the keys of one table that are not copied yet."""

    def __init__(
        self,
        connection: "Connection[pymysql.cursors.Cursor]",
        endpoint: Endpoint,
        progress: Progress,
        key: ChunkKey,
        pace: _Pace,
    ) -> None:
        self._connection = connection
        self._endpoint = endpoint
        self._progress = progress
        self._key = key
        self.pace = pace
        self._at = self._lo = progress.copied
        self._ended = False
        self._arithmetic = key.ordered and key.columns[0].type.kind in INTEGERS
        self._end = progress.born_after
        self._unplanned = progress.rows_expected - progress.rows

    def step(self) -> tuple[Chunk, int] | None:
        """The next chunk and the rows expected in it; None after the last one."""
        if self._ended:
            return None
        rows = self.pace.rows
        hi = self._next_integer(rows) if self._arithmetic else self._next_walked(rows)
        last = hi is None
        # Without `born_after` the last chunk has no upper bound: rows born meanwhile are in it.
        end = self._progress.born_after if last else hi
        # The first chunk has no lower bound: a row below the smallest key of now may have stood there at the
        # cut.
        chunk = Chunk(self._progress.shard, self._progress.table, self._lo, end, last)
        self._lo = self._at = hi
        self._ended = last
        # By the estimate a small table takes a small part of an epoch, so that hundreds of them fit in one.
        expected = min(rows, max(self._unplanned, 1)) if last else rows
        self._unplanned -= expected
        return chunk, expected

    def _next_integer(self, rows: int) -> Bound | None:
        if self._at is None:
            first = oldest_key(self._connection, self._endpoint, self._progress.table, self._key)
            if first is None:
                return None
            self._at = (int(first[0]) - 1,)
        if self._end is None:
            self._end = newest_key(self._connection, self._endpoint, self._progress.table, self._key)
        if not self.pace.known:
            self.pace.known = True
            span = int(self._end[0]) - int(self._at[0]) if self._end else 0
            self.pace.spacing = max(span / max(self._progress.rows_expected - self._progress.rows, 1), 1e-6)
        hi = int(self._at[0]) + max(int(rows * self.pace.spacing), 1)
        return None if self._end is None or hi >= int(self._end[0]) else (hi,)

    def _next_walked(self, rows: int) -> Bound | None:
        end = self._progress.born_after
        return key_after(
            self._connection, self._endpoint, self._progress.table, self._key, self._at, end, rows
        )
