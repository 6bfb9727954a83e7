"""Tables that readers see as of an earlier epoch, since what became of their rows is in no log."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from catchment.model.birth import Birth
from catchment.model.epoch_number import epoch_text
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.model.withheld import Withheld

NOWHERE: Final[Mapping[str, LogOffset]] = MappingProxyType({})


class Stale(msgspec.Struct, frozen=True):
    """A table that readers see as of an earlier `epoch`, the last at which it was exact. `reason` says what happened to
    it at `time_us` (microseconds since 1970), and `shards` had it then. `asked`: somebody ordered to copy it anew, also
    where the feed's policy is to leave it. `waits`: it is copied anew when somebody orders it, whatever the policy.
    `births`: by shard, where the table was made that has the name since. `withheld`: what rules hid of its columns.
    `places`: by shard, where in its log that is which made it stale, if it is neither DDL nor a lost log.

    The feed copies it anew: a manifest has a shape and copies of it from then on. It is stale until they are done, or
    where it `settles`, until its plain table has what replaces the rows of some shards.
    """

    table: TableId
    epoch: int
    time_us: int
    shards: tuple[str, ...]
    reason: str
    asked: bool = False
    waits: bool = False
    births: dict[str, Birth] = {}
    withheld: Withheld = Withheld()
    settles: bool = False
    places: dict[str, LogOffset] = {}

    def __str__(self) -> str:
        return f"{self.table} is {self.said}"

    @property
    def said(self) -> str:
        """What is so, since when and why, without the table: tables that one trouble made stale have it in common."""
        return f"stale (readers see epoch {epoch_text(self.epoch)}): {self.reason}"
