"""One Spark session for the feeds of these tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from catchment.spark import job


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that every `run_feed` finds, so that Java starts once."""
    session = job.session("hidden", "local[2]", {})
    yield session
    session.stop()
