"""Values that a filter says: numbers, texts, dates, times, bytes."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from catchment.model.table import ColumnType, Kind
from catchment.serve.rules.expression import (
    BIGINT_UNSIGNED,
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    Expression,
    Family,
    Literal,
    Order,
    Sort,
    decimal,
    shown,
    text,
)
from catchment.serve.rules.refused import Refused

_INTEGER_END, _UNSIGNED_END = 1 << 63, 1 << 64
_DIGITS_MAX = 38
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.(\d{1,6}))?")
_TIME = re.compile(r"(-?)(\d{2,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")
_TIME_MAX = timedelta(hours=838, minutes=59, seconds=59)
_MICROSECOND = timedelta(microseconds=1)
_DATETIMES = (Family.DATETIME, Family.TIMESTAMP)

NOTHING = Literal(pa.scalar(None), NULL)


def number(digits: str, *, negative: bool = False) -> Literal:
    """A number as the server takes it: an integer, a DECIMAL where it has a point, a DOUBLE where it has an exponent.
    Raises Refused."""
    written = f"-{digits}" if negative else digits
    if "e" in digits.lower():
        return Literal(pa.scalar(float(written)), DOUBLE, written)
    front, _, behind = digits.partition(".")
    front = front.lstrip("0")
    if "." not in digits and int(digits) < _INTEGER_END + negative:
        sort = Sort(Family.INTEGER, ColumnType(Kind.BIGINT), max(len(front), 1))
        return Literal(pa.scalar(int(written), pa.int64()), sort, written)
    if "." not in digits and int(digits) < _UNSIGNED_END and not negative:
        return Literal(pa.scalar(Decimal(digits), BIGINT_UNSIGNED.arrow), BIGINT_UNSIGNED, written)
    if len(front) + len(behind) > _DIGITS_MAX:
        raise Refused(f"{written} has more than {_DIGITS_MAX} digits")
    sort = decimal(max(len(front) + len(behind), 1), len(behind))
    return Literal(pa.scalar(Decimal(written), sort.arrow), sort, written)


def truth_value(value: bool) -> Literal:
    """TRUE or FALSE."""
    return Literal(pa.scalar(value), BOOLEAN, str(value).upper())


def string(written: str) -> Literal:
    """A text between quotes."""
    return Literal(pa.scalar(written), text("utf8mb4", Order.ANY), written)


def octets(digits: str) -> Literal:
    """Bytes that are written as X'...'."""
    held = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    return Literal(pa.scalar(held), Sort(Family.BYTES, ColumnType(Kind.BLOB)))


def dated(expressions: Sequence[Expression]) -> tuple[Expression, ...]:
    """Texts of a filter that are compared with dates or times, as such. Raises Refused for one that is written in
    another way than 2026-01-31, 2026-01-31 23:59:59 or 23:59:59."""
    families = {one.sort.family for one in expressions}
    if Family.DATE in families and families.isdisjoint(_DATETIMES):
        return tuple(_as(one, day) for one in expressions)
    if not families.isdisjoint(_DATETIMES):
        return tuple(_as(one, moment) for one in expressions)
    if Family.TIME in families:
        return tuple(_as(one, time_of_day) for one in expressions)
    return tuple(expressions)


def day(written: str) -> Literal:
    """A DATE. Raises Refused."""
    if not _DAY.fullmatch(written):
        raise Refused(f"{written!r} is no date; write one such as '2026-01-31'")
    return Literal(pa.scalar(_real(written).date(), pa.date32()), DATE, written)


def moment(written: str) -> Literal:
    """A DATETIME; a date is its midnight. Raises Refused."""
    found = _MOMENT.fullmatch(written)
    if found is None and not _DAY.fullmatch(written):
        raise Refused(f"{written!r} is no moment; write one such as '2026-01-31 23:59:59'")
    scale = len(found[1] or "") if found is not None else 0
    sort = Sort(Family.DATETIME, ColumnType(Kind.DATETIME, scale=scale))
    return Literal(pa.scalar(_real(written), pa.timestamp("us")), sort, written)


def time_of_day(written: str) -> Literal:
    """A TIME, in microseconds. Raises Refused."""
    found = _TIME.fullmatch(written)
    if found is None:
        raise Refused(f"{written!r} is no TIME; write one such as '23:59:59'")
    hours, minutes, seconds = (int(part) for part in found.group(2, 3, 4))
    fraction = int((found[5] or "").ljust(6, "0"))
    span = timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=fraction)
    if span > _TIME_MAX:
        raise Refused(f"{written!r} is more than a TIME holds, 838:59:59")
    count = span // _MICROSECOND * (-1 if found[1] else 1)
    return Literal(pa.scalar(count, pa.int64()), Sort(Family.TIME, ColumnType(Kind.TIME, scale=6)), written)


def _as(one: Expression, read: Callable[[str], Literal]) -> Expression:
    if not isinstance(one, Literal) or one.sort.family is not Family.TEXT:
        return one
    return read(one.written)


def _real(written: str) -> datetime:
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        raise Refused(f"{written!r} stands in no calendar") from None
    return found


def whole(expression: Expression, what: str) -> int:
    """An integer that the filter says itself. Raises Refused."""
    if not isinstance(expression, Literal) or expression.sort.family is not Family.INTEGER:
        raise Refused(f"{what} is {shown(expression)}; write it as an integer")
    return int(expression.written)
