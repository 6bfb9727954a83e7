"""A consumer of the stream that keeps every row delivered."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.direct import Rows, as_set

PATIENCE_SECONDS = 120


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

    def start(self, *, available_now: bool = False, **options: object) -> StreamingQuery:
        """Start the query with further options of the source."""
        given = {name: str(value) for name, value in options.items()}
        stream = self._spark.readStream.format("catchment").options(**self._options, **given).load()
        writer = stream.writeStream.foreachBatch(self.take).option(
            "checkpointLocation", str(self._checkpoint)
        )
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime="0 seconds").start()

    def catch_up(self, **options: object) -> StreamingQuery:
        """Run to what is available now; the ended query."""
        query = self.start(available_now=True, **options)
        assert query.awaitTermination(PATIENCE_SECONDS)
        return query

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
