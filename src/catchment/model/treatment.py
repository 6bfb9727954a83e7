"""What a feed makes of a table: what its sink keeps of rows and of columns, and how they lie in files."""

from collections.abc import Iterable
from enum import Enum

import msgspec

from catchment.model.arrangement import AS_THEY_COME, Arrangement
from catchment.model.column_rule import ColumnRule
from catchment.model.table import TableId


class Mode(Enum):
    """What a sink keeps of the rows of a table."""

    MIRROR = "mirror"  # those that the source has
    SOFT_DELETE = "soft_delete"  # these, and those that it had, with their last values, marked
    APPEND = "append"  # of every epoch the net change of each row
    HISTORY = "history"  # of every row each version, with the epochs between which it was the row

    @property
    def keeps_past(self) -> bool:
        """Whether a sink has more than the rows of now."""
        return self is not Mode.MIRROR


class SchemaChange(Enum):
    """What a feed does when the definition or the rows of a table are changed by DDL."""

    EVOLVE = "evolve"  # follow it, or copy the table anew
    FREEZE = "freeze"  # leave the table as it was before
    FAIL = "fail"  # end the run in front of it


class Changes(msgspec.Struct, frozen=True):
    """What is done about DDL on the tables of `others`, and on all that are not among them."""

    usual: SchemaChange = SchemaChange.EVOLVE
    others: dict[TableId, SchemaChange] = {}

    def of(self, table: TableId) -> SchemaChange:
        """What is done about DDL on a table."""
        return self.others.get(table, self.usual)

    def following(self, tables: Iterable[TableId]) -> "Changes":
        """The same, where DDL on these tables is followed."""
        others = dict.fromkeys(tables, SchemaChange.EVOLVE)
        return Changes(self.usual, {**self.others, **others}) if others else self

    def follows(self, table: TableId) -> bool:
        """Whether a run goes on behind DDL on a table."""
        return self.of(table) is not SchemaChange.FAIL


class Treatment(msgspec.Struct, frozen=True):
    """What a feed file says of a table."""

    mode: Mode = Mode.MIRROR
    rules: tuple[ColumnRule, ...] = ()
    arrangement: Arrangement = AS_THEY_COME


PLAIN = Treatment()
