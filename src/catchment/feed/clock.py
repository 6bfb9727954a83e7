"""The clock: reads the log offsets of all shards at once, and names cuts.

One thread, ten ticks a second by default. A tick that goes backwards on a shard is dropped. At the second in
a row the log is read at the shard's verified position: either it is another log, or the tick before was torn
(DESIGN 3).
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

from catchment.feed.shard_reader import ShardReader, may_pass
from catchment.model.epoch import Tick, epoch_number
from catchment.model.errors import ConnectionLost
from catchment.model.position import Position, Resets, Server
from catchment.model.source import Endpoint
from catchment.watch.troubles import Troubles

_T = TypeVar("_T")

# After this silence of a shard `after` raises; until then no cut is taken.
SILENT_SECONDS_MAX = 30.0


def _done(work: Callable[[], _T]) -> Future[_T]:
    """The future of work that this thread does itself: to hand a reading over takes half as long again as to read."""
    future: Future[_T] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future


@dataclass(frozen=True)
class _Question:
    """Shards that are to say how often RESET was said."""

    shards: frozenset[str]
    answer: Future[dict[str, Resets]]


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
            shard: ShardReader(endpoint, servers[shard], told) for shard, endpoint in endpoints.items()
        }
        self._seconds = seconds
        self._number = last
        self._condition = threading.Condition()
        self._newest: Tick | None = None
        self._failed: Exception | None = None
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._questions: SimpleQueue[_Question] = SimpleQueue()
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
        self._wake.set()
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

    def resets(self, shards: Collection[str]) -> dict[str, Resets]:
        """How often RESET was said on the shards as of now, asked in the sessions of the ticks.

        Raises the error of a shard that did not answer, ConnectionLost when none does.
        """
        question = _Question(frozenset(shards), Future())
        self._questions.put(question)
        self._wake.set()
        try:
            return question.answer.result(SILENT_SECONDS_MAX)
        except TimeoutError:
            raise ConnectionLost(
                f"no answer from shards {', '.join(sorted(shards))} in {SILENT_SECONDS_MAX:.0f} s"
            ) from None

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
                    passing = may_pass(error)
                    if not passing or began - silent_since > SILENT_SECONDS_MAX:
                        self._fail(error)
                    if not passing:
                        break
                self._rest_of(began, pool)
        for reader in self._readers.values():
            reader.close()

    def _rest_of(self, began: float, pool: ThreadPoolExecutor) -> None:
        """Wait for the next tick, and answer questions meanwhile."""
        while not self._stopping.is_set():
            self._wake.clear()
            while not self._questions.empty():
                self._answer(self._questions.get(), pool)
            if not self._wake.wait(max(0.0, self._seconds - (time.monotonic() - began))):
                return

    def _answer(self, question: "_Question", pool: ThreadPoolExecutor) -> None:
        shards = sorted(question.shards)
        try:
            found = self._asked(shards, lambda reader: reader.resets(), pool)
        except Exception as error:
            question.answer.set_exception(error)
        else:
            question.answer.set_result(found)

    def _tick(self, pool: ThreadPoolExecutor) -> None:
        readings = self._asked(tuple(self._readers), lambda reader: reader.read(), pool)
        accepted = {shard: self._readers[shard].accept(offset) for shard, (offset, _) in readings.items()}
        offsets = {shard: offset for shard, offset in accepted.items() if offset is not None}
        if len(offsets) < len(accepted):
            return
        times = [taken for _, taken in readings.values()]
        with self._condition:
            self._number = max(self._number + 1, epoch_number(min(times) // 1_000_000))
            self._newest = Tick(self._number, min(times), max(times) - min(times), offsets)
            self._condition.notify_all()

    def _asked(
        self, shards: Collection[str], ask: Callable[[ShardReader], _T], pool: ThreadPoolExecutor
    ) -> dict[str, _T]:
        """What every shard says, when the slowest has answered or given up: a session serves one thread at a time
        (PyMySQL's `threadsafety` is 1), and the next tick uses it again.

        Raises the error of a shard that did not answer, one that cannot pass before all others.
        """
        first, *others = shards
        asked = {shard: pool.submit(ask, self._readers[shard]) for shard in others}
        asked[first] = _done(lambda: ask(self._readers[first]))
        wait(asked.values())
        errors = [error for future in asked.values() if (error := future.exception()) is not None]
        if errors:
            raise min(errors, key=may_pass)
        return {shard: asked[shard].result() for shard in shards}

    def _fail(self, error: Exception) -> None:
        with self._condition:
            self._failed = error
            self._condition.notify_all()
