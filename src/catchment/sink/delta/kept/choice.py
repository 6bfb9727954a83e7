"""Which settled epochs are kept beyond the readers' window: the last of each hour, and the last of each day."""

from collections.abc import Iterable

import msgspec

from catchment.model.epoch_number import gci_of

HOUR, DAY = 3600, 86_400


class Past(msgspec.Struct, frozen=True):
    """For how long an epoch of each hour is kept, and one of each day (both in UTC); 0: none is."""

    hourly_seconds: float = 0.0
    daily_seconds: float = 0.0

    @property
    def grain(self) -> int:
        """Seconds of which one epoch is kept at most; 0: none is."""
        return HOUR if self.hourly_seconds else DAY if self.daily_seconds else 0


def chosen(epochs: Iterable[int], now_seconds: float, past: Past) -> tuple[int, ...]:
    """Those of some settled epochs that are kept, in order.

    Of the hour and of the day that go on, that is the newest one so far. What was left out once is never chosen later,
    so thinning may go in any number of steps.
    """
    found = sorted(set(epochs))
    kept: set[int] = set()
    for size, seconds in ((HOUR, past.hourly_seconds), (DAY, past.daily_seconds)):
        last = {gci_of(epoch) // size: epoch for epoch in found}
        kept.update(epoch for epoch in last.values() if seconds and now_seconds - gci_of(epoch) <= seconds)
    return tuple(sorted(kept))
