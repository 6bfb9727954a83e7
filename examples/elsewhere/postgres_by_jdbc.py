"""Keep a table of PostgreSQL equal to one of the source, exact at every version (docs/elsewhere.md).

Usage: FEED.yaml SCHEMA.TABLE KEY[,KEY ...] JDBC_URL CHECKPOINT. The user and its password are in PGUSER and PGPASSWORD.
"""

import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from catchment.serve.spark_source import register

DRIVER = "org.postgresql:postgresql:42.7.14"  # Spark fetches it once
LOGIN = {"user": os.environ["PGUSER"], "password": os.environ["PGPASSWORD"]}
OF_CHANGES = ("_change_type", "_commit_version", "_commit_timestamp", "_shard", "_gtid", "_order")
feed, table, key, url, checkpoint = sys.argv[1:]
target = table.rpartition(".")[2]
# In a zone with summer time, JDBC would move a DATETIME that a clock there skips.
ZONE = "-Duser.timezone=UTC"
builder = SparkSession.builder.config("spark.jars.packages", DRIVER)
builder = builder.config("spark.driver.extraJavaOptions", ZONE).config(
    "spark.executor.extraJavaOptions", ZONE
)
spark = builder.getOrCreate()
register(spark)


def quoted(*names: str) -> str:
    """Names as PostgreSQL takes them."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


TARGET, ARRIVED, PLACE = quoted(target), quoted(f"{target}_arrived"), quoted("_shard", *key.split(","))


def transaction() -> Any:
    """A connection of this program's own, by the driver that Spark writes with."""
    properties = spark._jvm.java.util.Properties()
    for name, value in LOGIN.items():
        properties.setProperty(name, value)
    connection = spark._jvm.org.postgresql.Driver().connect(url, properties)
    connection.setAutoCommit(False)
    return connection


def takes(connection: Any, version: int) -> bool:
    """Count a version of the target; False when it has it. Another program that writes the target waits here."""
    statement = connection.prepareStatement("UPDATE versions SET version = ? WHERE name = ? AND version < ?")
    statement.setLong(1, version)
    statement.setString(2, target)
    statement.setLong(3, version)
    return bool(statement.executeUpdate())


def apply(changes: DataFrame, batch: int) -> None:
    """Bring the target to the version of a micro-batch, in one transaction."""
    first = changes.persist().first()
    if first is None:
        return
    version = first["_commit_version"]
    columns = quoted("_shard", *(name for name in changes.columns if name not in OF_CHANGES))
    arrived = f"(SELECT * FROM {ARRIVED} WHERE _commit_version = {version}) AS arrived"
    last = f"(SELECT DISTINCT ON ({PLACE}) * FROM {arrived} ORDER BY {PLACE}, _order DESC) AS last"
    connection = transaction()
    try:
        if takes(connection, version):
            jdbc = {"url": url, "dbtable": ARRIVED, "driver": "org.postgresql.Driver", **LOGIN}
            changes.write.format("jdbc").options(**jdbc).mode("overwrite").save()
            statement = connection.createStatement()
            # Rows that were touched go first: two of them may have swapped a unique value.
            statement.executeUpdate(
                f"DELETE FROM {TARGET} WHERE ({PLACE}) IN (SELECT {PLACE} FROM {arrived})"
            )
            statement.executeUpdate(
                f"INSERT INTO {TARGET} ({columns}) SELECT {columns} FROM {last}"
                " WHERE _change_type IN ('insert', 'update_postimage')"
            )
            connection.commit()
    finally:
        connection.close()
        changes.unpersist()


changes = spark.readStream.format("catchment").options(feed=feed, table=table).load()
writer = changes.writeStream.foreachBatch(apply).option("checkpointLocation", checkpoint)
writer.trigger(processingTime="1 second").start().awaitTermination()
