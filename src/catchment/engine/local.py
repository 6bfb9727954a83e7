"""Processes of this machine as the engine, for feeds that want no Java (nursery.py says where they come from)."""

import os
import pickle
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from catchment.engine.guarded import Guarded, receipts
from catchment.engine.nursery import Nursery
from catchment.model.errors import EngineError

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")

WORKERS_MIN: Final = 2


class LocalEngine:
    """A worker for each processor, started when the first tasks come, from `nursery` if there is one already."""

    def __init__(self, workers: int | None = None, nursery: Nursery | None = None) -> None:
        self._nursery = nursery
        self._workers = workers or max(len(os.sched_getaffinity(0)), WORKERS_MIN)
        self._pool: _Pool | None = None
        self._lock = threading.Lock()
        self._cancelled = False

    def each(self, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
        """As the port has it."""
        with self._lock:
            if self._cancelled:
                raise EngineError("the run was stopped before its tasks began")
        try:
            pool = self._started()
            return receipts(pool.each(Guarded(work), tasks))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.close()
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
        """End the workers, and where they come from."""
        self.rest()
        with self._lock:
            nursery, self._nursery = self._nursery, None
        if nursery is not None:
            nursery.end()

    def _started(self) -> "_Pool":
        with self._lock:
            self._nursery = self._nursery or Nursery.started()
            self._pool = self._pool or _Pool([self._nursery.worker() for _ in range(self._workers)])
            return self._pool


class _Pool:
    """Workers that wait for tasks."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._sockets = sockets
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for ours in sockets:
            self._free.put(Connection(os.dup(ours.fileno())))

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

        with ThreadPoolExecutor(len(self._sockets), thread_name_prefix="worker") as pool:
            try:
                return list(pool.map(handed_out, tasks))
            except KeyboardInterrupt:
                self.end()  # else the pool would wait for all of them, and a shard may be silent
                raise

    def end(self) -> None:
        """End all at once: what they write is not named by anything before its receipt.

        Their sockets are closed with the pool: another thread may wait for what a worker says.
        """
        for ours in self._sockets:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            ours.close()
