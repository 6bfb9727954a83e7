"""A Spark that starts beside the driver: who asks for it gets it or its error, and none is left behind."""

import threading

import pytest
from pyspark import SparkContext

from catchment.model.errors import EngineError
from catchment.spark.early import EarlySpark


class Context:
    """In the place of a SparkContext."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_it_starts_while_the_driver_goes_on() -> None:
    context, may_end = Context(), threading.Event()

    def start() -> SparkContext:
        assert may_end.wait(60)
        return context

    with EarlySpark(start) as early:
        may_end.set()  # reached before the start has ended
        assert early.ready() is context
        assert early.ready() is context
    assert not context.stopped


def test_one_that_nobody_asked_for_is_stopped() -> None:
    context = Context()
    with pytest.raises(LookupError), EarlySpark(lambda: context):
        raise LookupError("the shards refuse")
    assert context.stopped


def test_its_error_is_raised_where_it_is_asked_for() -> None:
    def start() -> SparkContext:
        raise EngineError("no Java")

    with EarlySpark(start) as early, pytest.raises(EngineError, match="no Java"):
        early.ready()
    with EarlySpark(start):
        pass  # an error that nobody asked for is none
