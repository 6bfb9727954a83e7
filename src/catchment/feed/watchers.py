"""Who looks on while a feed runs: upkeep, metrics, and whoever started it. None of them can end it: they hear of an
epoch only after its commit.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from catchment.config import NotifyEvent
from catchment.epoch.standstill import STILL_FROM
from catchment.feed.clock import Clock
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError
from catchment.model.refusal import Refusal
from catchment.sink.port import Upkeep
from catchment.watch.course import Course
from catchment.watch.metrics import Metrics
from catchment.watch.notify import Notifier
from catchment.watch.report import Observer, Report, Rest
from catchment.watch.stale_tables import StaleTables
from catchment.watch.uncarried import Uncarried

# Beyond it the start of a run does not wait to know whether the source has moved.
_TICK_WAIT_SECONDS = 0.5
# Errors whose message says all there is to say. Any other one is a fault of ours, whose place matters.
_TOLD_IN_A_LINE = (CatchmentError, OSError)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Watchers:
    """Passes on what the loop tells. Calls come one at a time. `write` brings the metrics to their file; `observer`
    belongs to the starter of the run. `files`: the log files of shards and their bytes, as the run began."""

    feed: str
    upkeep: Upkeep
    metrics: Metrics
    course: Course
    files: Mapping[str, Mapping[str, int]]
    uncarried: Uncarried
    stale: StaleTables
    notifier: Notifier
    write: Callable[[], None]
    observer: Observer
    _failed: dict[str, str] = field(default_factory=dict)

    def begun(self, standing: Manifest, clock: Clock) -> None:
        """The run begins at `standing`; has the source moved since?"""
        self._let("progress", lambda: self.course.begin(standing, lambda: clock.newest, self.files))
        self._let("the observer of the begin", lambda: self.observer.began(standing))
        with suppress(CatchmentError):  # the loop will meet it, too
            tick = clock.after(standing.epoch, _TICK_WAIT_SECONDS)
            if tick is not None and standing.cut.stood_at(tick):
                self.metrics.at_rest(tick.time_us)
        self._turned(())

    def committed(self, report: Report) -> None:
        """An epoch is committed."""
        self._let("counting for the upkeep", lambda: self.upkeep.count(report.manifest))
        self._let("metrics", lambda: self.metrics.observe(report.manifest, report.phases))
        self._let("progress", lambda: self.course.committed(report.manifest, report.refused))
        self._let("metrics of floors", lambda: self.metrics.observe_floor_lag(report.floor_lag))
        self._let("tables not carried", lambda: self.uncarried.observe(report.manifest, report.existence))
        self._let("stale tables", lambda: self.stale.observe(report.manifest))
        # Before the upkeep has its turn, in which it may settle.
        self._let("the observer of epochs", lambda: self.observer.committed(self._with_upkeep(report)))
        self._turned(report.refused)

    def _with_upkeep(self, report: Report) -> Report:
        return replace(report, settling=self.upkeep.running)

    def rested(self, rest: Rest) -> None:
        """A turn brought no epoch."""
        self.metrics.at_rest(rest.time_us, rest.absent)
        self._let("progress", lambda: self.course.rested(rest.refused))
        self._let("the observer of turns at rest", lambda: self.observer.rested(rest))
        self._turned(rest.refused)

    def _turned(self, refused: tuple[Refusal, ...]) -> None:
        """What the start and every turn ask for, with an epoch or without."""
        self._let("upkeep", self.upkeep.turn)
        self.ended()
        self._let("metrics of a turn", lambda: self._measure(refused))
        self._let("the metrics file", self.write)

    def ended(self) -> None:
        """Settles may have ended."""
        for tables in self.upkeep.ended():
            self._let("the observer of settles", partial(self.observer.settled, tables))

    def _measure(self, refused: tuple[Refusal, ...]) -> None:
        for table, rows in self.upkeep.waiting().items():
            self.metrics.observe_unsettled(str(table), rows)
        self.metrics.observe_refused(refused)
        self.notifier.keep(NotifyEvent.RETENTION, self.metrics.warn_of_purges())
        lasting = [refusal for refusal in refused if refusal.epochs >= STILL_FROM]
        self.notifier.keep(NotifyEvent.STANDSTILL, {f"{r.shard} {r.table}": str(r) for r in lasting})

    def _let(self, what: str, work: Callable[[], None]) -> None:
        """Do something that may fail; log why, once for as long as it is the same."""
        try:
            work()
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if self._failed.get(what) != said:
                self._failed[what] = said
                fault = None if isinstance(error, _TOLD_IN_A_LINE) else error
                _log.warning(
                    "feed %s: %s failed, and the feed goes on: %s", self.feed, what, said, exc_info=fault
                )
        else:
            self._failed.pop(what, None)
