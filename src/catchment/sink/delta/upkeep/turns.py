"""Deciding when to settle and to clean up, from what the committed epochs bring."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed
from catchment.model.epoch import Manifest
from catchment.model.location import location
from catchment.model.table import TableId
from catchment.sink.delta.kept.choice import HOUR, Past
from catchment.sink.delta.plain.index_directory import default_directory
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.upkeep.attempt import Attempt, begin
from catchment.sink.delta.upkeep.clean import cleaned_seconds_ago, window_hours
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.settler import Settler
from catchment.state.lease import LEASE_SECONDS

# So long a run that is told to stop waits for a settle.
HURRY_SECONDS = 15.0
# Between two looks for files that nobody needs. Replaced ones stay for hours in any case (`sink.keep`).
CLEAN_SECONDS = 600.0
# So many rows take a process, which is started while they come.
PREPARED_ROWS = 100_000
# A process that has had nothing to do for so long gives its memory back.
IDLE_SECONDS = 300.0
FAILED_SECONDS_MIN = 5.0
FAILED_SECONDS_MAX = 600.0
_log = logging.getLogger(__name__)


def order_for(feed: Feed, fence: int) -> UpkeepOrder:
    """What a feed file says of its lake. Unnamed files stay for two lengths of a lease: a live runner may still commit
    them."""
    sink = feed.sink
    form = Form(sink.vectors is not False, sink.changes, shown=sink.vectors == "trino")
    past = Past(sink.keep_hourly, sink.keep_daily)
    index = default_directory() if sink.index is None else sink.index or None
    return UpkeepOrder(
        str(sink.path),
        feed.name,
        fence,
        sink.keep,
        2 * LEASE_SECONDS,
        form=form,
        past=past,
        index=None if index is None else str(index),
    )


class LakeUpkeep:
    """Watches the tables of one run: `count` is called after each commit, `turn` after each turn of the loop, one
    call at a time. `seconds`: how long changes wait, about; 0: until the next turn."""

    def __init__(self, order: UpkeepOrder, seconds: float) -> None:
        self._order = order
        self._keeper, self._settler = Keeper(order.root, order.feed), Settler(order.root)
        self._newest: Manifest | None = None
        self._seconds = seconds
        self._waiting: dict[TableId, int] = {}
        self._taken: dict[TableId, int] = {}
        self._ended: list[tuple[TableId, ...]] = []
        self._left_before = True  # by the run before, as far as is known
        self._attempt: Attempt | None = None
        self._started = world.steady_seconds()
        self._pause = 0.0
        self._clean_at = self._started + max(
            0.0, CLEAN_SECONDS - cleaned_seconds_ago(location(order.root), order.feed)
        )
        self._replaced_at = self._started

    def count(self, manifest: Manifest) -> None:
        """Count what a committed epoch added."""
        known, self._newest = self._newest, manifest
        if manifest.previous == 0:
            self._left_before = False
        for one in known.stale if known is not None else ():
            if manifest.stale_since(one.table) is None:  # its new copy may have no row
                self._waiting[one.table] = self._waiting.get(one.table, 0) + 1
        for one in manifest.stale:
            before = known.stale_since(one.table) if known is not None else None
            if (
                before is None or one.settles > before.settles
            ):  # then its rows came while it was a shadow table
                self._waiting[one.table] = self._waiting.get(one.table, 0) + 1
        for delta in manifest.deltas:
            if delta.shape.place_of is not None:
                continue  # it waits for its place
            rows = sum(file.rows for file in delta.files)
            if not delta.files and (delta.shape.emptied or delta.shape.fills or delta.shape.widened):
                rows = 1  # of older rows the shape alone says what became
            self._waiting[delta.shape.table] = self._waiting.get(delta.shape.table, 0) + rows
        if sum(self._waiting.values()) >= PREPARED_ROWS:
            with suppress(OSError):  # it is told when there is an order for it
                self._settler.prepare()

    def turn(self) -> None:
        """Take note of an attempt that has ended; begin one when changes have waited long enough, or to clean up."""
        now = world.steady_seconds()
        self._look()
        if self._attempt is not None:
            return
        cleans = self._cleans(now)
        pause = max(self._pause, 0.0 if self._is_awaited else self._seconds)
        if (self._has_work() or cleans) and now - self._started >= pause:
            self._begin(cleans=cleans)
        elif now - self._started > IDLE_SECONDS:
            self._settler.end()

    @property
    def running(self) -> bool:
        """Whether something is being settled, as far as the last turn has seen."""
        return self._attempt is not None

    def ended(self) -> Sequence[tuple[TableId, ...]]:
        """Of each settle that came to a good end since the last call, the tables whose changes of this run it took."""
        ended, self._ended = self._ended, []
        return ended

    def waiting(self) -> Mapping[TableId, int]:
        """Rows that the plain tables do not have yet, by table, of those that were committed in this run. A table that
        was just settled has none."""
        return {
            table: rows + self._taken.get(table, 0)
            for table, rows in {**dict.fromkeys(self._taken, 0), **self._waiting}.items()
        }

    def stop(self, *, hurry: bool) -> None:
        """Settle what waits, and wait for that; in a hurry for some seconds only, since a later run settles, too."""
        until = world.steady_seconds() + HURRY_SECONDS if hurry else None
        self._await(until)
        cleans = self._cleans(world.steady_seconds())
        if self._attempt is None and (self._has_work() or cleans):
            self._begin(cleans=cleans)
            self._await(until)
        if self._attempt is not None:
            self._attempt.abandon()
        self._settler.end()

    @property
    def _is_awaited(self) -> bool:
        """Whether readers see a table as of an earlier epoch until it is settled."""
        stale = self._newest.stale if self._newest is not None else ()
        return any(one.settles and self._waiting.get(one.table) for one in stale)

    def _has_work(self) -> bool:
        return self._left_before or any(self._waiting.values())

    def _cleans(self, now: float) -> bool:
        """Whether it is time to clean up. Some while after the last settle nothing is left to remove but the past."""
        last = self._replaced_at + 3600.0 * window_hours(self._order.keep_seconds) + CLEAN_SECONDS
        if self._clean_at <= last:
            return now >= self._clean_at
        # Kept epochs come to their end all the same, one an hour at most.
        return self._order.past.grain > 0 and now >= self._clean_at + HOUR - CLEAN_SECONDS

    def _await(self, until: float | None) -> None:
        self._look(None if until is None else max(0.0, until - world.steady_seconds()))

    def _look(self, seconds: float | None = 0.0) -> None:
        """Take note of an attempt that has ended, or ends within so many seconds."""
        outcome = self._attempt.outcome(seconds) if self._attempt is not None else None
        if outcome is None:
            return
        self._attempt = None
        for warning in outcome.warned:
            _log.warning("feed %s: %s", self._order.feed, warning)
        if outcome.code == 0:
            self._pause, self._left_before = 0.0, False
            if self._taken:
                self._replaced_at = self._started
            self._ended.append(tuple(sorted(self._taken)))
            self._taken, self._waiting = {}, dict.fromkeys(self._taken, 0) | self._waiting
            return
        self._waiting = dict(self.waiting())
        self._taken = {}
        self._wait_longer()
        _log.warning(
            "feed %s: a settle ended with exit code %d%s; changes wait in the lake's tail, the next try is in %.0f s",
            self._order.feed,
            outcome.code,
            f": {outcome.said}" if outcome.said else "",
            self._pause,
        )

    def _wait_longer(self) -> None:
        self._pause = min(max(2 * self._pause, FAILED_SECONDS_MIN), FAILED_SECONDS_MAX)

    def _begin(self, *, cleans: bool) -> None:
        """Begin an attempt, or tell why that cannot be and leave more time before the next try."""
        self._started = world.steady_seconds()
        tables = (
            None if self._left_before or cleans else tuple(t for t, rows in self._waiting.items() if rows)
        )
        try:
            self._attempt = begin(
                self._keeper, self._settler, replace(self._order, tables=tables, cleans=cleans), self._newest
            )
        except OSError as fault:
            self._wait_longer()
            _log.warning(
                "feed %s: no process that settles can be started: %s; changes wait in the lake's tail, the next try is "
                "in %.0f s",
                self._order.feed,
                fault,
                self._pause,
            )
        else:
            self._taken, self._waiting = {t: rows for t, rows in self._waiting.items() if rows}, {}
            if cleans:
                self._clean_at = self._started + CLEAN_SECONDS
