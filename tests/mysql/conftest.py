"""One Spark session for the feeds of these tests."""

import pytest
from pyspark.sql import SparkSession

from catchment.spark import job


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session that runs find."""
    return job.session("mysql", "local[2]", {})
