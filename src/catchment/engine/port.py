"""What runs the pieces of an epoch: the driver hands out tasks, and gets receipts."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")


class Engine(Protocol):
    """Runs tasks at the same time, each on connections of its own. Calls of `each` come one at a time."""

    def each(self, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
        """Run `work` for each task; the receipts in the order of the tasks.

        Raises ProgramFault when `work` raised, which no other try can help: its traceback is logged. Raises EngineError
        when the engine gives the tasks up.
        """
        ...

    def check(self) -> None:
        """Raise EngineError if the engine cannot start; it may not have started yet."""
        ...

    def cancel(self) -> None:
        """Give up what runs, now: the run is to stop. Harmless when nothing runs; another thread may call it."""
        ...

    def rest(self) -> None:
        """Nothing has been run for a while: give back what can be had again."""
        ...

    def close(self) -> None:
        """End what was started for this engine."""
        ...
