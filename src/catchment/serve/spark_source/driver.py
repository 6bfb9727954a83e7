"""The driver's side of a stream: a clock, and the next cut when it has ticked."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from catchment.feed.clock import Clock
from catchment.feed.planner import Limits, Planner
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import TableShape
from catchment.model.errors import CatchmentError, ConfigError, LogRenamed, Retry, SourceError
from catchment.model.position import Server, reaches
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.schema.shape import first_shape, merge
from catchment.serve.spark_source.children import must_be_no_child, must_have_been_no_child
from catchment.serve.spark_source.cuts import ATTEMPTS, cut_now, next_cut, with_chunks
from catchment.serve.spark_source.log_end import LogEnd
from catchment.serve.spark_source.offset import Offset, read, written
from catchment.serve.spark_source.options import LATEST, SourceOptions
from catchment.serve.spark_source.resume import must_all_go_on
from catchment.serve.spark_source.start import cut_at
from catchment.serve.spark_source.stream_cut import StreamCut, first_cut
from catchment.source.catalog import list_tables, read_table
from catchment.source.first_cut import originate
from catchment.source.log_names import cut_at_next_names
from catchment.source.offsets import log_files, snapshot_offset, snapshot_session
from catchment.source.session import connect, must_be

# Spark polls every 12 ms or so; a call waits this long for a tick when it has to try again.
TICK_SECONDS = 1.0


def read_shape(endpoints: dict[str, Endpoint], table: TableId) -> TableShape:
    """The table as all shards have it together; raises ConfigError when none has it, Unsupported for a child of a
    foreign key that changes rows, SourceError when they differ.
    """
    found: dict[str, Table] = {}
    for shard, endpoint in endpoints.items():
        with connect(endpoint) as session:
            if table in list_tables(session, lambda one: one == table):
                found[shard] = read_table(session, table)
                must_be_no_child(session, table)
    if not found:
        raise ConfigError(f"option table: no shard has the table {table}")
    return first_shape(merge(found), found)


class StreamDriver:
    """Plans the batches of one run of a query; lives as long as the query's process, which ends without
    notice.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        feed, self._endpoints = options.load()
        self._feed = feed
        copying = feed.copying
        limits = Limits(
            copying.chunk_time, copying.chunk_rows_max, copying.groups_per_shard, copying.log_budget
        )
        self._planner = Planner(self._endpoints, limits)
        self._clock: Clock | None = None
        self._shape: TableShape | None = None
        self._tick = 0
        self._missed = 0
        self._end: dict[str, LogEnd] | None = None
        self._told_end: dict[str, Server] = {}

    def shape(self) -> TableShape:
        """The table's columns as of the first call."""
        if self._shape is None:
            self._shape = read_shape(self._endpoints, self._options.table)
        return self._shape

    def end_at_now(self) -> None:
        """Deliver nothing beyond the log as it stands now. The exception is rows that are still to be copied, and the
        log up to the cut at which they are.
        """
        self._end = {}
        for shard, endpoint in self._endpoints.items():
            with snapshot_session(endpoint) as session:
                self._told_end[shard] = session.server
                at = snapshot_offset(session)
                self._end[shard] = LogEnd(at, log_files(session).keys())

    def stop(self) -> None:
        """End the clock and its sessions."""
        if self._clock is not None:
            self._clock.stop()

    def newest(self) -> dict[str, Any] | None:
        """Epoch and offsets of the newest tick."""
        tick = self._clock.after(0, 0) if self._clock is not None else None
        if tick is None:
            return None
        return {"epoch": tick.number, "shards": {shard: str(at) for shard, at in tick.offsets.items()}}

    def next_offset(self, start: Offset, byte_limit: int | None) -> Offset:
        """Where the next batch ends, `start` when there is nothing new. Raises CatchmentError."""
        since = read(start, self._options.table)
        if since is None:
            begin = start["start"]
            return self._begin_behind(begin) if isinstance(begin, dict) else self._begin(copy=begin != LATEST)
        try:
            return self._planned(start, since, byte_limit)
        except LogRenamed as renamed:
            return self._at_next_name(since, renamed)

    def _planned(self, start: Offset, since: StreamCut, byte_limit: int | None) -> Offset:
        clock = self._started(since.cut)
        if self._end is None:
            tick = clock.after(max(since.cut.epoch, self._tick), 0)
            return start if tick is None else self._tried(start, since, tick, byte_limit)
        # Here `start` would mean that all is delivered.
        for _ in range(ATTEMPTS):
            if self._ended(since.cut, self._end):
                break
            tick = clock.after(max(since.cut.epoch, self._tick), TICK_SECONDS)
            end = start if tick is None else self._tried(start, since, tick, byte_limit)
            if end != start:
                return end
        else:
            raise SourceError(
                f"{self._options.table}: nothing could be planned in {ATTEMPTS} ticks: {self._obstacle()}; start the "
                "query again with the same checkpoint"
            )
        return start

    def _tried(self, start: Offset, since: StreamCut, tick: Tick, byte_limit: int | None) -> Offset:
        """The next offset as of the tick; `start` where another tick may do better."""
        self._tick = tick.number
        try:
            end = self._next(start, since, tick, byte_limit)
            self._missed = 0
        except CatchmentError as error:
            self._missed += 1
            if error.retry is Retry.NEVER or self._missed > ATTEMPTS:
                raise
            if self._end is not None:
                # No group ends at the end that was planned.
                self._mended(tick)
            return start
        return end

    def _mended(self, tick: Tick) -> None:
        assert self._end is not None
        self._end = {shard: end.mended(tick.offsets[shard]) for shard, end in self._end.items()}

    def _at_next_name(self, since: StreamCut, renamed: LogRenamed) -> Offset:
        """The offset at the head of the files of another base name in which a log goes on: a batch without rows leads
        there, since no group lies between. Another clock takes ticks from there on."""
        self.stop()
        self._clock = None
        known = since.cut
        found = must_all_go_on(self._endpoints, known.positions)
        if found == known.positions:
            raise renamed
        batch = {shard: replace(part, through=()) for shard, part in since.batch.items()}
        return written(StreamCut(cut_at_next_names(known, found), batch))

    def _obstacle(self) -> str:
        unplanned = self._planner.unplanned.items()
        locked = [f"shard {shard}: {why} (does a session lock the table?)" for (shard, _), why in unplanned]
        return (
            "; ".join(locked) or "a shard is silent, or no group of its log ends where it says that it stands"
        )

    @staticmethod
    def _ended(cut: Cut, end: dict[str, LogEnd]) -> bool:
        # An end that lies before it: the cut has gone beyond while rows were copied.
        return cut.copied and not any(
            end[shard].lies_beyond(state.position.at) for shard, state in cut.shards.items()
        )

    def _begin(self, *, copy: bool) -> Offset:
        table = self._options.table
        manifest = originate(self._feed.name, self._endpoints, lambda one: one == table, 0, reserved=())
        must_have_been_no_child(self._endpoints, manifest.cut, table)
        self._shape = manifest.shapes[0]
        first = first_cut(manifest.cut, copy=copy)
        return written(first if copy else cut_now(self._endpoints, self._feed, table, first))

    def _begin_behind(self, gtids: dict[str, str]) -> Offset:
        if set(gtids) != set(self._endpoints):
            raise ConfigError(
                f"the checkpoint begins with the shards {_names(gtids)}, the feed has {_names(self._endpoints)}; "
                "start with a new checkpoint"
            )
        self.shape()
        start = cut_at(self._endpoints, self._options.table, gtids)
        must_have_been_no_child(self._endpoints, start.cut, self._options.table)
        return written(start)

    def _started(self, cut: Cut) -> Clock:
        positions = cut.positions
        if self._clock is None:
            if set(positions) != set(self._endpoints):
                raise ConfigError(
                    f"the checkpoint is of the shards {_names(positions)}, the feed has "
                    f"{_names(self._endpoints)}; start with a new checkpoint"
                )
            must_all_go_on(self._endpoints, positions)
            self.shape()
            servers = {shard: position.server for shard, position in positions.items()}
            for shard, told in self._told_end.items():
                must_be(told, servers[shard], self._endpoints[shard])
            self._clock = Clock(self._endpoints, servers, self._feed.epoch.tick, cut.epoch).start(positions)
            self._mend_end(cut, self._clock)
        self._clock.verified(positions)
        return self._clock

    def _mend_end(self, cut: Cut, clock: Clock) -> None:
        """An end before the cut was read at a rotation: the log has been shown to reach the cut. Take the end from a
        tick, which never lies before the cut.
        """
        if self._end is None or all(
            self._end[shard].at == state.position.at or self._end[shard].lies_beyond(state.position.at)
            for shard, state in cut.shards.items()
        ):
            return
        tick = clock.after(cut.epoch, ATTEMPTS * TICK_SECONDS)
        if tick is None:
            raise SourceError(
                f"no shard of {', '.join(cut.shards)} says where its log ends; start the query again"
            )
        self._mended(tick)

    def _next(self, start: Offset, since: StreamCut, tick: Tick, byte_limit: int | None) -> Offset:
        cut = since.cut
        aim = tick if not cut.copied or self._end is None else _no_later(tick, cut, self._end)
        if cut.copied and cut.stood_at(aim):
            return start
        end = next_cut(self._endpoints, self._options.table, since, aim, byte_limit)
        if not cut.copied:
            end = with_chunks(end, self._planner, self.shape(), aim, self._options.chunks_per_trigger)
        copied = any(part.through for part in end.batch.values())
        return start if cut.stood_at(end.cut.tick) and not copied else written(end)


def _no_later(tick: Tick, cut: Cut, end: dict[str, LogEnd]) -> Tick:
    """The tick, but on no shard beyond the end; a shard that is there or beyond stays where it is."""
    offsets = {}
    for shard, state in cut.shards.items():
        at, last = state.position.at, end[shard]
        aim = last.at if reaches(tick.offsets[shard], last.at) else tick.offsets[shard]
        offsets[shard] = aim if last.lies_beyond(at) else at
    return Tick(tick.number, tick.time_us, tick.window_us, offsets)


def _names(shards: Iterable[str]) -> str:
    return ", ".join(sorted(shards))
