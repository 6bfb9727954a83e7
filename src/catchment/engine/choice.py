"""Which engine a feed has asked for."""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

from catchment.config import EngineName, Feed
from catchment.engine.local import LocalEngine
from catchment.engine.near import Near
from catchment.engine.nursery import Nursery
from catchment.engine.port import Engine
from catchment.model.extras import needing

_SPARK = "engine: spark"


def engine_of(feed: Feed, purpose: str = "", nursery: Nursery | None = None) -> Engine:
    """The feed's engine; Spark begins to start at once. `purpose` is added to the name that Spark shows. `nursery`: as
    `prepared` gave it."""
    return Near(_far(feed, f"{feed.name} {purpose}".strip(), nursery))


def prepared(feed: Feed) -> Nursery | None:
    """Where the engine's workers are to come from, if this has to be seen to before the process has threads. Raises
    NotInstalled where the engine is not there."""
    if feed.engine is EngineName.LOCAL:
        return Nursery.forked()
    with needing(_SPARK, "feed"):
        if find_spec("pyspark") is None:  # to import it takes half a second, in which shards can be asked
            raise ModuleNotFoundError(name="pyspark")
    return None


def _far(feed: Feed, name: str, nursery: Nursery | None) -> Engine:
    if feed.engine is EngineName.LOCAL:
        return LocalEngine(nursery=nursery)
    with needing(_SPARK, "feed"):  # a feed that wants no Java needs no PySpark
        from catchment.engine.context import context
        from catchment.engine.spark import SparkEngine

    spark = feed.spark
    return SparkEngine(lambda: context(name, spark.master, spark.conf, spark_log(feed)))


def spark_log(feed: Feed) -> Path:
    """Where Spark's own messages go."""
    lake = feed.sink.path
    if isinstance(lake, Path):
        return lake / "_catchment" / "spark.log"
    return Path(tempfile.gettempdir()) / f"catchment-{os.getuid()}-{feed.name}-spark.log"
