"""Ctrl-C and SIGTERM as an event, for commands that end in order."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from catchment.cli.output import EXIT_INTERRUPTED


@contextmanager
def stopped_by_signals(*, restore: Callable[[], None] | None = None) -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. A second one is a KeyboardInterrupt. With `restore` it ends the process
    behind that, for a session that waits for a shard cannot be interrupted. A run is always ready for it.
    """
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if not stop.is_set():
            stop.set()
        elif restore is not None:
            restore()
            os.write(2, b"catchment: stopped again, ended at once; the same command goes on from here\n")
            os._exit(EXIT_INTERRUPTED)
        else:
            raise KeyboardInterrupt

    before = {s: signal.signal(s, on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
