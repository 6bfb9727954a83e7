"""Engines for tests: tasks in this process, and tasks that are all sent to Spark."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from catchment.engine import near
from catchment.engine.spark import SparkEngine


class Here:
    """An engine that runs one task after another in this process, pickled as on their way to workers.

    `done` has the tasks of each call.
    """

    def __init__(self) -> None:
        self.done: list[list[Any]] = []

    def each(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """The receipts of the tasks."""
        self.done.append(list(tasks))
        receipts = [work(pickle.loads(pickle.dumps(task))) for task in tasks]
        return cast(list[Any], pickle.loads(pickle.dumps(receipts)))

    def check(self) -> None: ...

    def cancel(self) -> None: ...

    def rest(self) -> None: ...

    def close(self) -> None: ...


def on_spark(spark: Any) -> SparkEngine:
    """An engine of a context that has started."""
    return SparkEngine(lambda: spark)


def all_far(patch: pytest.MonkeyPatch) -> None:
    """Have the driver read nothing itself, however small an epoch is: its tasks go to workers."""
    patch.setattr(near, "TASKS_MAX", 0)
