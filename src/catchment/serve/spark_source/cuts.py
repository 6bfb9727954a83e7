"""The next cut of a stream: every position in it is verified by reading the log up to it (DESIGN 3)."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed
from catchment.feed.clock import Clock
from catchment.feed.planner import Planner
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import TableShape
from catchment.model.errors import CutMissed
from catchment.model.position import LogOffset
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.checks import arrived, must_be_whole
from catchment.schema.follow import Followed
from catchment.serve.spark_source.columns import dropped_after
from catchment.serve.spark_source.stream_cut import ShardBatch, StreamCut
from catchment.source.definitions_at import described_where_needed
from catchment.source.identity import must_be_same_log
from catchment.source.log import read_facts

ATTEMPTS = 20
TICK_SECONDS = 5.0


def cut_now(endpoints: Mapping[str, Endpoint], feed: Feed, table: TableId, start: StreamCut) -> StreamCut:
    """A cut of this moment, reached from `start`: what is visible when this is called lies before it.

    Raises CatchmentError, CutMissed after many ticks at which no group ended.
    """
    positions, number = start.cut.positions, start.cut.epoch
    servers = {shard: position.server for shard, position in positions.items()}
    clock = Clock(endpoints, servers, feed.epoch.tick, number).start(positions)
    try:
        for _ in range(ATTEMPTS):
            tick = clock.after(number, TICK_SECONDS)
            if tick is None:
                continue
            number = tick.number
            try:
                return next_cut(endpoints, table, start, tick, None)
            except CutMissed:
                continue
    finally:
        clock.stop()
    raise CutMissed(f"no group of the log ended at any of {ATTEMPTS} ticks; read again")


def next_cut(
    endpoints: Mapping[str, Endpoint],
    table: TableId,
    start: StreamCut,
    tick: Tick,
    byte_limit: int | None,
) -> StreamCut:
    """The cut at `tick`, or before it at the ends of the groups by which `byte_limit` bytes of log are read.

    Nothing more is copied yet. Raises CutMissed when no group ends at the tick: take another one;
    Diverged, Purged and other kinds of SourceError.
    """
    budget = None if byte_limit is None else max(byte_limit // len(endpoints), 1)

    def step(shard: str) -> _Step:
        known = _Step(start.cut.shards[shard], start.batch[shard])
        return _step(endpoints[shard], table, known, tick.offsets[shard], budget)

    with world.pool(len(endpoints), "cut") as pool:
        steps = dict(zip(endpoints, pool.map(step, endpoints), strict=True))
    return StreamCut(
        Cut(tick.number, tick.time_us, {shard: one.state for shard, one in steps.items()}),
        {shard: one.batch for shard, one in steps.items()},
    )


class _Step(NamedTuple):
    state: ShardState
    batch: ShardBatch


def _step(endpoint: Endpoint, table: TableId, known: _Step, stop: LogOffset, budget: int | None) -> _Step:
    """One shard's part. The log is read without its rows; also where nothing was written, which shows that
    it is the same log.
    """
    state, batch = known
    start = state.position
    # Before the log is read: a reset that comes later is noticed at the next cut.
    resets = must_be_same_log(endpoint, start)
    stretch = read_facts(endpoint, start.server, start, stop, budget=budget)
    must_be_whole(endpoint.shard, start, None, stretch)
    if not stretch.reached_stop and (budget is None or stretch.whole):
        raise CutMissed(f"shard {endpoint.shard}: the log ends at {stretch.at}, before {stop}; cut again")
    at = stop if stretch.reached_stop else stretch.at
    # Only a snapshot that has moved since another one is proof, and only where it stands (epoch/seal.py).
    shown = stretch.reached_stop and batch.shown
    arrival = arrived(endpoint, start, state.sealed, stretch, at, shown=shown)
    followed = Followed([table], state.definitions).over(stretch.facts)
    followed.must_follow()
    reached = ShardState(
        replace(arrival.position, resets=resets),
        arrival.sealed or state.sealed,
        state.copies,
        tuple(followed.now.values()),
    )
    if not reached.definitions:
        reached = described_where_needed(endpoint, reached)
    dropped = dropped_after(batch.dropped, followed.events.of(stretch.facts))
    return _Step(reached, ShardBatch(shown=stretch.reached_stop, dropped=dropped))


def with_chunks(
    stream: StreamCut, planner: Planner, shape: TableShape, tick: Tick, limit: int | None
) -> StreamCut:
    """The cut with the chunks that the batch ending there copies, `limit` of each shard at most.

    None of a shard whose log goes on far beyond the cut, up to `tick`: the log behind a chunk is read to its end.
    """
    planned: dict[str, list[Chunk]] = {}
    groups = planner.groups(stream.cut, [shape], tick)
    planner.raise_refused()
    for group in groups:
        planned.setdefault(group[0].shard, []).extend(group)
    batch, shards = dict(stream.batch), dict(stream.cut.shards)
    for shard, found in planned.items():
        chunks, state = found[:limit], shards[shard]
        batch[shard] = replace(batch[shard], through=tuple(chunk.hi for chunk in chunks))
        shards[shard] = replace(state, copies=tuple(copy.advanced(chunks) for copy in state.copies))
    return StreamCut(replace(stream.cut, shards=shards), batch)
