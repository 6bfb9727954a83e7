"""Tells programs what a run does: each event is one line of JSON, written at once.

A thread of its own makes and writes the lines. The run puts what it tells into a queue and waits for nobody. Where the
reader is so slow that the queue is full, events are left out and counted. Where it is gone, nothing more is told.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial

import msgspec

from catchment import world
from catchment.state.notes import ErrorNote
from catchment.watch.event_lines import Event, EventLines
from catchment.watch.report import Observer

# A manifest waits with its epoch, so that these bound the memory that a slow reader can cost.
WAITING_MAX = 1000
END_SECONDS_MAX = 15.0
_LOOK_SECONDS = 0.2

_log = logging.getLogger(__name__)


class Events:
    """Those of one run. `write` brings a line to the reader, and raises OSError where that is gone. `stop` is looked
    at, so that its event tells that the run is about to end."""

    def __init__(self, write: Callable[[str], None], stop: threading.Event) -> None:
        self._write = write
        self._stop = stop
        self._lines = EventLines()
        self._waiting: queue.Queue[tuple[int, Callable[[], Iterator[Event]]] | None] = queue.Queue(
            WAITING_MAX
        )
        self._left_out = 0
        self._gone = False
        self._stopping = False
        self._thread = threading.Thread(target=self._tell, name="events", daemon=True)
        self._thread.start()

    def observer(self) -> Observer:
        """What the run is to tell."""
        lines = self._lines
        return Observer(
            doing=lambda what: self._put(partial(lines.doing, what)),
            committed=lambda report: self._put(partial(lines.committed, report)),
            rested=lambda rest: self._put(partial(lines.rested, rest)),
            in_trouble=lambda troubles: self._put(partial(lines.in_trouble, troubles)),
            throttled=lambda shards: self._put(partial(lines.throttled, shards)),
            leased=lambda fence: self._put(partial(lines.leased, fence)),
            began=lambda standing: self._put(partial(lines.began, standing)),
            settled=lambda tables: self._put(partial(lines.settled, tables)),
            answered=lambda orders: self._put(partial(lines.answered, orders)),
            noticed=lambda told: self._put(partial(lines.noticed, told)),
            held=lambda held: self._put(partial(lines.held, held)),
        )

    def caught_up(self) -> None:
        """The run has come to the end that it was to come to."""
        self._put(self._lines.caught_up)

    def tell(self, event: str, **fields: object) -> None:
        """An event of the command itself."""
        self._put(lambda: iter([{"event": event, **fields}]))

    def ended(self, exit_code: int, state: str, error: BaseException | None = None, **fields: object) -> None:
        """The last event, and the end: what waits is written, but nobody waits longer than END_SECONDS_MAX for that."""
        if error is not None:
            note = ErrorNote.of(error, 0)
            fields = {**fields, "error": {"kind": note.kind, "message": note.message, "shard": note.shard}}
        self.tell("ended", exit_code=exit_code, state=state, **fields)
        with suppress(queue.Full):
            self._waiting.put(None, timeout=END_SECONDS_MAX / 2)
        self._thread.join(END_SECONDS_MAX)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Tell what Catchment logs meanwhile as a warning or worse."""
        logger, handler = logging.getLogger("catchment"), _Warnings(self)
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)

    def warned(self, message: str) -> None:
        """The log got a line."""
        self._put(partial(self._lines.warned, message))

    def _put(self, made: Callable[[], Iterator[Event]]) -> None:
        if self._gone:
            return
        try:
            self._waiting.put_nowait((world.now_us(), made))
        except queue.Full:
            self._left_out += 1

    def _tell(self) -> None:
        while True:
            self._look_at_stop(world.now_us())
            try:
                waiting = self._waiting.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if waiting is None:
                return
            time_us, made = waiting
            left_out, self._left_out = self._left_out, 0
            try:
                if left_out:
                    self._line(time_us, {"event": "left_out", "events": left_out})
                for event in made():
                    if event["event"] == "ended":
                        self._look_at_stop(time_us)
                    self._line(time_us, event)
            except OSError as fault:
                self._gone = True
                _log.warning("the reader of events is gone (%s), and the feed goes on", fault.strerror)
            except Exception as error:
                _log.warning("telling what a run does failed, and the feed goes on", exc_info=error)

    def _look_at_stop(self, time_us: int) -> None:
        if self._stop.is_set() and not self._stopping and not self._gone:
            self._stopping = True
            with suppress(OSError):  # the next line meets it, too
                self._line(time_us, {"event": "stopping"})

    def _line(self, time_us: int, event: Event) -> None:
        if self._gone:
            return
        seconds = datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="milliseconds")
        told = {"time": seconds.replace("+00:00", "Z"), **event}
        self._write(msgspec.json.encode(told).decode())


class _Warnings(logging.Handler):
    """Hands on warnings as events, beside the log."""

    def __init__(self, events: Events) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        self._events.warned(record.getMessage())
