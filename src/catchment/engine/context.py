"""The Spark of a feed: its settings, and how it starts or fails to."""

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from catchment.engine.java import java_fault
from catchment.model.errors import ConfigError, EngineError, SinkError

_LOOPBACK, _PY4J = "127.0.0.1", "py4j"
_ENCRYPTION = "spark.io.encryption.enabled"
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "1g",
    # The JVM hands out tasks and sees no row: compiling its code more than once costs more than it gives back.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.daemon.module": "catchment.engine.daemon",
    "spark.log.level": "ERROR",
    # Tasks hold passwords: encrypted, they go to the JVM through a socket instead of a file in the clear.
    _ENCRYPTION: "true",
}

# How such a line begins where Spark does not start: what Java threw, or says as it ends.
_THROWN = re.compile(r'(?:: |Caused by: |Exception in thread "[^"]*" )([\w.$]+(?:Error|Exception)\b.*)')
# What Java and Spark say whatever happens.
_CHATTER = re.compile(r"(Picked up|WARNING|Using |Setting |To adjust |\d\d/\d\d/\d\d .* WARN )")
# Spark's own name for an application that its master gave none: it was never registered there.
_UNREGISTERED = "spark-application-"

# Of a SparkContext, why it must encrypt.
_IN_CLEAR = "tasks hold the shards' passwords, which would go through a file in clear"


def context(name: str, master: str, conf: Mapping[str, str], log: Path | None = None) -> SparkContext:
    """The feed's Spark, the one that runs already in this process if there is one; `conf` wins over the defaults.

    No session: the feed asks no SQL, whose classes would take Java 3 s to load. What Spark itself says goes to the
    file `log`. Raises EngineError when Spark cannot start; a standalone master that does not answer is given up after a
    minute. Raises SinkError when `log` cannot be written, ConfigError for a Spark that does not encrypt what goes to
    its tasks.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = dict(_DEFAULTS)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        settings["spark.driver.host"] = _LOOPBACK
    wanted = SparkConf().setAppName(f"catchment {name}").setMaster(master)
    wanted.setAll(list({**settings, **conf}.items()))
    if wanted.get(_ENCRYPTION) != "true":
        raise ConfigError(f"spark.conf: {_ENCRYPTION} is not true: {_IN_CLEAR}; leave it out")
    logging.getLogger().addFilter(_not_py4j)
    with _own_signals():
        spark = _started(wanted, master, log)
    if spark.getConf().get(_ENCRYPTION) != "true":
        raise ConfigError(
            f"a Spark runs already in this process, and its {_ENCRYPTION} is not true: {_IN_CLEAR}; start it with that "
            "setting, or stop it before"
        )
    # PySpark prints a traceback when Java goes first at a stop, and closes its connection for accumulators. The
    # feed uses none.
    spark._accumulatorServer.handle_error = lambda request, address: None
    return spark


def _not_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is not Py4J's: it logs a traceback when Java goes first at a stop. What fails by that is told by
    whoever asked."""
    return _PY4J not in Path(record.pathname).parts


def _started(wanted: SparkConf, master: str, log: Path | None) -> SparkContext:
    said_before = log.stat().st_size if log is not None and log.exists() else 0
    try:
        with _opened(log) as errors:
            if SparkContext._gateway is None:  # else a Java runs already
                gateway = launch_gateway(wanted, {} if errors is None else {"stderr": errors})
                SparkContext._ensure_initialized(gateway=gateway)
        spark = SparkContext.getOrCreate(wanted)
        # One whose master stays silent is made all the same, and stops a moment later.
        if spark.applicationId.startswith(_UNREGISTERED):
            raise EngineError(_cannot_start(f"the master {master} does not answer", log))
        spark.setLogLevel("ERROR")
    except (Py4JError, PySparkException, OSError, EOFError) as error:
        fault = java_fault()
        if fault:
            raise EngineError(f"Spark cannot start: {fault}") from error
        raise EngineError(_cannot_start(_why(error, log, said_before), log)) from error
    return spark


def _cannot_start(why: str, log: Path | None) -> str:
    said = f"; its own messages are in {log}" if log is not None else ""
    return f"Spark cannot start: {why}{said}; correct `spark.master` or `spark.conf` in the feed file, and start again"


def _why(error: Exception, log: Path | None, said_before: int) -> str:
    """In a line, what a Java that runs threw, or what one that has ended said last in `log`."""
    thrown = [found[1] for line in str(error).splitlines() if (found := _THROWN.match(line))]
    if thrown or log is None or isinstance(error, OSError):
        return thrown[-1] if thrown else str(error).partition("\n")[0]
    with log.open("rb") as file:
        file.seek(said_before)
        said = file.read().decode(errors="replace").splitlines()
    thrown = [found[1] for line in said if (found := _THROWN.match(line))]
    telling = [line.strip() for line in said if line.strip() and not _CHATTER.match(line)]
    return (thrown[-1:] or telling[:1] or [str(error).partition("\n")[0]])[0]


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the program's own handler of Ctrl-C: a Spark context that is made puts one of its own in its place."""
    before = signal.getsignal(signal.SIGINT)
    mine = before is not signal.default_int_handler and threading.current_thread() is threading.main_thread()
    try:
        yield
    finally:
        if mine:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _opened(log: Path | None) -> Iterator[IO[bytes] | None]:
    """The file to which Java writes its errors. Its directory is there already, if the lake is; raises SinkError."""
    if log is None:
        yield None
        return
    try:
        file = log.open("ab")
    except OSError as fault:
        raise SinkError(
            f"cannot write {log}, where Spark's own messages go: {fault.strerror}; check the lake's rights and mount"
        ) from fault
    with file:
        yield file
