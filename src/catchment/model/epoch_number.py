"""The numbers of epochs, and the texts by which people see and give them (DESIGN 2)."""

import re
from contextlib import suppress
from datetime import UTC, datetime

MICRO_BITS = 32
_NUMBER_BITS = 64
_TEXT = re.compile(r"(.+Z)\.[a-f]?([0-9]{4,10})")
_TEXT_DIGITS = 4  # of the lower half; a letter in front of more of them says how many more
_SECOND = "%Y-%m-%dT%H:%M:%SZ"


def epoch_number(gci: int, micro_gci: int = 0) -> int:
    """A tick's 64-bit number, `gci << 32 | micro_gci`, as NDB numbers its epochs."""
    return gci << MICRO_BITS | micro_gci


def gci_of(epoch: int) -> int:
    """The upper half of an epoch's number."""
    return epoch >> MICRO_BITS


def micro_gci_of(epoch: int) -> int:
    """The lower half of an epoch's number."""
    return epoch & ((1 << MICRO_BITS) - 1)


def seconds_ahead(epoch: int, now_us: int) -> float:
    """By how many seconds an epoch's number is ahead of now (microseconds since 1970), 0 where it is not. Numbers never
    fall: they are ahead for as long as a clock was, after that is set back."""
    return max(0.0, gci_of(epoch) - now_us / 1e6)


def second_text(seconds: int) -> str:
    """A time in seconds since 1970, as `2026-11-22T04:00:12Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime(_SECOND)


def epoch_text(epoch: int) -> str:
    """An epoch as people see and give it: `2026-11-22T04:00:12Z.0007` is the eighth tick of that second.

    The texts sort as the numbers do. Raises ValueError for what is no number of 64 bits.
    """
    if not 0 <= epoch < 1 << _NUMBER_BITS:
        raise ValueError(f"not an epoch's number: {epoch}")
    second = second_text(gci_of(epoch))
    digits = f"{micro_gci_of(epoch):0{_TEXT_DIGITS}}"
    more = len(digits) - _TEXT_DIGITS
    return f"{second}.{' abcdef'[more] if more else ''}{digits}"


def parse_epoch(text: str) -> int:
    """The number of an epoch that is given as `epoch_text` writes it, or in decimal digits; else ValueError."""
    with suppress(ValueError):
        number = _parsed(text)
        if text in (epoch_text(number), str(number)):
            return number
    raise ValueError(
        f"not an epoch: {text!r}; epochs are written 2026-11-22T04:00:12Z.0007, or as their number"
    )


def _parsed(text: str) -> int:
    found = _TEXT.fullmatch(text)
    if found is None:
        return int(text)
    second = datetime.strptime(found[1], _SECOND).replace(tzinfo=UTC)
    return epoch_number(int(second.timestamp()), int(found[2]))
