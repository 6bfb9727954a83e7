"""Durations and sizes as people write them, and back.

A number without a unit is refused: nobody can tell whether `interval: 5` means seconds or milliseconds.
"""

import re
from math import isfinite

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
# Powers of 1024, as the server's own size variables have them.
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
# A number that every format can hold, longer than anything that is kept.
FOREVER_SECONDS = 36_500 * 86_400.0
_FOREVER = "forever"
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+|%)")


def parse_duration(value: object) -> float:
    """Seconds in `500ms`, `1s`, `10min`, `1h` or `2d`; raises ValueError otherwise."""
    return _parse(value, _SECONDS, "a duration such as 500ms, 1s, 10min, 1h or 2d")


def parse_window(value: object) -> float:
    """Seconds in a duration, or FOREVER_SECONDS; raises ValueError otherwise."""
    if value == _FOREVER:
        return FOREVER_SECONDS
    try:
        return min(parse_duration(value), FOREVER_SECONDS)
    except ValueError:
        raise ValueError(f"expected a duration such as 12h or 30d, with its unit, or {_FOREVER}") from None


def write_window(seconds: float) -> str:
    """A duration as people write it; FOREVER_SECONDS and more as a word."""
    if seconds >= FOREVER_SECONDS:
        return _FOREVER
    return write_duration(seconds) if seconds else "0s"


def parse_size(value: object) -> int:
    """Bytes in `512B`, `64KB`, `64MB` or `1GB` (powers of 1024); raises ValueError otherwise."""
    return round(_parse(value, _BYTES, "a size such as 64KB, 64MB or 1GB"))


def parse_percent(value: object) -> float:
    """Percent in `20%`, more than 0 and at most 100; raises ValueError otherwise."""
    expected = "a percentage of more than 0% and at most 100%, such as 20%"
    percent = _parse(value, {"%": 1.0}, expected)
    if not 0 < percent <= 100:
        raise ValueError(f"expected {expected}")
    return percent


def write_percent(percent: float) -> str:
    """A percentage as people write it."""
    return f"{percent:g}%"


def write_duration(seconds: float) -> str:
    """The shortest whole number of a unit: `0.5` gives `500ms`."""
    for unit in ("d", "h", "min", "s"):
        if seconds >= _SECONDS[unit] and (seconds / _SECONDS[unit]).is_integer():
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds * 1000:.6f}".rstrip("0").removesuffix(".") + "ms"


def write_size(size: float) -> str:
    """The largest unit that gives a whole number: `67108864` gives `64MB`."""
    for unit in ("GB", "MB", "KB"):
        if size >= _BYTES[unit] and (size / _BYTES[unit]).is_integer():
            return f"{size / _BYTES[unit]:.0f}{unit}"
    return f"{size:.0f}B"


def _parse(value: object, units: dict[str, float] | dict[str, int], expected: str) -> float:
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value.strip())
        if match and match[2] in units and isfinite(quantity := float(match[1]) * units[match[2]]):
            return quantity
    raise ValueError(f"expected {expected}, with its unit")
