"""What is known of the comparisons that a run makes in the background: kept in the state store, and told when keys
differ."""

import logging
from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from catchment import world
from catchment.config import NotifyEvent
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError
from catchment.model.table import TableId
from catchment.model.verification import Comparison, UnderWay, Verification
from catchment.state.journal import Journal
from catchment.state.moments import time_text
from catchment.watch.notify import Notifier

# How far it has come is kept so often at most.
_KEEP_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Verified:
    """One thread calls it; `now` is replaced whole, so that others may look. A store that is away ends nothing: what it
    does not take is told again by a later run. Making it raises StateError."""

    def __init__(self, journal: Journal, notifier: Notifier) -> None:
        self._journal = journal
        self._notifier = notifier
        self._kept_at = world.steady_seconds() - _KEEP_SECONDS
        self.now = journal.verification()

    def due_in(self, every: float) -> float:
        """Seconds until a comparison is to begin; 0 where one has begun, or none was ever made."""
        if self.now.now is not None or self.now.last is None:
            return 0.0
        seconds = self.now.last.began_us / 1e6 + every - world.now_us() / 1e6
        left = max(seconds, 0.0) if seconds <= 2 * every else 0.0  # somebody has set the clock back
        next_us = world.now_us() + round(left * 1e6)
        if abs(next_us - self.now.next_us) > 1e6:
            self._keep(replace(self.now, next_us=next_us))
        return left

    def begin(self) -> int:
        """A comparison begins, or goes on; when it began, in microseconds since 1970."""
        if self.now.now is None:
            self._keep(replace(self.now, now=UnderWay(world.now_us())))
        under_way = self._under_way
        _log.info("comparing source and lake in the background, begun at %s", time_text(under_way.began_us))
        return under_way.began_us

    def advanced(self, rows: int, expected: int, differences: Mapping[TableId, int], waits: str = "") -> None:
        """So many rows are compared of about so many; keys that differ by table."""
        before = self._under_way
        tables = {str(table): keys for table, keys in differences.items() if keys}
        under_way = UnderWay(before.began_us, rows, max(rows, expected), tables, waits)
        found = sorted(tables.keys() - before.tables.keys())
        if found:
            self._tell(
                f"source and lake differ in {_counted({name: tables[name] for name in found})}", tables
            )
        now = world.steady_seconds()
        if not found and waits == before.waits and now - self._kept_at < _KEEP_SECONDS:
            self.now = replace(self.now, now=under_way)
            return
        self._kept_at = now
        self._keep(replace(self.now, now=under_way))

    def hindered(self, why: str) -> None:
        """It does not get on now."""
        under_way = self._under_way
        if under_way.waits != why:
            _log.warning("comparing in the background waits: %s", why)
            self._keep(replace(self.now, now=replace(under_way, waits=why)))

    def whole(self, comparison: Comparison, every: float) -> None:
        """A comparison is whole; the next one begins `every` seconds after it began."""
        next_us = max(comparison.began_us + round(every * 1e6), comparison.ended_us)
        self._keep(Verification(comparison, None, next_us))
        first, last = comparison.epochs
        as_of = f"compared as of epoch {epoch_text(first)}"
        if last != first:
            as_of += f" to {epoch_text(last)}"
        if not comparison.differences:
            log_alone = (
                f", {comparison.unproven:,} keys of them by the log alone" if comparison.unproven else ""
            )
            _log.info("source and lake are equal: %s rows%s, %s", f"{comparison.rows:,}", log_alone, as_of)
            return
        mended = f"; {comparison.mended:,} keys are mended" if comparison.mended else ""
        left = "".join(f"; not mended: {why}" for why in comparison.left)
        said = f"source and lake differed in {_counted(comparison.tables)}, {as_of}"
        self._tell(f"{said}{mended}{left}", comparison.tables)

    def never(self) -> None:
        """The feed file wants no more of them."""
        if self.now.now is not None or self.now.next_us:
            self._keep(Verification(self.now.last))

    @property
    def _under_way(self) -> UnderWay:
        return self.now.now or UnderWay(world.now_us())

    def _tell(self, message: str, tables: Mapping[str, int]) -> None:
        more = f"{message} (`catchment verify` names the keys)"
        _log.error("%s", more)
        self._notifier.tell(NotifyEvent.DIFFERENCE, more, tables=dict(tables))

    def _keep(self, now: Verification) -> None:
        self.now = now
        with suppress(CatchmentError):
            self._journal.put_verification(now)


def _counted(tables: Mapping[str, int]) -> str:
    return ", ".join(f"{keys:,} keys of {name}" for name, keys in sorted(tables.items()))
