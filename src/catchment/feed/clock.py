"""The clock: reads the log offsets of all shards at once, and names cuts.

One thread. It ticks when somebody asks, ten times a second at most by default; else once a second, so that a silent
shard is noticed. The clock drops a tick that goes backwards on a shard. At the second in a row
it reads the log at the shard's verified position. Either that is another log, or the tick before was torn (DESIGN 3).
"""

from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress

from catchment import world
from catchment.feed.ask_shards import LATE_SECONDS, Answers, ask_all
from catchment.feed.shard_reader import ALL_READY, Admit, ShardReader
from catchment.model.cut import Tick
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import CatchmentError, ConnectionLost, HeldUp, Retry
from catchment.model.position import LogOffset, Position, Resets, Server, reaches
from catchment.model.retries import may_pass
from catchment.model.source import Endpoint
from catchment.watch.troubles import Troubles

# Nobody waits for the ticks in between: ten a second and shard were half of what a feed at rest cost.
_IDLE_SECONDS = 1.0
# After this silence of a shard that ticks wait for, `after` raises; until then no cut is taken.
SILENT_SECONDS_MAX = 30.0


class _Question:
    """Shards that are to say how often RESET was said, and what they said."""

    def __init__(self, shards: Collection[str]) -> None:
        self.shards = sorted(set(shards))
        self.answered = world.event()
        self.found: Answers[Resets] | Exception = Answers({}, {})

    def answer(self, found: Answers[Resets] | Exception) -> None:
        """Tell who asked."""
        self.found = found
        self.answered.set()


class Clock:
    """Takes ticks in a thread of its own. `after` gives the newest one beyond a tick, and waits for it.

    `away_max`: seconds for which ticks may go without a shard that does not answer; 0: they wait for all. `bears`: they
    wait for one, too, that somebody has to mend. `unready`: shards that may not be asked before this has passed once.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        servers: Mapping[str, Server],
        seconds: float,
        last: int,
        troubles: Troubles | None = None,
        away_max: float = 0.0,
        bears: bool = False,
        unready: Mapping[str, Admit] = ALL_READY,
    ) -> None:
        told = troubles or Troubles()
        self._readers = {
            shard: ShardReader(endpoint, servers[shard], told, bears=bears, admit=unready.get(shard))
            for shard, endpoint in endpoints.items()
        }
        self._bears = bears
        self._seconds = seconds
        self._away_max = away_max
        self._number = last
        self._condition = world.condition()
        self._newest: Tick | None = None
        # When the clock began to take that one, and when it began its last try.
        self._began_at = self._tried_at = 0.0
        self._wanted, self._apart = False, seconds
        self._failed: Exception | None = None
        self._stopping = world.event()
        self._wake = world.event()
        self._questions: deque[_Question] = deque()
        self._ended = world.event()
        self._thread = world.thread("clock", self._run)

    def start(self, positions: Mapping[str, Position]) -> "Clock":
        """Begin to tick; offsets before these verified positions count as backwards."""
        self.verified(positions)
        for shard, position in positions.items():
            self._readers[shard].newest = position.at
        for reader in self._readers.values():
            reader.heard = world.steady_seconds()
        self._thread.start()
        return self

    @property
    def newest(self) -> Tick | None:
        """The newest tick; any thread may look."""
        return self._newest

    def verified(self, positions: Mapping[str, Position]) -> None:
        """Tell the positions that the chain of segments has reached."""
        for shard, position in positions.items():
            self._readers[shard].verified = position

    def must_be_whole(self, positions: Mapping[str, Position]) -> None:
        """Raise LogRenamed where a log goes on after one of these positions in files of another name."""
        for shard, position in positions.items():
            self._readers[shard].must_not_end(position)

    def ends_a_name(self, tick: Tick) -> bool:
        """Whether a tick ends with files of a name after which the log goes on in files of another one."""
        return any(
            reader.name_ends is not None and tick.offsets.get(shard) == reader.name_ends
            for shard, reader in self._readers.items()
        )

    def ends_before(self, shard: str, at: LogOffset) -> bool:
        """Whether a tick has shown that a log goes on in files of another name before it comes to a place."""
        ends = self._readers[shard].name_ends
        return ends is not None and not reaches(ends, at)

    def stop(self) -> None:
        """End the thread and the sessions."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout=15)

    def pass_by(self, number: int) -> None:
        """Give ticks to come greater numbers than this one, which somebody else has used."""
        with self._condition:
            self._number = max(self._number, number)

    @property
    def number(self) -> int:
        """The highest number that it has used."""
        return self._number

    def after(
        self, number: int, timeout: float, apart: float | None = None, since: float | None = None
    ) -> Tick | None:
        """The newest tick beyond tick `number`, once the clock has tried to take one just now; None at the timeout if
        there is none. Raises what ended the clock, and ConnectionLost while a shard has been silent for too long: later
        the clock may go on.

        `apart`: without such a tick the clock takes one as soon as so many seconds have passed since the last. Those
        between two of its ticks by default. `since`: the clock has to have begun that tick then, or later (steady
        seconds); one that was dropped is no answer.
        """
        tried = world.steady_seconds() - self._seconds if since is None else since
        with self._condition:
            # However recent the last try is: without a tick beyond `number` only another one helps.
            if self._tried_at < tried or not self._beyond(number, since):
                self._wanted, self._apart = True, self._seconds if apart is None else apart
                self._wake.set()
            self._condition.wait_for(
                lambda: self._failed or (self._tried_at >= tried and self._beyond(number, since)), timeout
            )
            if self._failed is not None:
                raise self._failed
            return self._beyond(number, since)

    def resets(self, shards: Collection[str]) -> dict[str, Resets]:
        """How often RESET was said on the shards as of now, of those that answered. The clock asks in the sessions of
        its ticks.

        Raises the error of a shard that did not, where it cannot pass or ticks wait for all; ConnectionLost when none
        does; HeldUp where that waits for somebody to mend the shard.
        """
        question = _Question(shards)
        self._questions.append(question)
        self._wake.set()
        if self._ended.is_set():
            self._leave_unanswered()
        if not question.answered.wait(SILENT_SECONDS_MAX):
            raise ConnectionLost(
                f"no answer from shards {', '.join(question.shards)} in {SILENT_SECONDS_MAX:.0f} s"
            )
        if isinstance(question.found, Exception):
            raise question.found
        answers, worst = question.found, question.found.worst(bears=self._bears)
        if worst is not None and not (self._away_max and answers.found and self._may_pass(worst)):
            raise self._waited_for(worst)
        return answers.found

    def _beyond(self, number: int, since: float | None) -> Tick | None:
        if self._newest is None or self._newest.number <= number:
            return None
        return self._newest if since is None or self._began_at >= since else None

    def _run(self) -> None:
        silent_since: float | None = None
        with world.pool(len(self._readers), "tick") as pool:
            while not self._stopping.is_set():
                self._wanted = False
                began = world.steady_seconds()
                try:
                    self._tick(pool, began)
                    silent_since = self._failed = None
                    self._tried(began)
                # An error of any kind: else whoever waits for a tick would wait for ever.
                except Exception as error:
                    silent_since = silent_since or began
                    passing = self._may_pass(error)
                    if not passing or began - silent_since > SILENT_SECONDS_MAX:
                        self._fail(self._waited_for(error))
                    if not passing:
                        break
                self._rest_of(began, pool)
        self._ended.set()
        self._leave_unanswered()
        for reader in self._readers.values():
            reader.close()

    def _leave_unanswered(self) -> None:
        """Tell those who ask what ended the clock: nobody answers any more."""
        with suppress(IndexError):  # another thread may have taken the last one
            while self._questions:
                self._questions.popleft().answer(self._failed or ConnectionLost("the clock was stopped"))

    def _rest_of(self, began: float, pool: world.Pool) -> None:
        """Wait for the next tick, and answer questions meanwhile."""
        while not self._stopping.is_set():
            self._wake.clear()
            while self._questions:
                self._answer(self._questions.popleft(), pool)
            pause = self._apart if self._wanted else max(self._seconds, _IDLE_SECONDS)
            if not self._wake.wait(max(0.0, pause - (world.steady_seconds() - began))):
                return

    def _answer(self, question: "_Question", pool: world.Pool) -> None:
        try:
            readers = {shard: self._readers[shard] for shard in question.shards}
            question.answer(ask_all(readers, lambda reader: reader.resets(), pool, late=self._away_max > 0))
        except Exception as error:
            question.answer(error)

    def _tick(self, pool: world.Pool, began: float) -> None:
        asked = ask_all(self._readers, lambda reader: reader.read(), pool, late=self._away_max > 0)
        if (worst := asked.worst(bears=self._bears)) is not None:
            self._must_do_without(asked, worst)
        readings = asked.found
        accepted = {shard: self._readers[shard].accept(offset) for shard, (offset, _) in readings.items()}
        offsets = {shard: offset for shard, offset in accepted.items() if offset is not None}
        if len(offsets) < len(accepted):
            return
        times = [taken for _, taken in readings.values()]
        with self._condition:
            self._number = max(self._number + 1, epoch_number(min(times) // 1_000_000))
            self._newest = Tick(self._number, min(times), max(times) - min(times), offsets)
            self._began_at = began

    def _tried(self, began: float) -> None:
        """Whoever asked before has the answer: a tick, or that it was dropped. A silent shard is asked again."""
        with self._condition:
            self._tried_at = began
            self._condition.notify_all()

    def _must_do_without(self, asked: Answers[tuple[LogOffset, int]], worst: Exception) -> None:
        """Raise what kept a shard from answering, unless a tick may go without it: for LATE_SECONDS it waits."""
        now = world.steady_seconds()
        silent = [now - self._readers[shard].heard for shard in asked.errors]
        allowed = min(silent) >= LATE_SECONDS and max(silent) <= self._away_max
        if not (asked.found and self._may_pass(worst) and allowed):
            raise worst

    def _may_pass(self, error: BaseException) -> bool:
        return may_pass(error, bears=self._bears)

    def _waited_for(self, error: Exception) -> Exception:
        """The error as those have it who wait for a tick."""
        if isinstance(error, CatchmentError) and error.retry is Retry.NEVER and self._may_pass(error):
            return HeldUp(error)
        return error

    def _fail(self, error: Exception) -> None:
        with self._condition:
            self._failed = error
            self._condition.notify_all()
