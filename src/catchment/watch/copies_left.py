"""What a shard has left to copy of each table, and how fast it goes. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catchment.model.progress import CopyProgress, Forecast
from catchment.model.refusal import Refusal
from catchment.model.shard import Copy
from catchment.model.table import TableId
from catchment.watch.forecasts import Copying, copied
from catchment.watch.growth import Growth
from catchment.watch.rows_left import Estimate, Left, RowsLeft

PAUSED = "it is paused"
UNCOUNTED = "how many rows it has is not known"
# Tables that have not begun are told of as far as this; hundreds of them wait for the same.
_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class _Begun:
    left: RowsLeft
    rows: Growth


class CopiesLeft:
    """Watches the copies of one shard. `unfinished`: those that are not done. `rows`: all rows that came since the run
    began. `place_of`: the place of a table in the order of copying."""

    def __init__(self, place_of: Callable[[TableId], int] = lambda table: 0) -> None:
        self._place_of = place_of
        self.rows = Growth()
        self.unfinished: tuple[Copy, ...] = ()
        self._copies: tuple[Copy, ...] | None = None
        self._begun: dict[TableId, _Begun] = {}

    def look(self, copies: tuple[Copy, ...], now: float) -> None:
        """The copies stand here now. Where none has changed nothing is gone through."""
        if copies is not self._copies:
            self._take(copies, now)
        elif self.unfinished:
            self.rows.add(now, self.rows.total)

    def progress(
        self, shard: str, refused: Mapping[TableId, Refusal], now: float, waits: str = ""
    ) -> Copying:
        """How far the unfinished copies are. A table is done when those in front of it are, too: they come first.
        `waits`: why the shard copies no rows at all."""
        rate = self.rows.spread(now)
        front, uncounted, kept = Left(0, 0, 0), "", ""
        shown: list[CopyProgress] = []
        for copy in sorted(self.unfinished, key=lambda copy: self._place_of(copy.table)):
            estimate = self._estimate(copy)
            refusal = refused.get(copy.table)
            why = PAUSED if copy.paused else waits or (refusal.reason if refusal is not None else "")
            if not why and estimate.left is None:
                why = UNCOUNTED
                uncounted = uncounted or f"{copy.table} on {shard}: {UNCOUNTED}"
            elif not why and estimate.left is not None:
                front = front.plus(estimate.left)
            kept = kept or (f"{copy.table} on {shard}: {why}" if why else "")
            if copy.rows or refusal is not None or len(shown) < _SHOWN_MAX:
                why = why or uncounted
                left = Forecast(why=why) if why else copied(front, rate)
                shown.append(self._shown(shard, copy, estimate, left, now))
        whole = Forecast(why=kept) if kept else copied(front, rate)
        return Copying(shard, tuple(shown), front, rate, whole)

    def _shown(self, shard: str, copy: Copy, estimate: Estimate, left: Forecast, now: float) -> CopyProgress:
        begun = self._begun.get(copy.table)
        rate = begun.rows.spread(now) if begun is not None else None
        expected = None if estimate.left is None else copy.rows + round(estimate.left.likely)
        mean = None if rate is None else rate.mean
        return CopyProgress(shard, copy.table, copy.rows, expected, estimate.basis, mean, left)

    def _estimate(self, copy: Copy) -> Estimate:
        begun = self._begun.get(copy.table)
        return (begun.left if begun is not None else RowsLeft()).estimate(copy)

    def _take(self, copies: tuple[Copy, ...], now: float) -> None:
        before = {copy.table: copy for copy in self.unfinished}
        known = [(copy, before[copy.table]) for copy in copies if copy.table in before]
        came = sum(max(copy.rows - last.rows, 0) for copy, last in known)
        if not self.unfinished or any(copy.paused != last.paused for copy, last in known):
            # A pause is no standstill, and neither is the time when nothing was to be copied.
            self.rows = Growth()
        self.rows.add(now, self.rows.total + came)
        self._copies = copies
        self.unfinished = tuple(copy for copy in copies if not copy.done)
        begun = [copy for copy in self.unfinished if copy.rows]
        self._begun = {copy.table: self._looked(copy, before.get(copy.table), now) for copy in begun}

    def _looked(self, copy: Copy, last: Copy | None, now: float) -> _Begun:
        begun = self._begun.get(copy.table)
        if begun is None or last is None or last.paused != copy.paused or copy.rows < last.rows:
            begun = _Begun(begun.left if begun is not None else RowsLeft(), Growth())
        begun.left.look(copy)
        begun.rows.add(now, copy.rows)
        return begun
