"""Values as text and as numbers of JSON, as several formats have them."""

import base64
import struct
from datetime import date, datetime
from decimal import Decimal

_SECONDS = len("2026-11-25T14:00:00")
_FLOAT_MAX = 3.4028234663852886e38


def base64_text(value: bytes) -> str:
    """Bytes in the alphabet of RFC 4648, with padding."""
    return base64.b64encode(value).decode("ascii")


def decimal_text(value: Decimal | str) -> str:
    """All digits after the point, and no exponent. A DECIMAL that is too long for a lake is text already."""
    return value if isinstance(value, str) else format(value, "f")


def shortest_float(value: float) -> float:
    """The shortest number that is this one in 32 bits: 0.1 instead of 0.10000000149011612."""
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if abs(short) < _FLOAT_MAX and struct.pack("<f", short) == struct.pack("<f", value):
            return short
    return value


def date_text(value: date) -> str:
    """As ISO 8601 has it."""
    return value.isoformat()


def moment_text(value: datetime, digits: int) -> str:
    """As ISO 8601 has it without a zone, with so many digits of a second, 0 to 6."""
    text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
    return text[: _SECONDS + 1 + digits] if digits else text[:_SECONDS]
