"""Send every change of a table to a topic of Kafka, those of a row in order (docs/elsewhere.md).

Usage: FEED.yaml SCHEMA.TABLE KEY[,KEY ...] BROKERS TOPIC CHECKPOINT
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct, to_json

from catchment.serve.spark_source import register

KAFKA = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"  # Spark fetches it once; its version is Spark's own
)
feed, table, key, brokers, topic, checkpoint = sys.argv[1:]
PLACE = ["_shard", *key.split(",")]


def send(changes: DataFrame, batch: int) -> None:
    """Send a micro-batch. The changes of a row go through one task, in their order, into one partition of the topic."""
    ordered = changes.repartition(*PLACE).sortWithinPartitions("_order")
    messages = ordered.select(
        to_json(struct(*PLACE)).alias("key"),
        to_json(struct("*"), {"ignoreNullFields": "false"}).alias("value"),
    )
    messages.write.format("kafka").options(**{"kafka.bootstrap.servers": brokers, "topic": topic}).save()


spark = SparkSession.builder.config("spark.jars.packages", KAFKA).getOrCreate()
register(spark)
changes = spark.readStream.format("catchment").options(feed=feed, table=table).load()
writer = changes.writeStream.foreachBatch(send).option("checkpointLocation", checkpoint)
writer.trigger(processingTime="1 second").start().awaitTermination()
