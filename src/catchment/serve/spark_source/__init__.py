"""A table as a Spark data source: batch and stream."""

from catchment.serve.spark_source.data_source import CatchmentDataSource, register

__all__ = ["CatchmentDataSource", "register"]
