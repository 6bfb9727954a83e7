"""Spark as the engine: a job for each epoch, a partition for each task."""

import re
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from catchment.engine.guarded import Broken, Guarded, receipts
from catchment.model.errors import CatchmentError, EngineError, Retry

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")
_Found = TypeVar("_Found")

_WAIT_SECONDS: Final = 0.1

# Lines of Java's and Python's traces begin with a blank, the errors that they belong to do not.
_NAMES_ERROR = re.compile(r"(Caused by: )?[\w.$]+(Error|Exception)\b")
# A worker without the modules of a task.
_ABSENT = re.compile(r"^(ModuleNotFound|Import)Error: ", re.MULTILINE)


class SparkEngine:
    """A Spark that starts in a thread of its own: Java takes seconds, and the driver has work meanwhile.

    `start` gives the context. It stays when the engine is closed, for others in this process.
    """

    def __init__(self, start: Callable[[], SparkContext]) -> None:
        self._start = start
        self._group = f"catchment-{uuid.uuid4().hex}"
        self._started: Future[SparkContext] = Future()
        self._cancelled = threading.Event()
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        threading.Thread(target=self._run, name="spark", daemon=True).start()

    def each(self, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
        """As the port has it; waits for Spark to have started."""
        spark = self._context()

        def collect() -> list[_Receipt | Broken]:
            # The group belongs to the calling thread (Spark, SparkContext.setJobGroup).
            spark.setJobGroup(self._group, f"Catchment: {len(tasks)} tasks")
            found: list[_Receipt | Broken] = (
                spark.parallelize(list(tasks), len(tasks)).map(Guarded(work)).collect()
            )
            return found

        try:
            found = self._called(collect)
        except (Py4JError, PySparkException, ConnectionError, EOFError) as error:
            given_up = EngineError(f"Spark gave up a job of {len(tasks)} tasks: {_in_short(str(error))}")
            if _ABSENT.search(str(error)):
                given_up.retry = Retry.NEVER
            raise given_up from error
        return receipts(found)

    def check(self) -> None:
        """Raise what kept Spark from starting; no other try can help."""
        if self._started.done():
            try:
                self._started.result()
            except CatchmentError as error:
                error.retry = Retry.NEVER
                raise

    def cancel(self) -> None:
        """Cancel the running job, and all waiting for Spark to start. Jobs of others in this process go on."""
        self._cancelled.set()
        if self._started.done() and self._started.exception() is None:
            # A signal to all processes of a service ends Java, too, and with it the jobs.
            with suppress(Py4JError, OSError):
                self._started.result().cancelJobGroup(self._group)

    def rest(self) -> None:
        """Java stays: it takes seconds to start."""

    def close(self) -> None:
        """The context stays."""
        self._calls.put(_Call(None))

    def _context(self) -> SparkContext:
        while not self._cancelled.is_set():
            with suppress(TimeoutError):
                self._started.result(_WAIT_SECONDS)
            if self._started.done():
                self.check()
                return self._started.result()
        raise EngineError("the run was stopped while Spark started")

    def _called(self, work: Callable[[], _Found]) -> _Found:
        """What a call to Java gives. A thread of its own makes it: an interrupt that meets Py4J's code can be lost."""
        call = _Call(work)
        self._calls.put(call)
        found: _Found = call.found.result()
        return found

    def _run(self) -> None:
        try:
            self._started.set_result(self._start())
        except BaseException as error:
            self._started.set_exception(error)
            return
        while (call := self._calls.get()).work is not None:
            try:
                call.found.set_result(call.work())
            except BaseException as error:
                call.found.set_exception(error)


class _Call:
    """A call to Java, and what it has given; without work, the last one."""

    def __init__(self, work: Callable[[], Any] | None) -> None:
        self.work = work
        self.found: Future[Any] = Future()


def _in_short(text: str) -> str:
    """The first line of what Spark says, and the last that names an error: that of the task, behind all traces."""
    lines = [line for line in text.splitlines() if line.strip()]
    causes = [line for line in lines[1:] if _NAMES_ERROR.match(line) and not line.endswith("last):")]
    return "; ".join([*lines[:1], *causes[-1:]])
