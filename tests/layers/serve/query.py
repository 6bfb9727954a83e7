"""A streaming query in a process of its own: python -m tests.layers.serve.query FEED TABLE DIRECTORY TRIGGER.

It writes `DIRECTORY/out` in Parquet, with its checkpoint beside it. TRIGGER is `now` (AvailableNow) or
`always`. A task may fail three times, as on a cluster; Spark's local mode would not repeat it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession

from catchment.engine.context import context
from catchment.serve.spark_source import register
from tests.promises.crash.test_work import children

TRIGGERS: dict[str, dict[str, object]] = {
    "now": {"availableNow": True},
    "always": {"processingTime": "0 seconds"},
}


class Query:
    """A running process of this module, and its end."""

    def __init__(self, feed: Path, table: str, directory: Path, trigger: str) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.layers.serve.query",
            str(feed),
            table,
            str(directory),
            trigger,
        ]
        self.said = directory / "said"
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said, process_group=0)

    def tree(self) -> list[int]:
        """Its processes: the program, Java, the daemon of the Python workers, and these."""
        found = [self.process.pid]
        for parent in found:
            found += children(parent)
        return found

    def workers(self) -> list[int]:
        """The Python workers that run tasks, one for each of the two cores: the youngest processes. An older
        one plans the batches.
        """
        return sorted(p for p in self.tree() if "catchment.engine.daemon" in _command(p))[-2:]

    def kill(self) -> None:
        """kill -9 of all of it."""
        for process in self.tree():
            with suppress(ProcessLookupError):  # a child may have gone with its parent
                os.kill(process, signal.SIGKILL)
        self.process.wait()


def _command(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text()


@contextmanager
def running(feed: Path, table: str, directory: Path, trigger: str) -> Iterator[Query]:
    """A query that is killed with all its processes at the end of the block, if it still runs."""
    query = Query(feed, table, directory, trigger)
    try:
        yield query
    finally:
        if query.process.poll() is None:
            query.kill()


def main() -> None:
    """Run the query to its end."""
    feed, table, directory, trigger = sys.argv[1:]
    spark = SparkSession(context("query", "local[2,4]", {}))
    register(spark)
    stream = (
        spark.readStream.format("catchment").options(feed=feed, table=table, maxChunksPerTrigger="2").load()
    )
    writer = stream.writeStream.format("parquet").option("checkpointLocation", f"{directory}/checkpoint")
    writer.trigger(**TRIGGERS[trigger]).start(f"{directory}/out").awaitTermination()


if __name__ == "__main__":
    main()
