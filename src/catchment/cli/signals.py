"""Ctrl-C and SIGTERM: counted as they come, and as an event for commands that end in order.

Python runs a handler between two steps of the main thread, wherever that is. It may be inside the handler of the signal
before, or hold the lock of an event; or it may wait for a lock, while the kernel gave the signal to another thread. So
a thread reads the pipe to which Python writes each signal at once. It counts them, sets the event and wakes the main
thread, whose handler then runs.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from catchment.cli.output import EXIT_INTERRUPTED

STOPPING = (signal.SIGINT, signal.SIGTERM)


# Its default is to do nothing, so the kernel, Java and other libraries leave it to programs.
_WAKING = signal.SIGURG


class Heard:
    """The pipe to which Python writes each signal from `listen` on. All but `numbers` is for the main thread."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def listen(self) -> int:
        """Have it written here; where it was written before."""
        signal.signal(_WAKING, _woken)
        return signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def numbers(self) -> Iterator[int]:
        """Each of `STOPPING` that comes, until `end`. The main thread has been woken for it: it may wait for a lock,
        and only the thread that takes a signal stops waiting."""
        while numbers := os.read(self._reading, 64):
            for number in filter(STOPPING.__contains__, numbers):
                signal.pthread_kill(threading.main_thread().ident or 0, _WAKING)
                yield number
        os.close(self._reading)

    def end(self) -> None:
        """No more are written here."""
        os.close(self._writing)


def _woken(number: int, frame: FrameType | None) -> None:
    """That it has a handler makes a wait of the main thread end, and other handlers run."""


@contextmanager
def stopped_by_signals(*, restore: Callable[[], None] | None = None) -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. A second one is a KeyboardInterrupt. With `restore` it ends the process
    behind that, for a session that waits for a shard cannot be interrupted. A run is always ready for it.
    """
    stop, heard = threading.Event(), Heard()
    interrupts: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        if restore is None and len(interrupts) > 1:
            raise KeyboardInterrupt

    def obey() -> None:
        for _ in heard.numbers():
            if stop.is_set() and restore is not None:
                restore()
                os.write(2, b"catchment: stopped again, ended at once; the same command goes on from here\n")
                os._exit(EXIT_INTERRUPTED)
            stop.set()

    thread = threading.Thread(target=obey, name="signals", daemon=True)
    thread.start()
    written = heard.listen()
    before = {number: signal.signal(number, on_signal) for number in STOPPING}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(written)
        heard.end()
        thread.join()
