"""How far a run has come, second by second: rows and log done, what is left of both, and for how long."""

from collections.abc import Callable, Iterable, Mapping

from catchment import world
from catchment.model.cut import Tick
from catchment.model.epoch import Manifest
from catchment.model.progress import THROUGH, Forecast, LogProgress, Progress, together
from catchment.model.refusal import Refusal
from catchment.model.table import TableId
from catchment.model.throttle import Check, Throttled
from catchment.watch.copies_left import CopiesLeft
from catchment.watch.forecasts import all_copied, caught_up, keeps_up
from catchment.watch.log_left import LogLeft

# What is held to a rate goes on: its forecast is that of the rate.
_PACED = (Check.ROWS_PER_SECOND, Check.BYTES_PER_SECOND)


class Course:
    """Watches one run. `newest` is replaced whole at each look, so that any thread may read it; None before the first.

    The loop and the apply thread tell what is new; one thread looks. `place_of`: the place of a table in the order of
    copying.
    """

    def __init__(self, place_of: Callable[[TableId], int] = lambda table: 0) -> None:
        self._place_of = place_of
        self.newest: Progress | None = None
        self._lock = world.lock()
        self._standing: Manifest | None = None
        self._tick: Callable[[], Tick | None] = lambda: None
        self._refused: dict[str, dict[TableId, Refusal]] = {}
        self._copies: dict[str, CopiesLeft] = {}
        self._logs: dict[str, LogLeft] = {}

    def begin(
        self, standing: Manifest, tick: Callable[[], Tick | None], files: Mapping[str, Mapping[str, int]]
    ) -> None:
        """The run begins at `standing`. `tick` gives the newest one; `files`: the log files of shards and their
        bytes."""
        with self._lock:
            self._tick = tick
            self._copies = {shard: CopiesLeft(self._place_of) for shard in standing.cut.shards}
            self._logs = {shard: LogLeft(files.get(shard, {})) for shard in standing.cut.shards}
        self.committed(standing, ())

    def committed(self, manifest: Manifest, refused: Iterable[Refusal]) -> None:
        """An epoch is committed."""
        now = world.steady_seconds()
        with self._lock:
            self._standing = manifest
            self._refused = _by_shard(refused)
            for shard, state in manifest.cut.shards.items():
                self._copies[shard].look(state.copies, now)
                self._logs[shard].read_to(state.position.at, now)

    def rested(self, refused: Iterable[Refusal]) -> None:
        """A turn brought no epoch."""
        with self._lock:
            self._refused = _by_shard(refused)

    def look(self, throttled: Iterable[Throttled] = ()) -> Progress | None:
        """How far the run has come now; None before it has an epoch. `throttled`: shards that copy no rows now."""
        waiting = {one.shard: str(one.breach) for one in throttled if one.breach.check not in _PACED}
        with self._lock:
            if self._standing is not None:
                self.newest = self._look(self._standing, waiting)
        return self.newest

    def _look(self, standing: Manifest, waiting: Mapping[str, str]) -> Progress:
        now, now_us = world.steady_seconds(), world.now_us()
        waits = {**waiting, **{shard: _away(shard) for shard in standing.absent}}
        copying = [
            copies.progress(shard, self._refused.get(shard, {}), now, waits.get(shard, ""))
            for shard, copies in self._copies.items()
            if copies.unfinished
        ]
        tick = self._tick()
        logs = tuple(self._log(shard, standing, tick, now) for shard in standing.cut.shards)
        copy = all_copied(copying)
        log = together(one.left for one in logs)
        rates = [one.rate.mean for one in copying if one.rate is not None]
        return Progress(
            now_us,
            tuple(copy for one in copying for copy in one.shown),
            logs,
            sum(rates) if rates or not copying else None,
            copy,
            log,
            together((copy, log)),
        )

    def _log(self, shard: str, standing: Manifest, tick: Tick | None, now: float) -> LogProgress:
        log, position = self._logs[shard], standing.cut.shards[shard].position.at
        end = tick.offsets.get(shard) if tick is not None else None
        if end is not None:
            log.ends_at(end, now)
        as_of = standing.absent.get(shard, standing.time_us)
        if tick is not None and end == position:
            as_of = max(as_of, tick.time_us)
        lag = max(0.0, (world.now_us() - as_of) / 1e6)
        if shard in standing.absent:
            left = Forecast(why=_away(shard))
        elif keeps_up(lag, log.backlog):  # as nearly always: to compare parts of the time would cost more
            left = THROUGH
        else:
            left = caught_up(log.backlog, log.written.spread(now), log.read.spread(now))
        written, read = log.written.mean(now), log.read.mean(now)
        return LogProgress(shard, str(position), lag, log.backlog, written, read, left)


def _away(shard: str) -> str:
    return f"shard {shard} is away"


def _by_shard(refused: Iterable[Refusal]) -> dict[str, dict[TableId, Refusal]]:
    found: dict[str, dict[TableId, Refusal]] = {}
    for one in refused:
        found.setdefault(one.shard, {})[one.table] = one
    return found
