"""Which epoch a reader means: an exact one, or the newest at or before a time, a duration back or another epoch."""

import operator
from datetime import UTC, datetime, timedelta
from typing import SupportsIndex

import msgspec

from catchment.model.epoch_number import epoch_text, gci_of, parse_epoch
from catchment.model.errors import ConfigError
from catchment.model.units import parse_duration

Epoch = str | SupportsIndex
At = str | datetime | SupportsIndex

_FORMS = (
    'give a time such as "2026-11-22 04:00" (UTC, if it names no offset), how long ago such as "-10min", or an '
    'epoch such as "2026-11-22T04:00:12Z.0007"'
)
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(msgspec.Struct, frozen=True):
    """The newest epoch at or before it is meant: the newest that was cut at or before `time_us` (microseconds since
    1970), or the newest whose number is at most `until`. One of them is given. `said`: what the reader gave, for
    messages.

    A time is compared with the times of cuts. Numbers grow while a clock is set back, so they may be ahead of these.
    """

    said: str
    until: int | None = None
    time_us: int | None = None

    def lies_after(self, newest: int, newest_us: int, now: datetime) -> bool:
        """Whether it lies in the future, of which nobody knows the newest epoch yet; the newest of now was cut at
        `newest_us`."""
        if self.time_us is not None:
            return self.time_us > max(newest_us, (now - BEGIN) // timedelta(microseconds=1))
        return self.until is not None and self.until > newest and gci_of(self.until) > now.timestamp()


def exact(epoch: Epoch) -> int:
    """The number of an epoch that a reader gave as text or number. Raises ConfigError for anything else."""
    try:
        return _number(epoch)
    except ValueError as fault:
        raise ConfigError(f"epoch: {fault}") from None


def at_or_before(at: At, now: datetime) -> Moment:
    """The moment that a reader gave as `at`. Raises ConfigError for what is none."""
    try:
        if isinstance(at, datetime):
            return _of_time(at, str(at))
        if isinstance(at, str) and (time := _time(at.strip(), now)) is not None:
            return _of_time(time, f"{at} ({time.isoformat(' ', 'seconds')})")
        return Moment(epoch_text(number := _number(at)), until=number)
    except ValueError as fault:
        raise ConfigError(f"at: {fault}") from None


def _number(epoch: Epoch | datetime) -> int:
    """Raises ValueError for what is neither an epoch's text nor a whole number."""
    if isinstance(epoch, str):
        return parse_epoch(epoch.strip())
    try:
        if isinstance(epoch, bool):
            raise TypeError
        number = operator.index(epoch)  # type: ignore[arg-type]
    except TypeError:
        exactly = ", which cannot hold all digits of an epoch" if isinstance(epoch, float) else ""
        raise ValueError(
            f"{epoch!r} is a {type(epoch).__name__}{exactly}; give its text or its number"
        ) from None
    epoch_text(number)
    return number


def _time(text: str, now: datetime) -> datetime | None:
    """The time that a text names; None for what may be an epoch. Raises ValueError for what is neither."""
    if text.startswith("-"):
        try:
            return now - timedelta(seconds=parse_duration(text[1:]))
        except (ValueError, OverflowError):
            raise ValueError(f"{text!r} is not understood: {_FORMS}") from None
    try:
        parse_epoch(text)
    except ValueError:
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text!r} is not understood: {_FORMS}") from None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return None


def _of_time(time: datetime, said: str) -> Moment:
    if time.tzinfo is None:
        raise ValueError(f"{time!r} has no time zone; give one, as in datetime(..., tzinfo=UTC)")
    return Moment(said, time_us=max(0, (time - BEGIN) // timedelta(microseconds=1)))
