"""The Spark of a feed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext

from catchment.config import Feed
from catchment.spark import job
from catchment.spark.early import EarlySpark


def spark_log(feed: Feed) -> Path:
    """Where Spark's own messages go."""
    return Path(feed.sink.path) / "_catchment" / "spark.log"


def start_spark(feed: Feed, purpose: str = "") -> SparkContext:
    """Start it, or take the one that runs already in this process; raises as `job.context`."""
    name = f"{feed.name} {purpose}".strip()
    return job.context(name, feed.spark.master, feed.spark.conf, spark_log(feed))


@contextmanager
def spark_early(feed: Feed) -> Iterator[EarlySpark | None]:
    """Let it start while the driver imports what it needs and looks at the shards; None for a feed that has not begun,
    whose lake, where Spark's messages go, is not there yet."""
    if not spark_log(feed).parent.is_dir():
        yield None
        return
    with EarlySpark(lambda: start_spark(feed)) as early:
        yield early
