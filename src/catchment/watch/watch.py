"""What others can see of a run besides its epochs: that it lives, what troubles it, and how it ended."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from catchment import world
from catchment.config import NotifyEvent
from catchment.model.errors import INTERRUPTED, StateError
from catchment.state.journal import Journal
from catchment.state.lease import Owner
from catchment.state.notes import ErrorNote, Trouble, exit_code_of
from catchment.watch.notify import Notifier
from catchment.watch.troubles import Troubles
from catchment.watch.vitals import Vitals

_LOOK_SECONDS = 1.0
# Every write costs the state store a transaction, and the metrics file a replacement.
_WRITE_SECONDS = 5.0
# A shard that restarts is back before.
_AWAY_SECONDS = 60.0

Show = Callable[[tuple[Trouble, ...]], None]


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
        *,
        file: Path | None,
        stop: world.Event,
        show: Show = lambda troubles: None,
    ) -> None:
        self.journal = journal
        self.vitals = vitals
        self.troubles = troubles
        self.notifier = notifier
        self._file = file
        self._stop = stop
        self._show = show
        self._shown: tuple[Trouble, ...] = ()
        self._written: tuple[Trouble, ...] = ()
        self._written_us = 0
        self._ended = world.event()
        self._thread = world.thread("watch", self._run)

    def __enter__(self) -> Self:
        owner = str(Owner.this_process())
        self.journal.begin(owner)
        self.notifier.tell(NotifyEvent.START, f"a run begins: {owner}")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
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
        now, troubles = world.now_us(), self.troubles.now
        if troubles != self._shown:
            self._shown = troubles
            self._show(troubles)
        due = now - self._written_us >= _WRITE_SECONDS * 1e6
        if not due and _what(troubles) == _what(self._written):
            return
        self._written_us = now
        away = [one for one in troubles if one.shard and now - one.since_us >= _AWAY_SECONDS * 1e6]
        self.notifier.keep(NotifyEvent.SHARD_AWAY, {one.shard: str(one) for one in away})
        errors = self.troubles.take_errors()
        self.vitals.count(errors)
        self.vitals.observe_troubles(troubles)
        self.write_metrics()
        with suppress(StateError):
            if errors:
                self.journal.add(errors)
            if troubles != self._written:
                self.journal.put_troubles(troubles)
        self._written = troubles

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


def _what(troubles: tuple[Trouble, ...]) -> list[tuple[str, int]]:
    """Which troubles there are, however often they were tried."""
    return [(trouble.shard, trouble.since_us) for trouble in troubles]
