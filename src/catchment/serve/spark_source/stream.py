"""`spark.readStream.format("catchment")`: the rows first, then every change, in micro-batches that end at
cuts.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from catchment.serve.spark_source.driver import StreamDriver
from catchment.serve.spark_source.offset import VERSION, Offset, not_begun, read
from catchment.serve.spark_source.options import SourceOptions
from catchment.serve.spark_source.read import ChunkGroup, LogRange, Work, read_work
from catchment.serve.spark_source.start import gtids_of_shards
from catchment.serve.spark_source.stream_cut import StreamCut


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Spark's view of a stream. Made in several processes: sessions are opened where they are used, by the
    driver-side instance in `latestOffset` and by executors in `read`.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._driver: StreamDriver | None = None

    def initialOffset(self) -> Offset:
        """Where a stream begins: no session is opened, so that it is the same in every process."""
        options = self._options
        if options.gtids is not None:
            return {"version": VERSION, "start": gtids_of_shards(options.gtids, list(options.load()[1]))}
        shards = [] if options.starting.isalpha() else list(options.load()[1])
        return not_begun(options.starting, shards, options.table)

    def prepareForTriggerAvailableNow(self) -> None:
        """From here on there is an end: the log as it stands, and the copy if there is one to finish."""
        self._live().end_at_now()

    def getDefaultReadLimit(self) -> ReadLimit:
        """`maxBytesPerTrigger` of log."""
        return ReadMaxBytes(self._options.bytes_per_trigger)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The cut at which the next batch ends; `start` itself when there is nothing new."""
        return self._live().next_offset(start, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Where the shards' logs stand, for the query's progress."""
        return None if self._driver is None else self._driver.newest()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """One partition for each shard's log between the two cuts, and one for each chunk."""
        table = self._options.table
        since, until = read(start, table), read(end, table)
        if since is None or until is None:
            return []
        return [InputPartition(work) for work in self._work(since, until)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        yield from read_work(partition.value, self._schema)

    def stop(self) -> None:
        """End the clock; Spark seldom asks, it ends the process."""
        if self._driver is not None:
            self._driver.stop()

    def _live(self) -> StreamDriver:
        if self._driver is None:
            self._driver = StreamDriver(self._options)
        return self._driver

    def _work(self, since: StreamCut, until: StreamCut) -> Iterator[Work]:
        shape = self._live().shape()
        for shard, end in until.cut.shards.items():
            start = since.cut.shards[shard]
            # From one base name of a log to the next one there is nothing to read.
            if start.position.at != end.position.at and start.position.at.base == end.position.at.base:
                yield LogRange(
                    options=self._options,
                    shape=shape,
                    shard=shard,
                    state=start,
                    stop=end.position.at,
                    epoch=until.cut.epoch,
                    dropped=since.batch[shard].dropped,
                )
            for chunk in until.chunks(since, shard):
                yield ChunkGroup(
                    options=self._options,
                    shape=shape,
                    shard=shard,
                    state=end,
                    chunks=(chunk,),
                    epoch=until.cut.epoch,
                    time_us=until.cut.time_us,
                )
