"""The process from which the workers of this machine are forked, with all that tasks import loaded before.

python -m catchment.engine.nursery 7 9      the sockets of two workers
"""

import os
import select
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

# Loaded for the workers, which share the memory of it.
from catchment.readers import run_task, verify

__all__ = ["run_task", "verify"]


def serve(socket: Connection) -> None:
    """Do one task after another until the driver's end of the socket is closed."""
    while True:
        try:
            work, task = socket.recv()
        except (EOFError, OSError):
            return
        try:
            found: Any = work(task)
        except MemoryError as error:
            found = error
        socket.send(found)


def end_with(socket: Connection) -> None:
    """End this process at once when the other end of the socket is closed, also in the middle of a task."""
    waiting = select.poll()
    waiting.register(socket.fileno(), select.POLLRDHUP)
    waiting.poll()
    os._exit(0)


def main() -> None:
    """Fork a worker for each socket, and wait for their end."""
    sockets = [int(number) for number in sys.argv[1:]]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in sockets:
        if os.fork() == 0:
            for other in set(sockets) - {number}:
                os.close(other)
            socket = Connection(number)
            threading.Thread(target=end_with, args=(socket,), daemon=True).start()
            serve(socket)
            os._exit(0)
    for number in sockets:
        os.close(number)
    for _ in sockets:
        os.wait()


if __name__ == "__main__":
    main()
