"""How much log of a shard is written and not read, and how fast both go on; from offsets, without asking the server."""

from collections.abc import Mapping

from catchment.model.position import LogOffset
from catchment.watch.growth import Growth


class LogLeft:
    """Watches the log of one shard. `files`: its files and their bytes as of the beginning. Where a later one ends is
    where its end was seen last, which can be short by what was written within a second."""

    def __init__(self, files: Mapping[str, int]) -> None:
        self.written, self.read = Growth(), Growth()
        self._ends = {LogOffset(name, 0).number: size for name, size in files.items()}
        self._end: LogOffset | None = None
        self._at: LogOffset | None = None

    def read_to(self, at: LogOffset, now: float) -> None:
        """What stands up to here is in the lake."""
        self._count(self.read, self._at, at, now)
        self._at = at
        self._ends = {number: size for number, size in self._ends.items() if number >= at.number}

    def ends_at(self, end: LogOffset, now: float) -> None:
        """The log ends here now."""
        self._ends[end.number] = max(self._ends.get(end.number, 0), end.offset)
        self._count(self.written, self._end, end, now)
        self._end = end

    @property
    def backlog(self) -> int | None:
        """Bytes that are written and not in the lake; None where the end of a file between is not known."""
        if self._at is None or self._end is None:
            return None
        between = self._between(self._at, self._end)
        return None if between is None else max(between, 0)

    def _count(self, growth: Growth, before: LogOffset | None, after: LogOffset, now: float) -> None:
        grown = 0 if before is None else self._between(before, after)
        if grown is not None:
            growth.add(now, growth.total + max(grown, 0))

    def _between(self, begin: LogOffset, end: LogOffset) -> int | None:
        if begin.base != end.base:
            return None
        if begin.file == end.file:
            return end.offset - begin.offset
        whole = [self._ends.get(number) for number in range(begin.number, end.number)]
        known = [size for size in whole if size is not None]
        return sum(known) - begin.offset + end.offset if len(known) == len(whole) else None
