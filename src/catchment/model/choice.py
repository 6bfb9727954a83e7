"""What a comparison compares: some tables or all, a sample of their chunks, a portion of one table, or what changed."""

import msgspec

from catchment.model.sample import EVERYTHING, Sample
from catchment.model.table import TableId


class Portion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A portion of a table: its rows on one shard (empty: on all), with keys from `first` to `last`, both included
    (empty: no limit). With `where` only chunks that hold a row for which it is true at the source. Keys and condition
    are texts as a person writes them."""

    table: TableId
    shard: str = ""
    first: str = ""
    last: str = ""
    where: str = ""

    def __str__(self) -> str:
        keys = f", keys {self.first}..{self.last}" if self.first or self.last else ""
        where = f", chunks with {self.where}" if self.where else ""
        return f"{self.table}{f' on {self.shard}' if self.shard else ''}{keys}{where}"


class Since(msgspec.Struct, frozen=True, omit_defaults=True):
    """What changed behind an `epoch`, on one shard (empty: on all)."""

    epoch: int
    shard: str = ""


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """`tables`: empty for all of the feed. Of a `portion` its table is the only one. `since`: of the tables only the
    keys that changed since."""

    tables: tuple[TableId, ...] = ()
    sample: Sample = EVERYTHING
    portion: Portion | None = None
    since: Since | None = None

    def takes(self, table: TableId) -> bool:
        """Whether a table is compared."""
        return not self.tables or table in self.tables


ALL = Choice()
