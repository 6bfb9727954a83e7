"""Ctrl-C and SIGTERM: counted as they come, and as an event for commands that end in order.

Python runs a handler between two steps of the main thread, wherever that is. It may be inside the handler of the signal
before, or hold the lock of an event; or it may sleep, while another thread took the signal. So handlers here look at
what has come, which Python writes to a pipe at once, and an event is set by a thread that reads the pipe.
"""

import fcntl
import os
import signal
import struct
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from catchment.cli.output import EXIT_INTERRUPTED

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Heard:
    """The pipe to which Python writes each signal from `listen` on. Methods are for the main thread."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def listen(self) -> int:
        """Have it written here; where it was written before."""
        return signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    @property
    def count(self) -> int:
        """How many came, of which none was taken."""
        return int(struct.unpack("i", fcntl.ioctl(self._reading, termios.FIONREAD, bytes(4)))[0])

    def take(self) -> bytes:
        """Wait for some, and take them: their numbers, none at the end. Any thread may."""
        return os.read(self._reading, 64)

    def end(self) -> None:
        """No more are written here."""
        os.close(self._writing)

    def close(self) -> None:
        """Give up what is left to take."""
        os.close(self._reading)


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
        while numbers := heard.take():
            for _ in filter(STOPPING.__contains__, numbers):
                if stop.is_set() and restore is not None:
                    restore()
                    os.write(
                        2, b"catchment: stopped again, ended at once; the same command goes on from here\n"
                    )
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
        heard.close()
