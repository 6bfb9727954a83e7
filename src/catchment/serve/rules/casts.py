"""CAST and CONVERT, as far as every server gives the same result."""

from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.table import ColumnType, Kind
from catchment.serve.rules.arithmetic import wrapped_signed, wrapped_unsigned
from catchment.serve.rules.conversions import (
    EXACT_NUMBERS,
    MOMENTS,
    as_bytes,
    cast_to,
    converted,
    digits_of,
    doubled,
    fitting,
    to_moment,
)
from catchment.serve.rules.expression import (
    BIGINT,
    BIGINT_UNSIGNED,
    DATE,
    Call,
    Expression,
    Family,
    Literal,
    Order,
    Sort,
    Values,
    as_integer,
    decimal,
    shown,
    text,
    to_int64,
)
from catchment.serve.rules.literals import day, moment
from catchment.serve.rules.refused import Refused

_INT64_DIGITS = 18  # that any integer of 64 bits holds
_PLAIN_SCALE = 6  # digits behind the point of which Arrow never shows an exponent
_SECONDS = 19  # characters of 2026-01-31 23:59:59
_FRACTION_DIGITS = 6

CHARACTERS = text("utf8mb4", Order.UNKNOWN)  # compared by the collation of the session
_OF_A_NUMBER = text("utf8mb4", Order.ANY)  # other texts say how it is compared, and in which character set


def as_signed(value: Expression) -> Expression:
    """CAST AS SIGNED. Raises Refused."""
    value = as_integer(value)
    if value.sort.family is Family.YEAR:
        return Call(to_int64, (value,), BIGINT)
    if value.sort.family is Family.DECIMAL and digits_of(value.sort)[0] <= _INT64_DIGITS:
        return Call(_rounded_integers, (value,), BIGINT)
    if value.sort.family is not Family.INTEGER:
        raise _no_cast(value, "SIGNED", "integers, years, and DECIMALs of 18 digits")
    if value.sort.wide:
        return Call(wrapped_signed, (value,), BIGINT)
    return Call(to_int64, (value,), BIGINT) if value.sort.type.unsigned else value


def as_unsigned(value: Expression) -> Expression:
    """CAST AS UNSIGNED. Raises Refused."""
    value = as_integer(value)
    if value.sort.family is not Family.INTEGER:
        raise _no_cast(value, "UNSIGNED", "integers")
    if value.sort.wide:
        return value
    return Call(wrapped_unsigned, (value,), BIGINT_UNSIGNED)


def as_decimal(value: Expression, digits: int, scale: int) -> Expression:
    """CAST AS DECIMAL(digits, scale), rounded, and cut to the largest of so many digits. Raises Refused."""
    value = as_integer(value)
    if value.sort.family not in EXACT_NUMBERS:
        raise _no_cast(value, "DECIMAL", "integers and DECIMALs")
    if not 0 <= scale <= fitting(digits) or digits < 1:
        raise Refused(f"DECIMAL({digits},{scale}) is no type")
    sort = decimal(digits, scale)
    front, behind = digits_of(value.sort)
    exact = converted(value, pa.decimal256(max(front, BIGINT_UNSIGNED.digits) + behind, behind))
    return Call(partial(_rounded, digits, scale), (exact,), sort)


def as_double(value: Expression) -> Expression:
    """CAST AS DOUBLE. Raises Refused."""
    value = as_integer(value)
    if value.sort.family not in {*EXACT_NUMBERS, Family.DOUBLE}:
        raise _no_cast(value, "DOUBLE", "numbers")
    return doubled(value)


def as_characters(value: Expression, length: int | None) -> Expression:
    """CAST AS CHAR, of so many characters. Raises Refused."""
    whole = Call(partial(cast_to, pa.string()), (written(value, "CHAR"),), CHARACTERS)
    return whole if length is None else Call(partial(first_characters, length), (whole,), CHARACTERS)


def written(value: Expression, what: str) -> Expression:
    """A value as the text that the server makes of it for `what`. Raises Refused."""
    value = as_integer(value)
    sort = value.sort
    if sort.family in (Family.TEXT, Family.NULL):
        return value
    if sort.type.kind is Kind.BIT:
        raise Refused(f"{shown(value)} is bytes as a text; write CAST(... AS UNSIGNED) of a BIT")
    plain = sort.family is Family.DECIMAL and sort.type.scale <= _PLAIN_SCALE
    if plain or sort.family in (Family.INTEGER, Family.DATE):
        return Call(partial(cast_to, pa.string()), (value,), _OF_A_NUMBER)
    if sort.family in MOMENTS:
        scale = sort.type.scale
        return Call(partial(_moment_text, _SECONDS + (scale + 1 if scale else 0)), (value,), _OF_A_NUMBER)
    raise _no_cast(value, what, "texts, integers, dates, and DECIMALs with 6 digits behind the point")


def as_binary(value: Expression) -> Expression:
    """CAST AS BINARY. Raises Refused."""
    return as_bytes(value)


def in_utf8mb4(value: Expression) -> Expression:
    """CONVERT(... USING utf8mb4), compared by the collation of the session. Raises Refused."""
    if value.sort.family is not Family.TEXT:
        raise _no_cast(value, "CHAR", "texts")
    return Call(partial(cast_to, pa.string()), (value,), CHARACTERS)


def as_day(value: Expression) -> Expression:
    """CAST AS DATE, or DATE(). Raises Refused."""
    if isinstance(value, Literal) and value.sort.family is Family.TEXT:
        return day(value.written)
    if value.sort.family is Family.DATE:
        return value
    if value.sort.family not in MOMENTS:
        raise _no_cast(value, "DATE", "dates and moments")
    return Call(_days, (value,), DATE)


def as_moment(value: Expression, scale: int) -> Expression:
    """CAST AS DATETIME(scale). Raises Refused where digits would have to go: servers round them or cut them off."""
    if isinstance(value, Literal) and value.sort.family is Family.TEXT:
        value = moment(value.written)
    if value.sort.family not in MOMENTS:
        raise _no_cast(value, "DATETIME", "dates and moments")
    if not value.sort.type.scale <= scale <= _FRACTION_DIGITS:
        raise Refused(
            f"servers round {shown(value)} to {scale} digits, or cut them off; write DATETIME({value.sort.type.scale})"
        )
    return Call(to_moment, (value,), Sort(Family.DATETIME, ColumnType(Kind.DATETIME, scale=scale)))


def first_characters(count: int, values: Values) -> Values:
    """Kernel: so many characters from the first on."""
    return pc.utf8_slice_codeunits(values, 0, count)


def _no_cast(value: Expression, to: str, takes: str) -> Refused:
    return Refused(f"CAST AS {to} is for {takes} here, and {shown(value)} is {value.sort.family.value}")


def _rounded_integers(values: Values) -> Values:
    return _nearest(values, 0).cast(pa.decimal128(38, 0)).cast(pa.int64())


def _rounded(digits: int, scale: int, values: Values) -> Values:
    """Half away from zero, and within the digits."""
    held = _nearest(values, scale)
    front = held.type.precision - held.type.scale
    held = held.cast(pa.decimal256(front + 1 + scale, scale))  # one more: what is rounded up may have it
    if front + 1 > digits - scale:
        largest = _nines(digits, scale).cast(held.type)
        least = pc.negate(largest)
        held = pc.if_else(pc.greater(held, largest), largest, held)
        held = pc.if_else(pc.less(held, least), least, held)
    return held.cast(pa.decimal128(digits, scale))


def _nines(digits: int, scale: int) -> pa.Scalar:
    """The largest number of so many digits."""
    return pa.scalar(Decimal((0, (9,) * digits, -scale)), pa.decimal256(digits, scale))


def _nearest(values: Values, scale: int) -> Values:
    """A decimal with no more than so many digits behind the point."""
    if values.type.scale <= scale:
        return values
    return pc.round(values, ndigits=scale, round_mode="half_towards_infinity")


def _moment_text(length: int, values: Values) -> Values:
    return first_characters(length, to_moment(values).cast(pa.string()))


def _days(values: Values) -> Values:
    return to_moment(values).cast(pa.date32())
