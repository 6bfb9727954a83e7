"""Processes of this machine as the engine, for feeds that want no Java.

    driver ── a socket for each worker ──> worker: a task in, a receipt out, until the socket ends
      └── starts ──> nursery: imports what tasks need once, and forks the workers

A worker sees its socket end when the driver goes, however it goes, and ends then.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from catchment.engine.guarded import Guarded, receipts
from catchment.model.errors import EngineError

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")

WORKERS_MIN: Final = 2


class LocalEngine:
    """A worker for each processor, started when the first tasks come."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or max(len(os.sched_getaffinity(0)), WORKERS_MIN)
        self._pool: _Pool | None = None
        self._lock = threading.Lock()
        self._cancelled = False

    def each(self, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
        """As the port has it."""
        with self._lock:
            if self._cancelled:
                raise EngineError("the run was stopped before its tasks began")
            pool = self._pool = self._pool or _Pool(self._workers)
        try:
            return receipts(pool.each(Guarded(work), tasks))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.rest()
            raise EngineError(
                f"a worker of this machine ended before its task ({type(error).__name__}: {error}); was it killed, or "
                "is memory short?"
            ) from error
        except MemoryError as error:
            raise EngineError(f"a worker of this machine lacks memory: {error}") from error

    def check(self) -> None:
        """Workers can always be started."""

    def cancel(self) -> None:
        """Kill the workers."""
        with self._lock:
            self._cancelled = True
        self.rest()

    def rest(self) -> None:
        """End the workers; the next tasks start new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.end()

    def close(self) -> None:
        """End the workers."""
        self.rest()


class _Pool:
    """Workers that wait for tasks."""

    def __init__(self, workers: int) -> None:
        pairs = [Pipe() for _ in range(workers)]
        theirs = [their.fileno() for _, their in pairs]
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "catchment.engine.nursery", *map(str, theirs)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=theirs,
            process_group=0,  # Ctrl-C is the driver's
        )
        self._workers = workers
        # Sockets are closed with the pool: another thread may wait for what a worker says.
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for ours, their in pairs:
            their.close()
            self._free.put(ours)

    def each(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """What `work` gives for each task; raises EOFError or OSError when a worker has gone."""

        def handed_out(task: Any) -> Any:
            worker = self._free.get()
            try:
                worker.send((work, task))
                found = worker.recv()
            finally:
                self._free.put(worker)
            if isinstance(found, MemoryError):
                raise found
            return found

        with ThreadPoolExecutor(self._workers, thread_name_prefix="worker") as pool:
            return list(pool.map(handed_out, tasks))

    def end(self) -> None:
        """Kill all at once: what they write is not named by anything before its receipt."""
        with suppress(ProcessLookupError):
            os.killpg(self._nursery.pid, signal.SIGKILL)
        self._nursery.wait()
