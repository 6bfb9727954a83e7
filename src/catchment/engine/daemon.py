"""The process from which Spark forks its Python workers, with all that tasks import loaded before.

Otherwise each worker imports it anew at its first task: a second of CPU. Spark starts it
(`spark.python.daemon.module`).
"""

from pyspark import worker
from pyspark.daemon import manager

from catchment.readers.run_task import run_task

__all__ = ["run_task", "worker"]

if __name__ == "__main__":
    manager()
