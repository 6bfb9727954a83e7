"""Plain tables as Delta's own reader has them, in a Spark of its own. It knows nothing of Catchment: a judge.

Its jar comes from Maven Central, at the first use.
"""

import json
import os
import subprocess
import sys
from types import TracebackType
from typing import IO, Self

import pyarrow as pa

from tests.world.patience import PATIENCE_SECONDS

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
_SETTINGS = {
    "spark.jars.packages": PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # Small tables: by default each look at a log takes fifty tasks, and a vacuum thousands.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class DeltaSpark:
    """A process with Spark and Delta, until the block ends. `directory`: where its catalog lies."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def __enter__(self) -> Self:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._directory,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE_SECONDS)

    def sql(self, statement: str) -> pa.Table:
        """What a statement gives. AssertionError has Spark's words."""
        return self._asked(statement, fetches=True)

    def run(self, statement: str) -> None:
        """Carry out a statement. What OPTIMIZE gives has a type that Spark cannot turn into Arrow."""
        self._asked(statement, fetches=False)

    def _asked(self, statement: str, *, fetches: bool) -> pa.Table:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([statement, fetches]).encode() + b"\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        assert said, "the process that reads has ended: is its jar at hand?"
        answer = json.loads(said)
        assert "error" not in answer, answer["error"]
        with pa.ipc.open_stream(self._process.stdout.read(answer["bytes"])) as stream:
            return stream.read_all()


def main() -> None:
    """The process: a JSON line asks, a JSON line and an Arrow stream answer."""
    from pyspark.sql import SparkSession

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a VACUUM talks
    builder = SparkSession.builder.master("local[2]").appName("judge")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    for line in sys.stdin:
        try:
            statement, fetches = json.loads(line)
            made = session.sql(statement)
            found = made.toArrow() if fetches else pa.table({})
        except Exception as error:
            _answer(answers, {"error": f"{type(error).__name__}: {error}"}, b"")
            continue
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found.schema) as stream:
            stream.write_table(found)
        _answer(answers, {"bytes": len(sink.getvalue())}, sink.getvalue())


def _answer(answers: IO[bytes], answer: dict[str, object], content: bytes | pa.Buffer) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.write(content)
    answers.flush()


if __name__ == "__main__":
    main()
