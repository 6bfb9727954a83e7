"""One Spark job per epoch: the tasks go out, the receipts come back."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from catchment.model.errors import EngineError, SinkError
from catchment.spark.run_task import run_task
from catchment.spark.work import Receipt, Task

_LOOPBACK = "127.0.0.1"
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "1g",
    # The JVM hands out tasks and sees no row: compiling its code more than once costs more than it gives back.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.daemon.module": "catchment.spark.daemon",
    "spark.log.level": "ERROR",
    # Tasks hold passwords: encrypted, they go to the JVM through a socket instead of a file in the clear.
    "spark.io.encryption.enabled": "true",
}

# Lines of Java's and Python's traces begin with a blank, the errors that they belong to do not.
_NAMES_ERROR = re.compile(r"(Caused by: )?[\w.$]+(Error|Exception)\b")

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")


def context(name: str, master: str, conf: Mapping[str, str], log: Path | None = None) -> SparkContext:
    """The feed's Spark, the one that runs already in this process if there is one; `conf` wins over the defaults.

    No session: the feed asks no SQL, whose classes would take Java 3 s to load. What Spark itself says goes to the
    file `log`.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = dict(_DEFAULTS)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        settings["spark.driver.host"] = _LOOPBACK
    wanted = SparkConf().setAppName(f"catchment {name}").setMaster(master)
    wanted.setAll(list({**settings, **conf}.items()))
    with _errors_to(log), _own_signals():
        spark = SparkContext.getOrCreate(wanted)
        spark.setLogLevel("ERROR")
    # PySpark prints a traceback when Java goes first at a stop, and closes its connection for accumulators. The
    # feed uses none.
    spark._accumulatorServer.handle_error = lambda request, address: None
    return spark


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the program's own handler of Ctrl-C: a Spark context that is made puts one of its own in its place."""
    before = signal.getsignal(signal.SIGINT)
    yield
    mine = before is not signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if mine:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _errors_to(log: Path | None) -> Iterator[None]:
    """Let a process that is started in the block inherit `log` as its standard error: the JVM writes there. Its
    directory is there already, if the lake is; raises SinkError."""
    if log is None:
        yield
        return
    try:
        file = log.open("ab")
    except OSError as fault:
        raise SinkError(
            f"cannot write {log}, where Spark's own messages go: {fault.strerror}; check the lake's rights and mount"
        ) from fault
    sys.stderr.flush()
    ours = os.dup(2)
    with file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def run(spark: SparkContext, tasks: Sequence[Task]) -> list[Receipt]:
    """Run the tasks at once and wait; one partition per task, since each holds connections of its own."""
    return each(spark, run_task, tasks)


def each(spark: SparkContext, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
    """Run `work` for each task at once; raises EngineError when Spark gives the job up."""
    try:
        return list(spark.parallelize(list(tasks), len(tasks)).map(work).collect())
    except (Py4JError, PySparkException, ConnectionError, EOFError) as error:
        raise EngineError(f"Spark gave up a job of {len(tasks)} tasks: {_in_short(str(error))}") from error


def _in_short(text: str) -> str:
    """The first line of what Spark says, and the last that names an error: that of the task, behind all traces."""
    lines = [line for line in text.splitlines() if line.strip()]
    causes = [line for line in lines[1:] if _NAMES_ERROR.match(line) and not line.endswith("last):")]
    return "; ".join([*lines[:1], *causes[-1:]])
