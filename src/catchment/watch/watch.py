"""What others can see of a run besides its epochs: that it lives, how far it has come, what troubles it, and how it
ended."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from catchment import world
from catchment.config import NotifyEvent
from catchment.model.errors import INTERRUPTED, SinkAway, StateAway, StateError
from catchment.model.progress import Progress, essence
from catchment.model.throttle import Throttled
from catchment.state.journal import Journal
from catchment.state.lease import Owner
from catchment.state.notes import ErrorNote, Trouble, exit_code_of
from catchment.watch.course import Course
from catchment.watch.notify import Notifier
from catchment.watch.report import NOBODY, Observer
from catchment.watch.throttles import Throttles
from catchment.watch.troubles import Troubles
from catchment.watch.vitals import Vitals

_LOOK_SECONDS = 1.0
# Every write costs the state store a transaction, and the metrics file a replacement.
_WRITE_SECONDS = 5.0
# A shard that restarts is back before.
_AWAY_SECONDS = 60.0
_TOLD_AWAY: Mapping[NotifyEvent, Callable[[Trouble], bool]] = {
    NotifyEvent.SHARD_AWAY: lambda one: bool(one.shard),
    NotifyEvent.STATE_AWAY: lambda one: not one.shard and one.away == StateAway.away,
    NotifyEvent.LAKE_AWAY: lambda one: not one.shard and one.away == SinkAway.away,
}

_log = logging.getLogger(__name__)


class Watch:
    """Writes journal and metrics of one run, in a thread of its own: the loop may wait for a shard for minutes.

    Use it as a context manager around the run. A store that is away, or the disk of the metrics, ends nothing.
    """

    def __init__(
        self,
        journal: Journal,
        vitals: Vitals,
        troubles: Troubles,
        notifier: Notifier,
        course: Course,
        *,
        file: Path | None,
        stop: world.Event,
        observer: Observer = NOBODY,
    ) -> None:
        self.journal = journal
        self.vitals = vitals
        self.troubles = troubles
        self.throttles = Throttles()
        self.notifier = notifier
        self.course = course
        self._file = file
        self._stop = stop
        self.observer = observer
        self._failed = ""
        self._kept: Progress | None = None
        self._shown = self._written = _Seen()
        self._written_us = 0
        self._ended = world.event()
        self._thread = world.thread("watch", self._run)

    def __enter__(self) -> Self:
        owner = str(Owner.this_process())
        self.journal.begin(owner)
        self.observer.leased(self.journal.fence)
        self.troubles.heard = self._hear
        if self.troubles.now:
            self._hear(self.troubles.now)
        self.notifier.tell(NotifyEvent.START, f"a run begins: {owner}")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._tell()
        errors = self.troubles.take_errors()
        note = None
        if error is not None:
            note = ErrorNote.of(error, world.now_us())
            errors = (*errors, note)
            code = exit_code_of(error)
        else:
            code = INTERRUPTED if self._stop.is_set() else 0
        self.vitals.count(errors)
        self.vitals.ended(code, note)
        self.write_metrics()
        with suppress(StateError):
            self.journal.add(errors)
            self.journal.end(code, note)
        self._notify_end(code, note)
        self.notifier.close()

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        now, seen = world.now_us(), self._tell()
        due = now - self._written_us >= _WRITE_SECONDS * 1e6
        if not due and seen.what == self._written.what:
            return
        self._written_us = now
        away = [one for one in seen.troubles if now - one.since_us >= _AWAY_SECONDS * 1e6]
        for event, is_told in _TOLD_AWAY.items():
            self.notifier.keep(event, {one.shard: str(one) for one in away if is_told(one)})
        errors = self.troubles.take_errors()
        self.vitals.count(errors)
        self.vitals.observe_troubles(seen.troubles)
        self.vitals.observe_throttled(seen.throttled)
        self.write_metrics()
        self._write(seen, errors)
        self._written = seen

    def _write(self, seen: "_Seen", errors: tuple[ErrorNote, ...]) -> None:
        with suppress(StateError):
            if errors:
                self.journal.add(errors)
            if seen.troubles != self._written.troubles:
                self.journal.put_troubles(seen.troubles)
            if seen.throttled != self._written.throttled:
                self.journal.put_throttled(seen.throttled)
            kept = essence(seen.progress) if seen.progress is not None else None
            if kept is not None and kept != self._kept:
                self.journal.put_progress(kept)
                self._kept = kept

    def _tell(self) -> "_Seen":
        """Look at the run, and tell whoever started it. A fault there ends nothing, and is logged once."""
        troubles, throttled = self.troubles.now, self.throttles.now
        seen, before = _Seen(troubles, throttled), self._shown
        try:
            seen = _Seen(troubles, throttled, self.course.look(throttled))
            if throttled != before.throttled:
                self.observer.throttled(throttled)
            if seen.progress is not None:
                self.observer.progressed(seen.progress)
        except Exception as error:
            self._untold(error)
        self._shown = seen
        return seen

    def _hear(self, troubles: tuple[Trouble, ...]) -> None:
        try:
            self.observer.in_trouble(troubles)
        except Exception as error:
            self._untold(error)

    def _untold(self, error: Exception) -> None:
        if self._failed != str(error):
            self._failed = str(error)
            _log.warning("telling what a run does failed, and the feed goes on", exc_info=error)

    def _notify_end(self, code: int, note: ErrorNote | None) -> None:
        why = f" by {note.kind}: {note.message}" if note is not None else ""
        error = (
            {"kind": note.kind, "message": note.message, "shard": note.shard} if note is not None else None
        )
        message = f"the run ended with exit code {code}{why}"
        self.notifier.tell(NotifyEvent.END, message, exit_code=code, error=error)

    def write_metrics(self) -> None:
        """Bring the metrics to their file, if they have one."""
        if self._file is not None:
            self.vitals.write(self._file)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What troubles a run, what waits for the source's sake, and how far it has come."""

    troubles: tuple[Trouble, ...] = ()
    throttled: tuple[Throttled, ...] = ()
    progress: Progress | None = None

    @property
    def what(self) -> list[tuple[str, int, str]]:
        """Who it is since when and by what, however often it was tried and whatever the numbers are."""
        troubles = [(one.shard, one.since_us, one.away) for one in self.troubles]
        return troubles + [(one.shard, one.since_us, one.breach.check.value) for one in self.throttled]
