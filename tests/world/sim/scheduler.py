"""A world in which one thread runs at a time, and a seed says which; time goes on when nobody can run.

Its threads are stacks of one real thread (greenlets). They hand over where they wait, or where something outside of
their process is about to change. So code that waits by `catchment.world` needs no change to be turned, and the same
seed turns it the same way.
"""

import random
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from greenlet import getcurrent, greenlet

from catchment.world.port import Condition, Event, Lock, Pool, Servers, Thread

START_US = 1_763_784_727_000_000
# Of simulated time: what takes longer stands still.
_SECONDS_MAX = 36_000.0
# So often threads go on in one moment: more is a loop that waits for nothing.
_TURNS_MAX = 200_000


class Killed(BaseException):
    """The process of this thread has died: nothing that it does from here on has any effect."""


class StoodStill(AssertionError):
    """Nobody can go on, or nothing comes to an end."""


class Process:
    """Threads that die together, and stand still together while the process is frozen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.frozen_until = 0.0


class Job:
    """A thread and what it waits for: `ready` says whether it may go on, before `deadline` or when that has come.
    Somebody looks at how a job ends that is `watched`; an error of another one ends the simulation.
    """

    def __init__(self, process: Process, name: str, work: Callable[[], None]) -> None:
        self.process = process
        self.name = name
        self.work = work
        self.stack: greenlet | None = None
        self.ready: Callable[[], Any] | None = None
        self.deadline: float | None = None
        self.begun = self.over = self.watched = False
        self.error: BaseException | None = None


class SimWorld:
    """`catchment.world` for one seed. `run` turns it until a job is over. `at_step` is told of every step of a process:
    it may kill or freeze the process, or let time pass. `trace` is a checksum of all steps so far. `yields`: how often
    another thread runs before one takes a lock.
    """

    servers: Servers | None = None

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.skew_us = 0
        self.steps = self.trace = 0
        self.yields = 0.0
        self._turns_since = (0.0, 0)
        self.at_step: Callable[[Process, str], None] = lambda process, what: None
        self._jobs: list[Job] = []
        self._current: Job | None = None
        self._hub: greenlet = getcurrent()
        self._until: Job | None = None
        self._failed: BaseException | None = None

    # What the code under test sees.

    def steady_seconds(self) -> float:
        """Seconds since the world began."""
        return self.now

    def now_us(self) -> int:
        """The machines' clock, which somebody may have set."""
        return START_US + self.skew_us + int(self.now * 1e6)

    def sleep(self, seconds: float) -> None:
        """Let others run for so long."""
        self.wait(None, max(seconds, 0.0))

    def event(self) -> Event:
        """An event."""
        return SimEvent(self)

    def condition(self) -> Condition:
        """A condition."""
        return SimCondition(self)

    def lock(self) -> Lock:
        """A lock."""
        return SimLock(self)

    def thread(self, name: str, work: Callable[[], None]) -> Thread:
        """A thread of the process that asks."""
        return SimThread(self, Job(self.process, name, work))

    def pool(self, threads: int, name: str) -> Pool:
        """A pool of threads of the process that asks."""
        return SimPool(self, threads, name)

    def token(self) -> str:
        """From the seed."""
        return f"{self.rng.getrandbits(128):032x}"

    def step(self, what: str) -> None:
        """A place where the process may die, and where others may run."""
        self._must_live()
        process = self.process
        self.steps += 1
        self.trace = zlib.crc32(f"{process.name} {what} {self.now}".encode(), self.trace)
        self.at_step(process, what)
        if process.dead or process.frozen_until > self.now or self.rng.random() < 0.3:
            self._hand_on(None, None)

    # What a simulation does.

    @property
    def job(self) -> Job:
        """The running job."""
        assert self._current is not None
        return self._current

    @property
    def process(self) -> Process:
        """The process of the running job."""
        return self.job.process

    def jobs_of(self, process: Process) -> list[Job]:
        """The threads of a process that have not ended."""
        return [job for job in self._jobs if job.process is process]

    def spawn(self, process: Process, name: str, work: Callable[[], None]) -> Job:
        """A job that will run when the seed says so."""
        job = Job(process, name, work)
        self.begin(job)
        return job

    def begin(self, job: Job) -> None:
        """Let a job take part."""
        job.begun = True
        job.stack = greenlet(lambda: self._turn(job), self._hub)
        self._jobs.append(job)

    def wait(self, ready: Callable[[], Any] | None, seconds: float | None) -> None:
        """Wait until something is so, but not for longer; the running job does. Without either others may run."""
        self._must_live()
        self._hand_on(ready, None if seconds is None else self.now + seconds)

    def run(self, until: Job) -> None:
        """Turn all jobs until one is over; raises what another one of its process broke by."""
        self._hub, self._until = getcurrent(), until
        while not until.over and self._failed is None:
            chosen = self._next()
            if chosen is not None:
                self._go_on(chosen)
        self._end_all()
        if self._failed is not None:
            raise self._failed
        if until.error is not None and not isinstance(until.error, Killed):
            raise until.error

    def kill(self, process: Process) -> None:
        """End a process: each of its threads is told when it would go on."""
        process.dead = True

    def _end_all(self) -> None:
        """Have the threads that are left unwind, one after another."""
        while self._jobs:
            for job in self._jobs:
                job.process.dead = True
            self._go_on(self._jobs[0])

    def _must_live(self) -> None:
        if self.process.dead:
            raise Killed(self.process.name)

    def _go_on(self, job: Job) -> None:
        """Let a job run until it hands over; the hub does."""
        assert job.stack is not None
        self._current = job
        job.stack.switch()

    def _turn(self, job: Job) -> None:
        try:
            if not job.process.dead:
                job.work()
        except BaseException as error:
            job.error = error
            if not isinstance(error, Killed) and not job.watched and job is not self._until:
                self._failed = self._failed or error
        job.over = True
        self._jobs.remove(job)

    def _hand_on(self, ready: Callable[[], Any] | None, deadline: float | None) -> None:
        job = self._current
        assert job is not None
        job.ready, job.deadline = ready, deadline
        self._hub.switch()
        self._must_live()

    def _next(self) -> Job | None:
        """A job that may go on; None, and the failure is known, when there is none."""
        able = self._able()
        while not able:
            moments = [j.deadline for j in self._jobs if j.deadline is not None and not j.process.dead]
            moments += [j.process.frozen_until for j in self._jobs if j.process.frozen_until > self.now]
            later = [m for m in moments if m > self.now]
            if not later or self.now > _SECONDS_MAX:
                self._failed = StoodStill(", ".join(f"{j.process.name}/{j.name}" for j in self._jobs))
                return None
            self.now = min(later)
            able = self._able()
        since, turns = self._turns_since
        self._turns_since = (since, turns + 1) if since == self.now else (self.now, 0)
        if turns > _TURNS_MAX:
            self._failed = StoodStill(
                f"no time passes: {', '.join(f'{j.process.name}/{j.name}' for j in able)}"
            )
            return None
        return able[self.rng.randrange(len(able))]

    def _able(self) -> list[Job]:
        """The jobs that may go on now. Most of the time of a simulation would be spent here, were it written nicely."""
        now, able = self.now, []
        for job in self._jobs:
            process, ready, deadline = job.process, job.ready, job.deadline
            if process.dead:
                able.append(job)
            elif process.frozen_until > now:
                continue
            elif deadline is None:
                if ready is None or ready():
                    able.append(job)
            elif now >= deadline or (ready is not None and ready()):
                able.append(job)
        return able


class SimEvent:
    """As threading.Event."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._set = False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._set

    def set(self) -> None:
        """Set it."""
        self._set = True

    def clear(self) -> None:
        """Take it back."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set."""
        self._world.wait(self.is_set, timeout)
        return self._set


class SimLock:
    """As threading.Lock."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._held = False

    def __enter__(self) -> Self:
        if self._world.yields and self._world.rng.random() < self._world.yields:
            self._world.wait(None, None)
        if self._held:
            self._world.wait(lambda: not self._held, None)
        self._held = True
        return self

    def __exit__(self, *how: object) -> None:
        self._held = False


class SimCondition(SimLock):
    """As threading.Condition. Who waits looks again by itself."""

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until it is so."""
        self._held = False
        self._world.wait(lambda: predicate() and not self._held, timeout)
        self._held = True
        return predicate()

    def notify_all(self) -> None:
        """Nothing."""


class SimThread:
    """As threading.Thread."""

    def __init__(self, world: SimWorld, job: Job) -> None:
        self._world = world
        self._job = job

    def start(self) -> None:
        """Begin."""
        self._world.begin(self._job)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if self._job.begun and not self._job.over:
            self._world.wait(lambda: self._job.over, timeout)


class SimFuture:
    """As concurrent.futures.Future."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the work raised."""
        if not self.done:
            self._world.wait(lambda: self.done, timeout)
        if not self.done:
            raise TimeoutError
        return self.error

    def result(self, timeout: float | None = None) -> Any:
        """What the work gave."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.value


class SimPool:
    """As ThreadPoolExecutor: so many pieces of work at once, in the order in which they came."""

    def __init__(self, world: SimWorld, threads: int, name: str) -> None:
        self._world = world
        self._threads = max(threads, 1)
        self._name = name
        self._process = world.process
        self._waiting: deque[tuple[SimFuture, Callable[..., Any], Any, Any]] = deque()
        self._running = 0

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> SimFuture:
        """Do the work when a thread is free."""
        future = SimFuture(self._world)
        self._waiting.append((future, work, args, named))
        if self._running < self._threads:
            self._running += 1
            self._world.spawn(self._process, self._name or "pool", self._work)
        return future

    def _work(self) -> None:
        try:
            while self._waiting:
                future, work, args, named = self._waiting.popleft()
                try:
                    future.value = work(*args, **named)
                except Exception as error:
                    future.error = error
                future.done = True
        finally:
            self._running -= 1

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """The results in order."""
        futures = [self.submit(work, *args) for args in zip(*arguments, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, wait: bool = True) -> None:
        """Wait for all work."""
        if wait and self._running:
            self._world.wait(lambda: not self._running, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> bool | None:
        self.shutdown()
        return None
