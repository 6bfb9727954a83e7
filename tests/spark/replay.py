"""A consumer of the stream: keeps every row delivered, and the state that the changes lead to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.canonical import Key, Row, canonical_row, key_of

GONE = ("delete", "update_preimage")


class Replay:
    """`run` starts a query that hands every micro-batch to `take`."""

    def __init__(self, spark: SparkSession, feed: Path, table: str, key: tuple[str, ...], checkpoint: Path) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self._spark = spark
        self._options = {"feed": str(feed), "table": table}
        self._key = key
        self._checkpoint = checkpoint

    def run(self, **options: object) -> StreamingQuery:
        """Start the query with further options of the source."""
        given = {name: str(value) for name, value in options.items()}
        stream = self._spark.readStream.format("catchment").options(**self._options, **given).load()
        return (
            stream.writeStream.foreachBatch(self.take)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime="0 seconds")
            .start()
        )

    def catch_up(self, **options: object) -> StreamingQuery:
        """Run to what is available now, and return the ended query."""
        given = {name: str(value) for name, value in options.items()}
        stream = self._spark.readStream.format("catchment").options(**self._options, **given).load()
        writer = stream.writeStream.foreachBatch(self.take).option("checkpointLocation", str(self._checkpoint))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return query

    def take(self, frame: DataFrame, number: int) -> None:
        """Keep the rows of a micro-batch; one that is read again must be the same."""
        rows = frame.toArrow().to_pylist()
        if number in self.batches:
            assert as_set(rows) == as_set(self.batches[number])
        self.batches[number] = rows

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows, in order of batches, shards and changes."""
        delivered = [row for number in sorted(self.batches) for row in self.batches[number]]
        return sorted(delivered, key=lambda row: (row["_commit_version"], row["_shard"], row["_order"]))

    def state(self) -> dict[tuple[str, Key], Row]:
        """What the changes lead to, by shard and key."""
        found: dict[tuple[str, Key], Row] = {}
        for row in self.rows:
            identity = row["_shard"], key_of(row, self._key)
            if row["_change_type"] in GONE:
                found.pop(identity, None)
            else:
                found[identity] = canonical_row(row)
        return found


def as_set(rows: list[dict[str, Any]]) -> set[tuple[tuple[str, Any], ...]]:
    """Rows without their order."""
    found = {tuple(sorted(row.items())) for row in rows}
    assert len(found) == len(rows)
    return found


def types(rows: list[dict[str, Any]], **wanted: Any) -> list[str]:
    """Change types of the rows with these values, in order."""
    return [row["_change_type"] for row in rows if _has(row, wanted)]


def _has(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(row[name] == value for name, value in wanted.items())
