"""Keep a ReplacingMergeTree of ClickHouse up to date with a table (docs/elsewhere.md).

Usage: FEED.yaml SCHEMA.TABLE KEY[,KEY ...] JDBC_URL CHECKPOINT. The user and its password are in CLICKHOUSE_USER and
CLICKHOUSE_PASSWORD.
"""

import os
import sys

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import col, row_number

from catchment.serve.spark_source import register

DRIVER = "com.clickhouse:clickhouse-jdbc:0.9.4"  # Spark fetches it once
LOGIN = {"user": os.environ["CLICKHOUSE_USER"], "password": os.environ["CLICKHOUSE_PASSWORD"]}
feed, table, key, url, checkpoint = sys.argv[1:]
OF_CHANGES = ("_change_type", "_commit_version", "_commit_timestamp", "_shard", "_gtid", "_order")


def append(changes: DataFrame, batch: int) -> None:
    """Append the last state of each row that a micro-batch touched. ClickHouse keeps the one of the newest version."""
    newest_first = Window.partitionBy("_shard", *key.split(",")).orderBy(col("_order").desc())
    last = changes.withColumn("_place", row_number().over(newest_first)).where("_place = 1")
    states = last.select(
        "_shard",
        *(name for name in changes.columns if name not in OF_CHANGES),
        col("_commit_version").alias("_version"),
        col("_change_type").isin("delete", "update_preimage").cast("tinyint").alias("_gone"),
    )
    jdbc = {"url": url, "dbtable": table.rpartition(".")[2], "driver": "com.clickhouse.jdbc.ClickHouseDriver"}
    states.write.format("jdbc").options(**jdbc, **LOGIN, isolationLevel="NONE").mode("append").save()


spark = SparkSession.builder.config("spark.jars.packages", DRIVER).getOrCreate()
register(spark)
changes = spark.readStream.format("catchment").options(feed=feed, table=table).load()
writer = changes.writeStream.foreachBatch(append).option("checkpointLocation", checkpoint)
writer.trigger(processingTime="1 second").start().awaitTermination()
