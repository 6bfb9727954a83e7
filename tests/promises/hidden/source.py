"""A server whose commits are held again and again, beside free writers."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from pymysql.cursors import Cursor
from pymysql.err import OperationalError

from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session, Transact, Writer, Writers
from catchment.model.source import Endpoint
from tests.world.batch import BATCHES, execute_together
from tests.world.held import Background, commits_wait, ends_on_release, hold_commits, release
from tests.world.new_log_file import begin_new_file

KEYS = 1200
TABLES = {"d.t": ("id",), "d.told": ("writer",)}
_WRITERS = 16
_RATE = 6.0  # transactions of each in a second, when none is held
_LOADED = 800
_TIMEOUT_MS = 20_000
_DELAY_MS = 10, 60  # of holds that nobody can end


def create(server: PrivateServer) -> None:
    """`d.t` holds rows to copy; `d.told` tells how many transactions each writer has committed."""
    server.sql(
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v MEDIUMTEXT CHARACTER SET ascii)",
        "CREATE TABLE d.told (writer INT PRIMARY KEY, n INT)",
        f"INSERT INTO d.t SELECT seq * 3 DIV 2, CONCAT('loaded ', seq) FROM seq_1_to_{_LOADED}",
        f"INSERT INTO d.told SELECT seq, 0 FROM seq_0_to_{_WRITERS - 1}",
    )
    # the first cut then lies behind the tables' own creation, over which no chunk can be read
    begin_new_file(server)


def endpoint(server: PrivateServer) -> Endpoint:
    """The server as shard `a`, with the feed's user."""
    return Endpoint("a", server.host, server.port, "catchment", server.password)


def _transact(writer: int, filling: int, xa_share: float) -> Transact:
    told = 0

    def transact(sessions: Sequence[Session], rng: random.Random) -> int:
        nonlocal told
        value = f"{writer} {told + 1} " + "x" * (filling if rng.random() < 0.02 else rng.randrange(60))
        xid = f"'{writer}-{told + 1}'" if rng.random() < xa_share else None
        with sessions[0].cursor() as cursor:
            changes = [_change(cursor, rng, value) for _ in range(rng.randint(1, 3))]
            changes.append(f"UPDATE d.told SET n = {told + 1} WHERE writer = {writer}")
            if xid is None:
                rows = execute_together(cursor, ["BEGIN", *changes, "COMMIT"])
            else:
                rows = _commit_in_two(cursor, changes, xid, rng)
        told += 1
        return rows

    return transact


def _commit_in_two(cursor: Cursor, changes: Sequence[str], xid: str, rng: random.Random) -> int:
    """An XA transaction of the changes, prepared and committed some time apart."""
    try:
        rows = execute_together(cursor, [f"XA START {xid}", *changes, f"XA END {xid}", f"XA PREPARE {xid}"])
    except OperationalError:
        for rest in ("END", "ROLLBACK"):  # a deadlock has ended its work, but not the transaction
            with suppress(OperationalError):
                cursor.execute(f"XA {rest} {xid}")
        raise
    time.sleep(rng.choice((0, 0, rng.uniform(0, 0.1))))
    cursor.execute(f"XA COMMIT {xid}")
    return rows


def _change(cursor: Cursor, rng: random.Random, value: str) -> str:
    key = rng.randint(1, KEYS)
    kind = rng.random()
    if kind < 0.2:
        return cursor.mogrify("DELETE FROM d.t WHERE id = %s", (key,))
    if kind < 0.4:
        return cursor.mogrify(
            "UPDATE IGNORE d.t SET id = %s, v = %s WHERE id = %s", (rng.randint(1, KEYS), value, key)
        )
    return cursor.mogrify(
        "INSERT INTO d.t VALUES (%s, %s) ON DUPLICATE KEY UPDATE v = VALUES(v)", (key, value)
    )


class Holder(threading.Thread):
    """Holds all commits for some milliseconds, lets them go, and so on; in some holds the log is flushed.

    `held` counts holds in which a commit was seen waiting, `flushed` those with FLUSH BINARY LOGS inside.
    """

    def __init__(self, server: PrivateServer, seed: int, flush_share: float) -> None:
        super().__init__(daemon=True, name="holder")
        self.held = 0
        self.flushed = 0
        self._server = server
        self._rng = random.Random(seed)
        self._flush_share = flush_share
        self._stopping = threading.Event()
        self._error: Exception | None = None

    def run(self) -> None:
        """The thread's work; call `start`."""
        try:
            while not self._stopping.is_set():
                self._hold()
                self._stopping.wait(self._rng.uniform(0.0, 0.04))
        except Exception as error:
            self._error = error
        finally:
            release(self._server)

    def _hold(self) -> None:
        hold_commits(
            self._server, _TIMEOUT_MS if ends_on_release(self._server) else self._rng.randint(*_DELAY_MS)
        )
        deadline = time.monotonic() + 1.0
        while not (waiting := commits_wait(self._server)) and time.monotonic() < deadline:
            time.sleep(0.004)
        flush: Background | None = None
        if waiting and self._rng.random() < self._flush_share:
            flush = _flush(self._server)
        self._stopping.wait(self._rng.uniform(0.005, 0.05))
        self.held += waiting
        release(self._server)
        if flush is not None:
            flush.finish()
            self.flushed += 1

    def stop(self) -> None:
        """End with no commit held; raises the error that ended the thread."""
        self._stopping.set()
        self.join()
        if self._error is not None:
            raise self._error


def _flush(server: PrivateServer) -> Background:
    """FLUSH that may wait for the end of the hold: the next commit keeps the log's lock."""
    flush = Background(server, ["FLUSH BINARY LOGS"])
    flush.start()
    return flush


@contextmanager
def under_holds(
    server: PrivateServer, seed: int, *, filling: int, flush_share: float = 0.15, xa_share: float = 0.0
) -> Iterator[Holder]:
    """16 free writers (one row in fifty is of `filling` bytes; `xa_share` of their transactions are XA) and the
    holder run inside the block."""
    connect = partial(server.connect, **BATCHES)
    writers = Writers(
        [
            Writer([connect], _transact(n, filling, xa_share), seed=seed * 100 + n, rate=_RATE)
            for n in range(_WRITERS)
        ]
    )
    holder = Holder(server, seed, flush_share)
    with writers:
        holder.start()
        try:
            yield holder
        finally:
            holder.stop()
