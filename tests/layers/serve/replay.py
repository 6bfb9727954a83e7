"""A consumer of the stream that keeps every row delivered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.layers.serve.direct import Rows, as_set
from tests.layers.serve.patient import patiently
from tests.world.patience import until


class Replay:
    """Starts queries of one checkpoint whose batches go to `take`; `fail_at` makes it fail once, behind
    that batch.
    """

    def __init__(self, spark: SparkSession, feed: Path, table: str, checkpoint: Path) -> None:
        self.batches: dict[int, Rows] = {}
        self.fail_at: int | None = None
        self.repeated: list[int] = []
        self._spark = spark
        self._options = {"feed": str(feed), "table": table}
        self._checkpoint = checkpoint

    def catch_up(self, **options: object) -> StreamingQuery:
        """Run to what is available now; the ended query."""
        return self._run({"availableNow": True}, options, lambda: False)

    def follow(self, enough: Callable[[], bool], **options: object) -> StreamingQuery:
        """Run until that holds; the stopped query. Raises what ended it before."""
        return self._run({"processingTime": "0 seconds"}, options, enough)

    def _run(self, trigger: Any, options: dict[str, object], enough: Callable[[], bool]) -> StreamingQuery:
        given = {**self._options, **{name: str(value) for name, value in options.items()}}

        def once() -> StreamingQuery:
            stream = self._spark.readStream.format("catchment").options(**given).load()
            writer = stream.writeStream.foreachBatch(self.take)
            query = writer.option("checkpointLocation", str(self._checkpoint)).trigger(**trigger).start()
            try:
                until("the query ends or has done enough", lambda: query.awaitTermination(0.1) or enough())
                return query
            finally:
                query.stop()

        return patiently(once)

    def take(self, frame: DataFrame, number: int) -> None:
        """Keep the rows of a micro-batch; one that is read again must be the same."""
        rows = frame.toArrow().to_pylist()
        if number in self.batches:
            assert as_set(rows) == as_set(self.batches[number])
            self.repeated.append(number)
        self.batches[number] = rows
        if number == self.fail_at:
            self.fail_at = None
            raise RuntimeError("the consumer fails once")

    @property
    def rows(self) -> Rows:
        """All rows delivered."""
        return [row for number in sorted(self.batches) for row in self.batches[number]]
