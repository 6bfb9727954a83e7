"""A Spark that starts while the driver does something else: Java takes seconds, and the driver has work meanwhile."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from pyspark import SparkContext


class EarlySpark:
    """Runs `start` in a thread of its own. Use as a context manager: its end stops a Spark that nobody asked for."""

    def __init__(self, start: Callable[[], SparkContext]) -> None:
        self._start = start
        self._made: Future[SparkContext] = Future()
        self._asked = False
        self._thread = threading.Thread(target=self._run, name="spark", daemon=True)

    def ready(self) -> SparkContext:
        """The context, when it has started; raises what its start raised."""
        self._asked = True
        return self._made.result()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asked:
            return
        self._thread.join()
        if self._made.exception() is None:
            self._made.result().stop()

    def _run(self) -> None:
        try:
            self._made.set_result(self._start())
        except BaseException as error:
            self._made.set_exception(error)
