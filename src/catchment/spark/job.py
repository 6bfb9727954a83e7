"""One Spark job per epoch: the tasks go out, the receipts come back."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catchment.model.errors import EngineError
from catchment.spark.run_task import run_task
from catchment.spark.work import Receipt, Task

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")


def session(name: str, master: str, conf: Mapping[str, str]) -> SparkSession:
    """The feed's Spark session; `conf` wins over the defaults."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.python.worker.reuse": "true",
        "spark.driver.host": "127.0.0.1" if master.startswith("local") else None,
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.appName(f"catchment {name}").master(master)
    for key, value in {**{k: v for k, v in defaults.items() if v is not None}, **conf}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(spark: SparkSession, tasks: Sequence[Task]) -> list[Receipt]:
    """Run the tasks at once and wait; one partition per task, since each holds connections of its own."""
    return each(spark, run_task, tasks)


def each(spark: SparkSession, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
    """Run `work` for each task at once; raises EngineError when Spark gives the job up."""
    try:
        return list(spark.sparkContext.parallelize(list(tasks), len(tasks)).map(work).collect())
    except (Py4JError, PySparkException) as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise EngineError(
            f"Spark gave up a job of {len(tasks)} tasks: {lines[0] if lines else error}"
        ) from error
