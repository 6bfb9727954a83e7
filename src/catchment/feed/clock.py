"""The clock: reads the log offsets of all shards at once, and names cuts.

One thread, ten ticks a second by default. The clock drops a tick that goes backwards on a shard. At the second in a row
it reads the log at the shard's verified position. Either that is another log, or the tick before was torn (DESIGN 3).
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from catchment import world
from catchment.feed.shard_reader import ShardReader, may_pass
from catchment.model.epoch import Tick, epoch_number
from catchment.model.errors import ConnectionLost
from catchment.model.position import Position, Resets, Server
from catchment.model.source import Endpoint
from catchment.watch.troubles import Troubles

_T = TypeVar("_T")

# After this silence of a shard `after` raises; until then no cut is taken.
SILENT_SECONDS_MAX = 30.0


class _Question:
    """Shards that are to say how often RESET was said, and what they said."""

    def __init__(self, shards: Collection[str]) -> None:
        self.shards = sorted(set(shards))
        self.answered = world.event()
        self.found: dict[str, Resets] | Exception = {}

    def answer(self, found: dict[str, Resets] | Exception) -> None:
        """Tell who asked."""
        self.found = found
        self.answered.set()


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
        self._condition = world.condition()
        self._newest: Tick | None = None
        self._failed: Exception | None = None
        self._stopping = world.event()
        self._wake = world.event()
        self._questions: deque[_Question] = deque()
        self._thread = world.thread("clock", self._run)

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
        question = _Question(shards)
        self._questions.append(question)
        self._wake.set()
        if not question.answered.wait(SILENT_SECONDS_MAX):
            raise ConnectionLost(
                f"no answer from shards {', '.join(question.shards)} in {SILENT_SECONDS_MAX:.0f} s"
            )
        if isinstance(question.found, Exception):
            raise question.found
        return question.found

    def _beyond(self, number: int) -> Tick | None:
        return self._newest if self._newest is not None and self._newest.number > number else None

    def _run(self) -> None:
        silent_since: float | None = None
        with world.pool(max(1, len(self._readers) - 1), "tick") as pool:
            while not self._stopping.is_set():
                began = world.steady_seconds()
                try:
                    self._tick(pool)
                    silent_since = self._failed = None
                # An error of any kind: else whoever waits for a tick would wait for ever.
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

    def _rest_of(self, began: float, pool: world.Pool) -> None:
        """Wait for the next tick, and answer questions meanwhile."""
        while not self._stopping.is_set():
            self._wake.clear()
            while self._questions:
                self._answer(self._questions.popleft(), pool)
            if not self._wake.wait(max(0.0, self._seconds - (world.steady_seconds() - began))):
                return

    def _answer(self, question: "_Question", pool: world.Pool) -> None:
        try:
            question.answer(self._asked(question.shards, lambda reader: reader.resets(), pool))
        except Exception as error:
            question.answer(error)

    def _tick(self, pool: world.Pool) -> None:
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
        self, shards: Collection[str], ask: Callable[[ShardReader], _T], pool: world.Pool
    ) -> dict[str, _T]:
        """What every shard says, when the slowest has answered or given up. A session serves one thread at a time
        (PyMySQL's `threadsafety` is 1), and the next tick uses it again.

        Raises the error of a shard that did not answer, one that cannot pass before all others.
        """
        first, *others = shards
        asked = {shard: pool.submit(ask, self._readers[shard]) for shard in others}
        answers: dict[str, _T] = {}
        errors: list[BaseException] = []
        try:
            # By this thread: to hand a reading over takes half as long again as to read.
            answers[first] = ask(self._readers[first])
        except Exception as error:
            errors.append(error)
        for shard, future in asked.items():
            failed = future.exception()
            if failed is None:
                answers[shard] = future.result()
            else:
                errors.append(failed)
        if errors:
            raise min(errors, key=may_pass)
        return {shard: answers[shard] for shard in shards}

    def _fail(self, error: Exception) -> None:
        with self._condition:
            self._failed = error
            self._condition.notify_all()
