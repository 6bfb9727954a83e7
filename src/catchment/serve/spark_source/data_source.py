"""Catchment as a Spark data source for one table, for people who want a query of their own.

    from catchment.serve.spark_source import register
    register(spark)
    spark.read.format("catchment").options(feed="shop.yaml", table="shop.orders").load()
    spark.readStream.format("catchment").options(feed="shop.yaml", table="shop.orders").load()

A batch read is the table's state at one cut of all shards, exact while writes go on. A stream is a copy of the table
followed by its changes. Applied in order per `_shard` and key, they give the source's state at the end of every
micro-batch.

Columns are those of the table and six more, of which a change data feed names the first three:

* `_change_type`: insert, update_preimage, update_postimage or delete. Copied rows are inserts.
* `_commit_version`: the epoch, one per micro-batch.
* `_commit_timestamp`: that of the group; for copied rows that of the cut.
* `_shard`: its name.
* `_gtid`: domain-server-sequence; null for copied rows.
* `_order`: the order of changes within shard and epoch. Copied rows come first, with 0.

A key update gives a preimage with the old key and a postimage with the new one. While the copy has passed only one
of the two, it gives a delete and an insert.

Options:

* `feed`: path of the feed file. Executors load it too, so that no password is in a plan, partition or checkpoint. It
  must be at the same path on all machines, and variables that it names must be set there.
* `table`: schema.name.
* `startingOffset`: earliest (copy first), latest (changes only) or a cut as JSON.
* `startingGtids`: changes only, those behind a backup. It names the GTIDs that the backup holds, as JSON
  {"SHARD": "GTIDS"}; of a feed with one shard the GTIDs alone. They are what `@@gtid_executed` of MySQL or
  `@@gtid_binlog_pos` of MariaDB was then.
* `maxBytesPerTrigger`: log per micro-batch, of all shards together, cut at the end of a group; 64MB if not given.
* `maxChunksPerTrigger`: chunks copied per shard and micro-batch; as the feed's `copy` section has it if not given.
* `maxLogBytes`: log that one task of a batch read may have to read behind its rows; 1GB if not given.

Sizes of chunks are those of the feed's `copy` section.

docs/spark-source.md has examples, and what ends a stream.

Set PYSPARK_PYTHON to the Python that has Catchment: Spark's workers take `python3` else.
"""

from collections.abc import MutableMapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from catchment.model.table import Table
from catchment.serve.spark_source.batch import BatchReader
from catchment.serve.spark_source.driver import read_shape
from catchment.serve.spark_source.options import read_options
from catchment.serve.spark_source.rows import schema_of
from catchment.serve.spark_source.stream import StreamReader


class CatchmentDataSource(DataSource):  # type: ignore[misc]
    """`format("catchment")`; see the module. Spark makes it in several processes: it opens no session when
    made.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "catchment"

    def schema(self) -> StructType:
        """The table's columns as they are now, and the change columns. Raises ConfigError, SourceError."""
        options = read_options(self.options)
        shape = read_shape(options.load()[1], options.table)
        return schema_of(Table(shape.table, tuple(c.column for c in shape.columns), shape.key))

    def reader(self, schema: StructType) -> BatchReader:
        """A batch read."""
        return BatchReader(read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        """A stream."""
        return StreamReader(read_options(self.options), schema)


def register(spark: SparkSession) -> None:
    """Make `format("catchment")` known to the session."""
    spark.dataSource.register(CatchmentDataSource)
