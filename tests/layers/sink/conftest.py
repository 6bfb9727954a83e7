"""A lake of three epochs."""

from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from catchment.model.epoch import Part
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import ORDERS


@pytest.fixture
def feeder(tmp_path: Path) -> Feeder:
    """Epoch 1 copies rows 1 to 3; epoch 2 changes row 2; epoch 3 deletes row 3."""
    feeder = Feeder(tmp_path / "la[ke] of *'q' 100%")
    feeder.put(ORDERS, (1, "a"), (2, "b"), (3, "c"), part=Part.BASE)
    feeder.put(ORDERS, (2, "B"))
    feeder.put(ORDERS, (3, None), deleted=True)
    return feeder


@pytest.fixture(scope="module")
def spark(spark: SparkContext) -> SparkSession:
    """A session whose files lie in another file system, where paths do not say that they are of this host."""
    session = SparkSession(spark).newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("fs.defaultFS", "hdfs://elsewhere.invalid:9000")
    return session
