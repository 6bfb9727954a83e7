"""What a run that goes on is in trouble with: shards that are away, epochs that are read again."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from catchment import world
from catchment.model.errors import CatchmentError
from catchment.model.log_fields import about
from catchment.model.named import counted
from catchment.state.notes import LOG, ErrorNote, Trouble, with_errors

# An epoch is often read twice, as when a cut was torn; more than this is worth a line.
_EPOCH = ("", "")
_EPOCH_LOGGED_FROM = 3
_LOG_SECONDS_MIN = 60.0
_LOG_SECONDS_MAX = 3600.0

_log = logging.getLogger(__name__)


@dataclass
class _Known:
    trouble: Trouble
    error: CatchmentError
    log_after_us: int
    logged: bool = False


class Troubles:
    """Counts failures until what failed succeeds, and logs them: at first, then ever more rarely.

    Any thread may call it. `now` is replaced whole. `heard` is called with each new one, in order, in the thread that
    met the trouble: one that passes between two looks at `now` is heard of, too.
    """

    def __init__(self) -> None:
        self.now: tuple[Trouble, ...] = ()
        self.heard: Callable[[tuple[Trouble, ...]], None] = lambda troubles: None
        self._lock = world.lock()
        self._known: dict[tuple[str, str], _Known] = {}
        self._met: tuple[ErrorNote, ...] = ()

    def failed(self, error: CatchmentError, shard: str = "", since_us: int | None = None) -> None:
        """A try that began at `since_us` failed: the clock's of a shard, or the loop's of an epoch."""
        self._failed(error, (shard, ""), since_us)

    def passed(self, shard: str = "") -> None:
        """A try succeeded."""
        self._passed((shard, ""))

    def went_away(self, error: CatchmentError) -> None:
        """What the error calls `away` did not answer: no shard."""
        self._failed(error, ("", error.away))

    def came_back(self, away: str) -> None:
        """It answers again."""
        self._passed(("", away))

    def log_unread(self, error: CatchmentError) -> None:
        """An epoch closed without a shard of which the log could not be read, though it may say where that ends."""
        self._failed(error, (error.shard, LOG))

    def log_read(self, shard: str) -> None:
        """The log of a shard was read."""
        self._passed((shard, LOG))

    def take_errors(self) -> tuple[ErrorNote, ...]:
        """The errors met since the last call."""
        with self._lock:
            met, self._met = self._met, ()
        return met

    def _failed(self, error: CatchmentError, key: tuple[str, str], since_us: int | None = None) -> None:
        now = world.now_us()
        with self._lock:
            if any(known.error is error for known in self._known.values()):
                return  # the clock's, which the loop meets when it waits for a tick
            known, (shard, away) = self._known.get(key), key
            since, tries = (
                (known.trouble.since_us, known.trouble.tries + 1) if known else (since_us or now, 1)
            )
            away = error.away if shard and not away else away
            trouble = Trouble(shard, since, tries, type(error).__name__, str(error), away)
            if known is None:
                known = self._known[key] = _Known(trouble, error, now)
            known.trouble, known.error = trouble, error
            self._met = with_errors(self._met, (ErrorNote.of(error, now),))
            self._replace()
            self._maybe_log(known, now)

    def _passed(self, key: tuple[str, str]) -> None:
        if key not in self._known:  # as nearly always
            return
        with self._lock:
            known = self._known.pop(key)
            self._replace()
        if known.logged:
            seconds = (world.now_us() - known.trouble.since_us) / 1e6
            shard, away = key
            if shard:
                whole = f"the log of shard {shard} is read" if away else f"shard {shard} answers"
            else:
                whole = f"{away} answers" if away else "the epoch was read"
            _log.info(
                "%s again after %.0f s (%s)",
                whole,
                seconds,
                counted(known.trouble.tries, "try", "tries"),
                extra=about(shard=shard),
            )

    def _replace(self) -> None:
        self.now = tuple(known.trouble for _, known in sorted(self._known.items()))
        self.heard(self.now)

    def _maybe_log(self, known: _Known, now: int) -> None:
        early = known.trouble.key == _EPOCH and known.trouble.tries < _EPOCH_LOGGED_FROM
        if now < known.log_after_us or early:
            return
        _log.warning("%s", known.trouble, extra=about(shard=known.trouble.shard, error=known.error))
        known.logged = True
        # Twice the time that it has lasted: 1, 2, 4 ... minutes after its beginning, then hourly.
        lasted = (now - known.trouble.since_us) / 1e6
        known.log_after_us = now + int(min(max(lasted, _LOG_SECONDS_MIN), _LOG_SECONDS_MAX) * 1e6)
