"""Waiting out what Spark itself does not wait for."""

import time
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.world.patience import PATIENCE_SECONDS

# Spark gives a Python worker 10 s to start (PythonWorkerFactory), which is too little on a busy machine.
LATE_WORKER = "Python worker failed to connect back"

_Done = TypeVar("_Done")


def patiently(work: Callable[[], _Done]) -> _Done:
    """What `work` returns, which is done again as long as only a worker of Spark's was too late for it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return work()
        except (PySparkException, Py4JJavaError) as error:
            if LATE_WORKER not in str(error) or time.monotonic() > deadline:
                raise
