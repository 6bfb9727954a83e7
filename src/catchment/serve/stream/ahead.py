"""Events for tasks: a thread pulls them, so a task may wait for the next one, be cancelled, and lose none."""

import asyncio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from catchment.serve.stream.events import Event, Heartbeat, VGtid

# A hand-over between threads costs a hundred times what an event costs.
_MOST: Final = 1000


class Ahead:
    """Pulls at most up to the next vgtid. One task at a time may ask.

    The pull that a cancelled task has asked for goes on, and whoever asks next gets its events.
    """

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._found: deque[Event] = deque()
        self._error: Exception | None = None
        self._pending: Future[list[Event]] | None = None
        # Not a pool of `catchment.world`: asyncio waits for these futures alone.
        self._pool: ThreadPoolExecutor | None = None

    async def next(self) -> Event | None:
        """The next event, None at the end. Raises what the events raise."""
        while not self._found:
            if self._pending is None:
                self._pool = self._pool or ThreadPoolExecutor(1, "events")
                self._pending = self._pool.submit(self._pull)
            try:
                found = await asyncio.shield(asyncio.wrap_future(self._pending))
            except asyncio.CancelledError:
                raise
            except BaseException:
                self._pending = None
                raise
            self._pending = None
            if not found:
                return None
            self._found.extend(found)
        return self._found.popleft()

    def pulled(self) -> Event | None:
        """An event that was pulled for a task and not taken; None where there is none."""
        return self._found.popleft() if self._found else None

    def end(self) -> None:
        """Wait for the pull that goes on; nothing is pulled after it."""
        if self._pool is not None:
            self._pool.shutdown()

    def _pull(self) -> list[Event]:
        if self._error is not None:
            raise self._error
        found: list[Event] = []
        try:
            for event in self._events:
                found.append(event)
                if len(found) >= _MOST or isinstance(event, VGtid | Heartbeat):
                    break
        except Exception as error:
            if not found:
                raise
            self._error = error
        return found
