"""The process from which the workers of this machine are forked, with all that tasks import loaded before.

    driver ── a socket for each worker ──> worker: a task in, a receipt out, until the socket ends
      └── a socket to order workers ──> nursery ── forks ──> worker

Each of them sees its socket end when the driver goes, however it goes, and ends then.

python -m catchment.engine.nursery 7      the number of the nursery's socket
"""

import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

_ORDER = b"worker"


class Nursery:
    """The driver's end of it. `pid`: its process."""

    def __init__(self, pid: int, control: socket.socket, wait: Callable[[], object]) -> None:
        self.pid = pid
        self._control = control
        self._wait = wait

    @classmethod
    def forked(cls) -> Self | None:
        """Forked from this process, which costs no imports; None where other threads run, whose locks a fork keeps."""
        if threading.active_count() > 1:
            return None
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            try:
                _begin(theirs)
                _raise_workers(theirs)
            finally:
                os._exit(0)
        theirs.close()
        return cls(pid, ours, lambda: os.waitpid(pid, 0))

    @classmethod
    def started(cls) -> Self:
        """A new program."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "catchment.engine.nursery", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is the driver's
            )
        return cls(process.pid, ours, process.wait)

    def worker(self) -> socket.socket:
        """The socket of a new worker; raises OSError when the nursery has ended."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [_ORDER], [theirs.fileno()])
        return ours

    def end(self) -> None:
        """End it. Its workers end with their sockets."""
        self._control.close()
        with suppress(ChildProcessError):
            self._wait()


def _begin(control: socket.socket) -> None:
    """Leave to the driver what is the driver's: its files, its terminal and its signals."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number != control.fileno():
            with suppress(OSError):
                os.close(number)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def _raise_workers(control: socket.socket) -> None:
    """Fork a worker for each socket that comes, until the driver's end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    gc.freeze()  # what is never looked at again stays shared
    while True:
        _, sockets, _, _ = socket.recv_fds(control, len(_ORDER), 1)
        if not sockets:
            return
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            theirs = Connection(sockets[0])
            threading.Thread(target=_end_with, args=(theirs,), daemon=True).start()
            _serve(theirs)
            os._exit(0)
        os.close(sockets[0])


def _serve(theirs: Connection) -> None:
    """Do one task after another until the driver's end of the socket is closed."""
    while True:
        try:
            work, task = theirs.recv()
        except (EOFError, OSError):
            return
        try:
            found: Any = work(task)
        except MemoryError as error:
            found = error
        theirs.send(found)


def _end_with(theirs: Connection) -> None:
    """End this process at once when the other end of the socket is closed, also in the middle of a task."""
    waiting = select.poll()
    waiting.register(theirs.fileno(), select.POLLRDHUP)
    waiting.poll()
    os._exit(0)


def main() -> None:
    """The new program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Loaded for the workers, which share the memory of it.
    from catchment.readers import run_task, verify  # noqa: F401

    _raise_workers(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
