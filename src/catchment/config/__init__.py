"""The feed file: one YAML file per feed, read once and validated whole."""

from catchment.config.feed import (
    CopyConfig,
    EpochConfig,
    Feed,
    FoldConfig,
    MetricsConfig,
    NotifyConfig,
    NotifyEvent,
    SchemaChange,
    ShardConfig,
    SinkConfig,
    SourceConfig,
    SparkConfig,
    TlsConfig,
    Unusable,
)
from catchment.config.file import load
from catchment.config.table_patterns import selects

__all__ = [
    "CopyConfig",
    "EpochConfig",
    "Feed",
    "FoldConfig",
    "MetricsConfig",
    "NotifyConfig",
    "NotifyEvent",
    "SchemaChange",
    "ShardConfig",
    "SinkConfig",
    "SourceConfig",
    "SparkConfig",
    "TlsConfig",
    "Unusable",
    "load",
    "selects",
]
