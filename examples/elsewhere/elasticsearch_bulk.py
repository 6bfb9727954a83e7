"""Keep an index of Elasticsearch or OpenSearch up to date with a table (docs/elsewhere.md).

Usage: FEED.yaml SCHEMA.TABLE KEY[,KEY ...] URL INDEX CHECKPOINT. A key of the API, if it asks for one, is in
ELASTIC_API_KEY.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from urllib.request import Request, urlopen

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql.functions import col, row_number, struct, to_json

from catchment.serve.spark_source import register

feed, table, key, url, index, checkpoint = sys.argv[1:]
HEADERS = {"Content-Type": "application/x-ndjson"}
if "ELASTIC_API_KEY" in os.environ:
    HEADERS["Authorization"] = f"ApiKey {os.environ['ELASTIC_API_KEY']}"
PLACE = ["_shard", *key.split(",")]
OF_CHANGES = ("_change_type", "_commit_version", "_commit_timestamp", "_shard", "_gtid", "_order")
# A request holds so many bytes, as Elastic recommends. A node that is busy is asked again for a minute.
REQUEST_BYTES, SECONDS, TRIES = 5 << 20, 120, 60
DONE, NEWER, GONE_ALREADY, BUSY = range(200, 300), 409, 404, 429


def actions(rows: Iterator[Row]) -> Iterator[list[str]]:
    """What `_bulk` is to do, in pieces of a request each. A document that has a newer version stays as it is."""
    piece: list[str] = []
    size = 0
    for row in rows:
        what = {"_index": index, "_id": row.id, "version": row.version, "version_type": "external_gte"}
        lines = json.dumps({"delete" if row.gone else "index": what}) + "\n"
        if not row.gone:
            lines += f"{row.document}\n"
        if piece and size + len(lines) > REQUEST_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(lines)
        size += len(lines)
    if piece:
        yield piece


def left_over(piece: list[str]) -> list[str]:
    """Send a request; the actions that the node was too busy for. Raises RuntimeError for one that it refuses."""
    request = Request(f"{url}/_bulk", "".join(piece).encode(), HEADERS)
    with urlopen(request, timeout=SECONDS) as answer:
        items = [next(iter(item.values())) for item in json.load(answer)["items"]]
    for item in items:
        if item["status"] not in (*DONE, NEWER, GONE_ALREADY, BUSY):
            raise RuntimeError(f"{index} refuses {item['_id']}: {item['error']}")
    return [lines for lines, item in zip(piece, items, strict=True) if item["status"] == BUSY]


def send(rows: Iterator[Row]) -> None:
    """Bring a partition's documents to the index."""
    for piece in actions(rows):
        left = left_over(piece)
        for _ in range(TRIES):
            if not left:
                break
            time.sleep(1)
            left = left_over(left)
        if left:
            raise RuntimeError(f"{index} was too busy for {len(left)} documents, for {TRIES} seconds")


def apply(changes: DataFrame, batch: int) -> None:
    """Bring the last state of each row that a micro-batch touched."""
    newest_first = Window.partitionBy(*PLACE).orderBy(col("_order").desc())
    last = changes.withColumn("_place", row_number().over(newest_first)).where("_place = 1")
    names = [name for name in changes.columns if name not in OF_CHANGES]
    documents = last.select(
        to_json(struct(*PLACE)).alias("id"),
        col("_commit_version").alias("version"),
        col("_change_type").isin("delete", "update_preimage").alias("gone"),
        to_json(struct("_shard", *names), {"ignoreNullFields": "false"}).alias("document"),
    )
    documents.foreachPartition(send)


spark = SparkSession.builder.getOrCreate()
register(spark)
changes = spark.readStream.format("catchment").options(feed=feed, table=table).load()
writer = changes.writeStream.foreachBatch(apply).option("checkpointLocation", checkpoint)
writer.trigger(processingTime="1 second").start().awaitTermination()
