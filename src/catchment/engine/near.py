"""The driver reads small epochs itself: to hand a few kilobytes of log to workers costs more than to read them."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from catchment import world
from catchment.engine.guarded import Broken, Guarded, receipts
from catchment.engine.port import Engine
from catchment.epoch.work import BirthsTask, SegmentTask
from catchment.model.errors import EngineError

# Of all shards together. So much log is read in the time that a Spark job takes to be handed out.
LOG_BYTES_MAX: Final = 1 << 20
# More shards than these go to workers, however little they have logged: each costs the driver logins.
TASKS_MAX: Final = 8
REST_SECONDS: Final = 30.0

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")


class Near:
    """Runs small epochs in threads of the driver, all others on the engine behind it."""

    def __init__(self, far: Engine) -> None:
        self._far = far
        self._used: float | None = None

    def each(self, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
        """As the port has it."""
        if not is_small(tasks):
            self._used = world.steady_seconds()
            return self._far.each(work, tasks)
        self._let_rest()
        try:
            return receipts(self._beside(Guarded(work), tasks))
        except MemoryError as error:
            raise EngineError(f"the driver lacks memory for a small epoch: {error}") from error

    def _beside(self, work: Guarded[_Task, _Receipt], tasks: Sequence[_Task]) -> list[_Receipt | Broken]:
        """One task by this thread, which waits for the others in any case, and each of those by one of its own."""
        if len(tasks) == 1:
            return [work(tasks[0])]
        with world.pool(len(tasks) - 1, "near") as pool:
            others = pool.map(work, tasks[1:])
            return [work(tasks[0]), *others]

    def check(self) -> None:
        """As the port has it."""
        self._far.check()

    def cancel(self) -> None:
        """Give up what the engine behind runs; what the driver reads itself is over in a moment."""
        self._far.cancel()

    def rest(self) -> None:
        """As the port has it."""
        self._far.rest()

    def close(self) -> None:
        """As the port has it."""
        self._far.close()

    def _let_rest(self) -> None:
        if self._used is not None and world.steady_seconds() - self._used > REST_SECONDS:
            self._used = None
            self._far.rest()


def is_small(tasks: Sequence[object]) -> bool:
    """Whether the tasks are few and read little log, and nothing else."""
    sizes = [task.log_bytes if isinstance(task, SegmentTask | BirthsTask) else None for task in tasks]
    known = [size for size in sizes if size is not None]
    return len(known) == len(sizes) <= TASKS_MAX and sum(known) <= LOG_BYTES_MAX
