"""The clock: reads the log offsets of all shards at once, and names cuts.

One thread, ten ticks a second by default. A tick that goes backwards on a shard is dropped. At the second in
a row the log is read at the shard's verified position: either it is another log, or the tick before was torn
(DESIGN 3).
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

import pymysql
from pymysql.connections import Connection

from catchment.epoch.chain import must_continue, went_backwards
from catchment.model.epoch import Tick, epoch_number
from catchment.model.errors import NEW_FEED, CatchmentError, Diverged, Purged, Retry, WireError
from catchment.model.position import DUMP_OFFSET_MAX, LogOffset, Position, Server, reaches
from catchment.model.source import Endpoint
from catchment.source.identity import must_be_same_log
from catchment.source.offsets import snapshot_offset, snapshot_session
from catchment.source.segment import read_facts
from catchment.state.moments import now_us
from catchment.watch.troubles import Troubles

_T = TypeVar("_T")

BACKWARD_TICKS_MAX = 2
# After this silence of a shard `after` raises; until then no cut is taken.
SILENT_SECONDS_MAX = 30.0


class _Reader:
    """One shard's session for offsets; reconnects when the connection is lost."""

    def __init__(self, endpoint: Endpoint, server: Server, troubles: Troubles) -> None:
        self.endpoint = endpoint
        self.server = server
        self.troubles = troubles
        self.backward = 0
        self.newest: LogOffset | None = None
        self.verified: Position | None = None
        self._connection: Connection[pymysql.cursors.Cursor] | None = None

    def read(self) -> tuple[LogOffset, int]:
        """The offset now, and the time it was read in microseconds since 1970."""
        began = now_us()
        try:
            if self._connection is None:
                self._connection = snapshot_session(self.endpoint, self.server)
            offset = snapshot_offset(self._connection, self.endpoint)
        except CatchmentError as error:
            error.shard = self.endpoint.shard
            self.close()
            if _may_pass(error):
                self.troubles.failed(error, error.shard, began)
            raise
        self.troubles.passed(self.endpoint.shard)
        return offset, now_us()

    def close(self) -> None:
        """Give the session up."""
        if self._connection is not None:
            with suppress(pymysql.err.Error):
                self._connection.close()
            self._connection = None

    def accept(self, offset: LogOffset) -> LogOffset | None:
        """The offset that may enter a tick, None when the tick is to be dropped.

        A second step backwards in a row: Diverged when the log is not the one read before. Else the tick
        before was torn, as FLUSH BINARY LOGS during a commit makes them, and the clock goes on from this
        offset; the cut stays where it is while the offset lies before it.

        An offset from which no dump can start is dropped, too: a transaction of more than 4 GiB was written, and the
        server is about to begin a new file.
        """
        if offset.offset > DUMP_OFFSET_MAX:
            return None
        seen = [self.newest, self.verified.at if self.verified else None]
        if not any(went_backwards(before, offset) for before in seen if before is not None):
            self.backward = 0
            self.newest = offset
            return offset
        self.backward += 1
        if self.backward < BACKWARD_TICKS_MAX:
            return None
        self._must_be_same_log(offset)
        self.backward = 0
        if self.verified is not None and not reaches(offset, self.verified.at):
            offset = self.verified.at
        self.newest = offset
        return offset

    def _must_be_same_log(self, offset: LogOffset) -> None:
        """Raise Diverged unless the log can be read at the verified position, in a file of the same birth."""
        verified, shard = self.verified, self.endpoint.shard
        try:
            if verified is not None and verified.at.base == offset.base:
                must_be_same_log(self.endpoint, verified)
                stretch = read_facts(self.endpoint, self.server, verified, verified.at)
                must_continue(shard, verified, stretch.files[0].born, None)
                return
            reason = None
        except (Diverged, Purged, WireError) as error:
            reason = error
        raise Diverged(
            f"shard {shard}: the log stood at {self.newest} and now stands at {offset}: "
            f"it was reset (RESET MASTER) or the server was replaced; start {NEW_FEED} to copy again"
        ) from reason


def _done(work: Callable[[], _T]) -> Future[_T]:
    """The future of work that this thread does itself: to hand a reading over takes half as long again as to read."""
    future: Future[_T] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future


def _may_pass(error: BaseException) -> bool:
    """Whether a later tick can succeed."""
    return isinstance(error, CatchmentError) and error.retry is not Retry.NEVER


class Clock:
    """Takes ticks in a thread of its own. `after` gives the newest one beyond a tick, and waits for it."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        servers: Mapping[str, Server],
        seconds: float,
        last: int,
        troubles: Troubles | None = None,
    ) -> None:
        told = troubles or Troubles()
        self._readers = {
            shard: _Reader(endpoint, servers[shard], told) for shard, endpoint in endpoints.items()
        }
        self._seconds = seconds
        self._number = last
        self._condition = threading.Condition()
        self._newest: Tick | None = None
        self._failed: Exception | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock", daemon=True)

    def start(self, cut: Mapping[str, Position]) -> "Clock":
        """Begin to tick; offsets before the verified positions of `cut` count as backwards."""
        self.verified(cut)
        for shard, position in cut.items():
            self._readers[shard].newest = position.at
        self._thread.start()
        return self

    def verified(self, cut: Mapping[str, Position]) -> None:
        """Tell the positions that the chain of segments has reached."""
        for shard, position in cut.items():
            self._readers[shard].verified = position

    def stop(self) -> None:
        """End the thread and the sessions."""
        self._stopping.set()
        self._thread.join(timeout=15)

    def after(self, number: int, timeout: float) -> Tick | None:
        """The newest tick if it is beyond tick `number`, else wait for one; None at the timeout. Raises what
        ended the clock, and ConnectionLost while a shard has been silent for too long: later the clock may go on.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._failed or self._beyond(number), timeout)
            if self._failed is not None:
                raise self._failed
            return self._beyond(number)

    def _beyond(self, number: int) -> Tick | None:
        return self._newest if self._newest is not None and self._newest.number > number else None

    def _run(self) -> None:
        silent_since: float | None = None
        with ThreadPoolExecutor(max(1, len(self._readers) - 1), thread_name_prefix="tick") as pool:
            while not self._stopping.is_set():
                began = time.monotonic()
                try:
                    self._tick(pool)
                    silent_since = self._failed = None
                # Of any kind: whoever waits for a tick would else wait for ever.
                except Exception as error:
                    silent_since = silent_since or began
                    passing = _may_pass(error)
                    if not passing or began - silent_since > SILENT_SECONDS_MAX:
                        self._fail(error)
                    if not passing:
                        break
                self._stopping.wait(max(0.0, self._seconds - (time.monotonic() - began)))
        for reader in self._readers.values():
            reader.close()

    def _tick(self, pool: ThreadPoolExecutor) -> None:
        readings = self._readings(pool)
        accepted = {shard: self._readers[shard].accept(offset) for shard, (offset, _) in readings.items()}
        offsets = {shard: offset for shard, offset in accepted.items() if offset is not None}
        if len(offsets) < len(accepted):
            return
        times = [taken for _, taken in readings.values()]
        with self._condition:
            self._number = max(self._number + 1, epoch_number(min(times) // 1_000_000))
            self._newest = Tick(self._number, min(times), max(times) - min(times), offsets)
            self._condition.notify_all()

    def _readings(self, pool: ThreadPoolExecutor) -> dict[str, tuple[LogOffset, int]]:
        """What every shard says, when the slowest has answered or given up: a session serves one thread at a time
        (PyMySQL's `threadsafety` is 1), and the next tick uses it again.

        Raises the error of a shard that did not answer, one that cannot pass before all others.
        """
        first, *others = self._readers
        asked = {shard: pool.submit(self._readers[shard].read) for shard in others}
        asked[first] = _done(self._readers[first].read)
        wait(asked.values())
        errors = [error for future in asked.values() if (error := future.exception()) is not None]
        if errors:
            raise min(errors, key=_may_pass)
        return {shard: asked[shard].result() for shard in self._readers}

    def _fail(self, error: Exception) -> None:
        with self._condition:
            self._failed = error
            self._condition.notify_all()
