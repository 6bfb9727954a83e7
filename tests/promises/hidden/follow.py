"""The feed's own steps, one after another in this process: tick, chunks, segment, what is sealed now.

It calls the functions that the loop has Spark call, so that thousands of epochs take minutes. What it saw is
kept in `Seen`, for `judge` to compare with the log afterwards.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace

from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkTask, SegmentReceipt, SegmentTask, Target
from catchment.feed.clock import Clock
from catchment.model.chunk import Chunk
from catchment.model.epoch import TableShape
from catchment.model.errors import CutMissed
from catchment.model.gtidset import GtidSet
from catchment.model.position import LogOffset, Position
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.changes import read_segment
from catchment.readers.copy import read_group
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.first_cut import originate
from tests.promises.hidden.source import KEYS, endpoint
from tests.world.log_groups import Place
from tests.world.patience import PATIENCE_SECONDS

TABLE = TableId("d", "t")
_CHUNKS = 4
_TICK_SECONDS = 0.004

Floor = Callable[["Follower", LogOffset], LogOffset]


def place(offset: LogOffset) -> Place:
    """An offset as the judges know it."""
    return Place(offset.file, offset.offset)


@dataclass(frozen=True)
class CopiedRows:
    """Keys in (lo, hi] as of `cut`."""

    cut: Place
    lo: int
    hi: int
    rows: dict[int, str]


@dataclass(frozen=True)
class Claim:
    """A position declared sealed, and the transactions of each writer that a SELECT showed right after."""

    sealed: Place
    told: dict[int, int]


@dataclass
class Seen:
    """What a run saw. `segments`: the start, then each place and GTID sequence reached, and groups read."""

    segments: list[tuple[Place, int, int]] = field(default_factory=list)
    chunks: list[CopiedRows] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    missed: int = 0


def sealed_floor(follower: "Follower", cut: LogOffset) -> LogOffset:
    """The floor that the loop plans: proven sealed before this epoch."""
    return follower.sealed


def floor_at_the_cut(follower: "Follower", cut: LogOffset) -> LogOffset:
    """A mutation: trusts that a tick is visible."""
    return cut


class Follower:
    """Stands at a verified position of one shard and moves on, tick by tick.

    `on_credit` is a mutation: it goes on from a cut that was missed.
    """

    def __init__(
        self, server: PrivateServer, floor: Floor = sealed_floor, *, on_credit: bool = False
    ) -> None:
        self.seen = Seen()
        self.endpoint: Endpoint = endpoint(server)
        origin = originate("f", {"a": self.endpoint}, lambda table: table.schema == "d", 0)
        self.at: Position = origin.cut.positions["a"]
        self.sealed: LogOffset = origin.cut.shards["a"].floor
        self.shapes: tuple[TableShape, ...] = origin.shapes
        self._server = server
        self._floor = floor
        self._on_credit = on_credit
        self._look = server.connect()
        self._number = origin.epoch
        self._lo = 0
        self._root = Path(tempfile.mkdtemp(prefix="hidden-"))
        self.clock = Clock({"a": self.endpoint}, {"a": self.at.server}, _TICK_SECONDS, origin.epoch)
        self.clock.start(origin.cut.positions)
        self.seen.segments.append((place(self.at.at), _sequence(self.at), 0))
        self._claim()

    def close(self) -> None:
        """End the clock and the sessions, remove what was written."""
        self.clock.stop()
        self._look.close()
        shutil.rmtree(self._root)

    def step(self, *, with_chunks: bool) -> bool:
        """One epoch: False when its cut turned out to be none, and nothing of it counts."""
        tick = self.clock.after(self._number, PATIENCE_SECONDS)
        assert tick is not None, "the clock does not tick any more"
        self._number = tick.number
        return self.visit(tick.offsets["a"], with_chunks=with_chunks)

    def visit(self, cut: LogOffset, *, with_chunks: bool = False) -> bool:
        """One epoch to an offset that a tick showed; as `step`."""
        copied = self._copy(cut) if with_chunks else []
        try:
            receipt = read_segment(self.segment(cut))
        except CutMissed:
            self.seen.missed += 1
            if self._on_credit:
                self.at = replace(self.at, at=cut, born=0)
            return False
        self.seen.chunks += copied
        self._accept(receipt)
        return True

    def segment(self, stop: LogOffset) -> SegmentTask:
        """The task that reads from where we stand to `stop`."""
        target = Target(LakeWriter(self._root), ("a",), self._number, "1")
        return SegmentTask(self.endpoint, ShardState(self.at, self.sealed), stop, self.shapes, target)

    def _accept(self, receipt: SegmentReceipt) -> None:
        moved = receipt.sealed is not None and receipt.sealed != self.sealed
        assert receipt.sealed is not None, "what was sealed stays so"
        self.at, self.sealed = receipt.reached, receipt.sealed
        self.clock.verified({"a": self.at})
        self.seen.segments.append((place(self.at.at), _sequence(self.at), receipt.groups))
        if moved:
            self._claim()

    def _claim(self) -> None:
        with self._look.cursor() as cursor:
            cursor.execute("SELECT writer, n FROM d.told")
            self.seen.claims.append(Claim(place(self.sealed), dict(cursor.fetchall())))

    def _copy(self, cut: LogOffset) -> list[CopiedRows]:
        lo, hi = self._lo, min(self._lo + KEYS // 5, KEYS)
        self._lo = hi if hi < KEYS else 0
        bounds = [lo + (hi - lo) * n // _CHUNKS for n in range(_CHUNKS + 1)]
        ranges = list(pairwise(bounds))
        floor = self._floor(self, cut)
        chunks = tuple(Chunk("a", TABLE, (lo,), (hi,)) for lo, hi in ranges)
        shapes = tuple(shape for shape in self.shapes if shape.table == TABLE)
        target = Target(LakeWriter(self._root), ("a",), self._number, "1")
        state = ShardState(self.at, self.sealed)
        group = read_group(ChunkTask(self.endpoint, state, floor, cut, chunks, shapes, target, asks=False))
        assert group.refused == ()
        rows = _by_id(group.rows[TABLE])
        return [
            CopiedRows(place(cut), lo, hi, {key: value for key, value in rows if lo < key <= hi})
            for lo, hi in ranges
        ]


def _by_id(rows: pa.Table) -> list[tuple[int, str]]:
    pairs = list(zip(rows.column("id").to_pylist(), rows.column("v").to_pylist(), strict=True))
    assert len(dict(pairs)) == len(pairs), "a key came twice"
    return pairs


def _sequence(position: Position) -> int:
    if isinstance(position.gtids, GtidSet):
        return max((o.intervals[-1][1] for o in position.gtids.origins), default=0)
    return max((gtid.sequence for gtid in position.gtids.gtids), default=0)
