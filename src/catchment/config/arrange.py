"""What a feed file says of the files that readers of a table find."""

import re

from pydantic import Field, field_validator

from catchment.config.table_rule import TableRule
from catchment.config.units import Bytes
from catchment.model.arrangement import Arrangement, Partition, Span

FILE_BYTES_MIN = 1 << 20
FILE_BYTES_MAX = 1 << 30
_SHARD = "_shard"
_SPANS = re.compile(r"(day|month|year)\((.+)\)")


class ArrangeConfig(TableRule):
    """How the rows of some tables lie in files."""

    cluster_by: tuple[str, ...] = Field(
        default=(),
        description="Columns by which rows are in order in each file, the first one first; without them, the key.",
    )
    partition_by: str | None = Field(
        default=None,
        description="What files are kept apart by: `_shard`, or the `day(column)`, `month(column)` or `year(column)` "
        "of a DATE, DATETIME or TIMESTAMP. It stays as it is when a feed has begun.",
    )
    target_file_size: Bytes | None = Field(
        default=None,
        ge=FILE_BYTES_MIN,
        le=FILE_BYTES_MAX,
        description="Small files are joined up to about this size; without it, up to some 100,000 rows. A join holds "
        "all its rows in memory, some five times as much.",
    )

    @field_validator("cluster_by")
    @classmethod
    def _distinct(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        if len({column.lower() for column in columns}) < len(columns):
            raise ValueError("names a column twice")
        return columns

    @field_validator("partition_by")
    @classmethod
    def _known(cls, partition_by: str | None) -> str | None:
        if partition_by in (None, _SHARD) or _SPANS.fullmatch(str(partition_by)):
            return partition_by
        raise ValueError("expected _shard, day(column), month(column) or year(column)")

    def arrangement(self) -> Arrangement:
        """What it says."""
        return Arrangement(self.cluster_by, self._partition(), self.target_file_size or 0)

    def _partition(self) -> Partition | None:
        if self.partition_by is None:
            return None
        spans = _SPANS.fullmatch(self.partition_by)
        return Partition(spans[2], Span(spans[1])) if spans else Partition()
