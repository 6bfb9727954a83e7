"""What a person sees of a run: counts what its epochs bring, and shows it on a terminal or as lines of a log."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from catchment.model.cut import Cut
from catchment.model.epoch_number import epoch_text
from catchment.model.progress import Progress, together
from catchment.model.refusal import Refusal
from catchment.model.throttle import Throttled
from catchment.screen.rate import Rate
from catchment.screen.seen import Copying, Seen, plain
from catchment.state.notes import Trouble
from catchment.watch.report import Observer, Report, Rest
from catchment.watch.table_status import expected_of, parts_by_table, rate_of
from catchment.watch.throttles import throttled_text

# A log has a line at least so far apart, besides those that tell something new.
LOG_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Told:
    """What a line of the log has told: a change of it is worth a line at once."""

    doing: str = ""
    copying: int = 0


class RunView:
    """Counts what the committed epochs bring; `observe` is called from the apply thread, `at_rest` from the loop,
    `in_trouble` and `throttled` from a third. `say` gets the lines of a log; without it there are none, since a
    terminal shows what is seen."""

    def __init__(self, feed: str, say: Callable[[str], None] | None) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._seen = Seen(feed, "starting")
        self._began = self._doing_since = time.monotonic()
        self._logged_at = 0.0
        self._told = _Told()
        self._refused: tuple[Refusal, ...] = ()
        self._troubles: tuple[Trouble, ...] = ()
        self._changes = Rate()
        self._counted: Cut | None = None
        self._progress: Progress | None = None
        self._tables = 0
        self._copying: tuple[Copying, ...] = ()
        self.copy_seconds = 0.0
        self.newest: Report | None = None

    @property
    def seen(self) -> Seen:
        """What was seen up to now, and for how long the run is busy with what it does before its first epoch."""
        return replace(self._seen, doing_seconds=time.monotonic() - self._doing_since)

    def observer(self) -> Observer:
        """What the run is to tell."""
        return Observer(
            self.doing, self.observe, self.at_rest, self.in_trouble, self.throttled, self.progressed
        )

    def doing(self, what: str) -> None:
        """The run is busy with `what` until its first epoch."""
        with self._lock:
            self._doing_since = time.monotonic()
            self._seen = replace(self._seen, doing=what)
            self._log()

    def observe(self, report: Report) -> None:
        """Take in one committed epoch."""
        now, manifest, before = time.monotonic(), report.manifest, self._seen
        copied = sum(delta.copied for delta in manifest.deltas)
        if copied:
            self.copy_seconds = now - self._began
        self.newest = report
        changes = before.changes + manifest.changes
        self._changes.add(now, changes)
        with self._lock:
            if self._counted is None or not manifest.cut.copied_as(
                self._counted
            ):  # with many shards it is long
                self._count(manifest.cut)
            self._counted = manifest.cut
            self._refused = report.refused
            self._seen = replace(
                self._seen,
                epoch=epoch_text(manifest.epoch),
                lag_seconds=report.lag_seconds,
                window_ms=manifest.window_us / 1000,
                epochs=before.epochs + 1,
                changes=changes,
                change_rate=self._changes.rate(now),
                settling=report.settling,
                copied_rows=before.copied_rows + copied,
                tables=self._tables,
                copying=self._copying,
                wrong=self._wrong(),
            )
            self._log()

    def at_rest(self, rest: Rest) -> None:
        """Take in a turn that brought nothing."""
        with self._lock:
            rate = self._changes.rate(time.monotonic())
            self._refused = rest.refused
            self._seen = replace(self._seen, change_rate=rate, wrong=self._wrong())
            self._log()

    def in_trouble(self, troubles: tuple[Trouble, ...]) -> None:
        """Take in what the run tries again, and that it does not any more."""
        with self._lock:
            self._troubles = troubles
            self._seen = replace(self._seen, wrong=self._wrong())

    def throttled(self, shards: tuple[Throttled, ...]) -> None:
        """Take in which shards copy no rows now, and that they do again."""
        with self._lock:
            self._seen = replace(self._seen, waiting=tuple(map(throttled_text, shards)))

    def told_of_keys(self, text: str) -> None:
        """Which keys may be pressed, and what became of the last one."""
        with self._lock:
            self._seen = replace(self._seen, keys=text)

    def progressed(self, progress: Progress) -> None:
        """Take in how far the run has come, once a second."""
        with self._lock:
            self._progress = progress
            if self._copying and self._counted is not None:
                self._count(self._counted)
            self._seen = replace(self._seen, copying=self._copying, copy=progress.copy, log=progress.log)

    def _wrong(self) -> tuple[str, ...]:
        return tuple(map(str, (*self._troubles, *self._refused)))

    def _count(self, cut: Cut) -> None:
        self._tables = len({copy.table for copy in cut.copies})
        self._copying = tuple(
            Copying(
                str(table),
                sum(part.rows for part in parts),
                expected_of(parts),
                rate_of(parts),
                together(part.left for part in parts),
            )
            for table, parts in parts_by_table(cut, self._progress, runs=True).items()
        )

    def _log(self) -> None:
        """Where there is no terminal: a line when something new is to tell, else one in a while. What is wrong is told
        by who meets it, once."""
        if self._say is None:
            return
        seen, now, before = self._seen, time.monotonic(), self._told
        told = _Told("" if seen.epoch else seen.doing, len(seen.copying))
        if told == before and now - self._logged_at < LOG_SECONDS:
            return
        self._told, self._logged_at = told, now
        self._say(plain(seen))
