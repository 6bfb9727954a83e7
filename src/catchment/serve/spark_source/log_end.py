"""Where the log of a shard ended at a moment: a query that is to end there has delivered all that lies in front."""

from collections.abc import Collection
from dataclasses import dataclass

from catchment.model.position import LogOffset, Order, relation


@dataclass(frozen=True, slots=True)
class LogEnd:
    """`files`: those that the log had then. Numbers order the files of one base name only (source/log_names.py)."""

    at: LogOffset
    files: Collection[str]

    def lies_beyond(self, place: LogOffset) -> bool:
        """Whether there is log between a place and the end. A place in a file of another name lies in front of it, if
        the log had that file then."""
        if place.base != self.at.base:
            return place.file in self.files
        return relation(self.at, place) is Order.AFTER

    def mended(self, told: LogOffset) -> "LogEnd":
        """The end as a later tick tells it. A tick of an earlier base name says nothing of this end: it names the last
        group of that name."""
        return LogEnd(told, self.files) if told.base == self.at.base else self
