"""One Spark session with the source registered, and feed files for the shared shards."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark import SparkContext
from pyspark.sql import SparkSession

from catchment.demo.server import PrivateServer
from catchment.serve.spark_source import register
from tests.layers.serve.direct import Driver

NAMES = ("-80", "80-")
MakeFeed = Callable[..., Path]
Drive = Callable[..., Driver]


@pytest.fixture(scope="session")
def spark(spark: SparkContext) -> SparkSession:
    """A session that knows the source."""
    session = SparkSession(spark)
    register(session)
    return session


@pytest.fixture
def make_feed(tmp_path: Path) -> MakeFeed:
    """`make_feed(server, ..., chunk_rows=...)` writes a feed file for the servers and returns its path. Its state
    store is not to be had: the source needs none."""

    def make(*servers: PrivateServer, chunk_rows: int = 500) -> Path:
        shards = [
            {"name": name, "host": s.host, "port": s.port, "user": "catchment", "password": s.password}
            for name, s in zip(NAMES, servers, strict=False)
        ]
        file = tmp_path / "feed.yaml"
        described = {
            "name": "source",
            "source": {"keyspace": "shop", "shards": shards},
            "tables": ["*.*"],
            "sink": {"path": str(tmp_path / "lake")},
            "state": {"env": "CATCHMENT_UNSET"},
            "epoch": {"interval": "200ms", "tick": "50ms"},
            "copy": {"chunk_rows_max": chunk_rows, "group_time": "0s"},
        }
        file.write_text(yaml.safe_dump(described))
        return file

    return make


@pytest.fixture
def drive() -> Iterator[Drive]:
    """`drive(...)` makes a Driver, which is stopped after the test."""
    made: list[Driver] = []

    def make(*arguments: Any, **options: Any) -> Driver:
        made.append(Driver(*arguments, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.planner.stop()
