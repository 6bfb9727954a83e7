"""What a table of one shard went through in an epoch, by its statements and its rows."""

from collections.abc import Iterable
from dataclasses import dataclass

from catchment.model.position import LogOffset
from catchment.model.table import Table, TableId
from catchment.schema.ddl import Columns


@dataclass(frozen=True, slots=True)
class Alteration:
    """One ALTER TABLE of a stretch of log, and the ordinal of its group."""

    effect: Columns
    group: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """A table whose rows the log does not tell from some statement on. `reason` says which, where and why. `at`: where
    that is, if it stopped the table as DDL. `place`: where it is otherwise, if it is something in the log."""

    table: TableId
    reason: str
    at: LogOffset | None = None
    place: LogOffset | None = None


@dataclass(frozen=True, slots=True)
class MetTable:
    """A table as the last of its row events describes it, and the ordinal of that event's group."""

    table: Table
    group: int


@dataclass(frozen=True, slots=True)
class Passage:
    """The effects of ALTERs before the last row event, the table as that event describes it, and the effects behind it.

    Without a row event all effects are `behind`. `catalog`: the table as it is now, where somebody has asked.
    """

    effects: tuple[Columns, ...] = ()
    met: Table | None = None
    behind: tuple[Columns, ...] = ()
    catalog: Table | None = None

    @classmethod
    def of(
        cls, met: MetTable | None, altered: Iterable[Alteration], catalog: Table | None = None
    ) -> "Passage":
        """Of the alterations of one table."""
        altered = tuple(altered)
        if met is None:
            return cls((), None, tuple(one.effect for one in altered), catalog)
        return cls(
            tuple(one.effect for one in altered if one.group <= met.group),
            met.table,
            tuple(one.effect for one in altered if one.group > met.group),
            catalog,
        )

    @property
    def alters(self) -> tuple[Columns, ...]:
        """All effects, in order."""
        return self.effects + self.behind

    @property
    def redefines(self) -> bool:
        """Whether a statement was more than a TRUNCATE."""
        return any(not effect.emptied for effect in self.alters)

    @property
    def drops(self) -> bool:
        """Whether a name of a column was taken away."""
        return any(effect.dropped or effect.renamed for effect in self.alters)

    @property
    def untold(self) -> bool:
        """Whether columns were added whose types no row event tells."""
        names = set() if self.met is None else {column.name for column in self.met.columns}
        return any(effect.added for effect in self.behind) or any(
            not set(effect.added) <= names for effect in self.effects
        )
