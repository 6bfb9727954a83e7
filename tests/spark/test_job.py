"""A Spark job that fails."""

import pytest
from pyspark.sql import SparkSession

from catchment.model.errors import EngineError
from catchment.spark import job


def test_the_error_names_what_happened_in_the_task(spark: SparkSession) -> None:
    def broken(number: int) -> int:
        raise ValueError(f"offset overflow in table {number}")

    with pytest.raises(
        EngineError, match=r"Spark gave up a job of 1 tasks: .*; ValueError: offset overflow in table 7$"
    ) as raised:
        job.each(spark.sparkContext, broken, [7])
    assert len(str(raised.value).splitlines()) == 1
