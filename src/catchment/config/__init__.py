"""The feed file: one YAML file per feed, read once and validated whole."""

from catchment.config.copying import CopyConfig, ThrottleConfig
from catchment.config.feed import (
    EpochConfig,
    Feed,
    NewTables,
    ShardConfig,
    SourceConfig,
    TlsConfig,
    Unusable,
)
from catchment.config.file import load, load_server
from catchment.config.serving import ServeConfig
from catchment.config.sink import SinkConfig
from catchment.config.spark import EngineName, SparkConfig
from catchment.config.table_patterns import takes
from catchment.config.verifying import VerifyConfig
from catchment.config.watching import MetricsConfig, NotifyConfig, NotifyEvent, StatusConfig
from catchment.model.treatment import SchemaChange

__all__ = [
    "CopyConfig",
    "EngineName",
    "EpochConfig",
    "Feed",
    "MetricsConfig",
    "NewTables",
    "NotifyConfig",
    "NotifyEvent",
    "SchemaChange",
    "ServeConfig",
    "ShardConfig",
    "SinkConfig",
    "SourceConfig",
    "SparkConfig",
    "StatusConfig",
    "ThrottleConfig",
    "TlsConfig",
    "Unusable",
    "VerifyConfig",
    "load",
    "load_server",
    "takes",
]
