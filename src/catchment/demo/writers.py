"""Threads that keep a source under writes at a steady rate, and can be held between two transactions."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

Session: TypeAlias = "Connection[Cursor]"
Connect: TypeAlias = Callable[[], Session]
Transact: TypeAlias = Callable[[Sequence[Session], random.Random], int]

DEADLOCK, LOCK_WAIT_TIMEOUT, DUPLICATE_KEY = 1213, 1205, 1062
_CLASHES = (DEADLOCK, LOCK_WAIT_TIMEOUT, DUPLICATE_KEY)
_RECONNECT_SECONDS = 0.05


class Writer(threading.Thread):
    """Runs `transact(sessions, rng)` until stopped, `rate` times a second (None: unlimited).

    One session is opened per entry of `connects`. `transact` runs whole transactions (BEGIN to COMMIT or
    ROLLBACK) and returns how many rows they changed. Deadlocks, lock waits and duplicate keys are rolled back
    and counted in `clashes`. A lost connection is opened again if `reconnect` is set; every other error ends
    the thread and is raised by `pause` and `stop`.
    """

    def __init__(
        self,
        connects: Sequence[Connect],
        transact: Transact,
        *,
        seed: int,
        rate: float | None = None,
        reconnect: bool = False,
    ) -> None:
        super().__init__(daemon=True, name=f"writer-{seed}")
        self.transactions = 0
        self.changes = 0
        self.clashes = 0
        self._connects = connects
        self._transact = transact
        self._rng = random.Random(seed)
        self._interval = 1.0 / rate if rate else 0.0
        self._reconnect = reconnect
        self._sessions: list[Session] = []
        self._between = threading.Lock()  # held during a transaction
        self._free_to_run = threading.Event()
        self._free_to_run.set()
        self._stopping = threading.Event()
        self._error: Exception | None = None

    def pause(self) -> None:
        """Return when no transaction is open; none begins before `resume`."""
        self._free_to_run.clear()
        with self._between:
            pass
        self._raise_error()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._free_to_run.set()

    def stop(self) -> None:
        """End after the running transaction; raises the error that ended the thread before."""
        self._stopping.set()
        self._free_to_run.set()
        if self.ident is not None:
            self.join()
        self._raise_error()

    def run(self) -> None:
        """The thread's work; call `start`."""
        due = time.monotonic()
        try:
            while not self._stopping.is_set():
                self._free_to_run.wait()
                with self._between:
                    if self._free_to_run.is_set() and not self._stopping.is_set():
                        self._one_transaction()
                # a writer that fell behind, or was paused, does not catch up in a burst
                due = max(due + self._interval, time.monotonic())
                self._stopping.wait(due - time.monotonic())
        except Exception as error:
            self._error = error
        finally:
            self._close()

    def _one_transaction(self) -> None:
        try:
            if not self._sessions:
                for connect in self._connects:
                    self._sessions.append(connect())
            self.changes += self._transact(self._sessions, self._rng)
            self.transactions += 1
        except (
            pymysql.err.OperationalError,
            pymysql.err.IntegrityError,
            pymysql.err.InterfaceError,
        ) as error:
            if error.args and error.args[0] in _CLASHES:
                self.clashes += 1
                for session in self._sessions:
                    session.rollback()
            elif self._reconnect and not isinstance(error, pymysql.err.IntegrityError):
                self._close()
                self._stopping.wait(_RECONNECT_SECONDS)
            else:
                raise

    def _close(self) -> None:
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            if session.open:
                session.close()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error


class Writers:
    """Several writers handled as one; usable as a context manager that starts and stops them."""

    def __init__(self, writers: Sequence[Writer]) -> None:
        self._writers = list(writers)

    @property
    def transactions(self) -> int:
        """Transactions run to their end, those rolled back on purpose among them."""
        return sum(writer.transactions for writer in self._writers)

    @property
    def changes(self) -> int:
        """Rows changed, as the transactions reported them."""
        return sum(writer.changes for writer in self._writers)

    def start(self) -> "Writers":
        """Start all threads."""
        for writer in self._writers:
            writer.start()
        return self

    def pause(self) -> None:
        """Return when no writer has a transaction open."""
        for writer in self._writers:
            writer.pause()

    def resume(self) -> None:
        """Let all writers go on."""
        for writer in self._writers:
            writer.resume()

    def stop(self) -> None:
        """End all writers; raises the first error that one of them met."""
        errors = []
        for writer in self._writers:
            try:
                writer.stop()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No transaction is open inside the block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def __enter__(self) -> "Writers":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
