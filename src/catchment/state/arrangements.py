"""What a feed file says of the files of its tables, held against the columns that these have."""

from catchment.model.arrangement import Partition
from catchment.model.column_rule import rule_of
from catchment.model.epoch import TableShape
from catchment.model.errors import ConfigError
from catchment.model.table import Kind
from catchment.model.treatment import Treatment

_DATES = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)


def must_be_arrangeable(shape: TableShape, said: Treatment, *, begins: bool) -> None:
    """Raise ConfigError where a table cannot have its files so. A table that does not begin keeps its partitions."""
    where = f"arrange: {shape.table}"
    for name in said.arrangement.cluster_by:
        if shape.column(name) is None:
            raise ConfigError(
                f"{where}: cluster_by names {name}, which is no column of the table in the lake; correct it or take it "
                "out"
            )
    partition = said.arrangement.partition
    if begins:
        _must_be_dates(where, partition, shape)
    elif partition != shape.arrangement.partition:
        raise ConfigError(
            f"{where}: partition_by is {_told(shape.arrangement.partition)} since the feed began, and "
            f"{_told(partition)} now: the partitions of a table stay; put back what was there, or start a new feed "
            "(another `name` and `sink.path`)"
        )


def _must_be_dates(where: str, partition: Partition | None, shape: TableShape) -> None:
    if partition is None or partition.by_shard:
        return
    column = shape.column(partition.column)
    rule = rule_of(shape.rules, partition.column)
    if column is None or column.column.type.kind not in _DATES or (rule is not None and rule.masking):
        raise ConfigError(
            f"{where}: partition_by is {_told(partition)}, and {partition.column} is no DATE, DATETIME or TIMESTAMP of "
            "the table in the lake; name one that is, or partition by _shard"
        )


def _told(partition: Partition | None) -> str:
    if partition is None:
        return "not set"
    return f"{partition.span.value}({partition.column})" if partition.span is not None else "_shard"
