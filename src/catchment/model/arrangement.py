"""How the rows of a plain table lie in its files, for the readers that ask for some of them."""

from enum import Enum

import msgspec


class Span(Enum):
    """What one partition has of a calendar."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"


class Partition(msgspec.Struct, frozen=True, omit_defaults=True):
    """By what files are kept apart: by shard, or by the spans of a column of dates."""

    column: str = ""
    span: Span | None = None

    @property
    def by_shard(self) -> bool:
        """Whether it is by shard."""
        return self.span is None

    def name_of(self, shown: str) -> str:
        """Of the column that has the first day of each span; `shown`: the name of the column of dates."""
        return f"_{shown}_{self.span.value}" if self.span is not None else ""


class Arrangement(msgspec.Struct, frozen=True, omit_defaults=True):
    """`cluster_by`: columns by which the rows of a file are in order, by default those of the key. `file_bytes`: from
    what size on files are not joined any more; 0: that is for their rows to say."""

    cluster_by: tuple[str, ...] = ()
    partition: Partition | None = None
    file_bytes: int = 0


AS_THEY_COME = Arrangement()
