"""Arithmetic as the server does it: integers of 64 bits, DECIMALs with all their digits, doubles.

A result that its type does not hold ends the stream, as it ends a statement (error 1690).
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.errors import Unsupported
from catchment.serve.rules.conversions import (
    EXACT_NUMBERS,
    NUMBERS,
    digits_of,
    doubled,
    fitting,
    long_decimal,
)
from catchment.serve.rules.expression import (
    BIGINT,
    BIGINT_UNSIGNED,
    DOUBLE,
    WIDE,
    Call,
    Expression,
    Family,
    Literal,
    Values,
    as_integer,
    decimal,
    null_where,
    shown,
)
from catchment.serve.rules.literals import NOTHING, number
from catchment.serve.rules.refused import Refused

_CHECKED: dict[str, Callable[..., Values]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_UNSIGNED_END = 1 << 64
_SCALE_MAX = 30  # of a result: beyond it servers cut digits off
_INT64_MIN = -(1 << 63)


def calculated(sign: str, left: Expression, right: Expression) -> Expression:
    """`left sign right` for + - *. Raises Refused."""
    left, right = as_integer(left), as_integer(right)
    families = _families(sign, left, right)
    if Family.NULL in families:
        return NOTHING
    if Family.DOUBLE in families:
        return Call(partial(_doubles, sign), (doubled(left), doubled(right)), DOUBLE)
    if Family.DECIMAL in families:
        return _decimals(sign, left, right)
    if not (left.sort.type.unsigned or right.sort.type.unsigned):
        return Call(partial(_integers, sign), (left, right), BIGINT)
    operands = (long_decimal(left, 0), long_decimal(right, 0))
    return Call(partial(_unsigned, sign), operands, BIGINT_UNSIGNED)


def divided(left: Expression, right: Expression) -> Expression:
    """`left / right`, of doubles. Raises Refused: how many digits servers keep of exact numbers differs."""
    left, right = as_integer(left), as_integer(right)
    families = _families("/", left, right)
    if Family.NULL in families:
        return NOTHING
    if Family.DOUBLE not in families:
        raise Refused(
            "/ of exact numbers has digits that servers cut off at different places; write CAST(... AS DOUBLE)"
        )
    return Call(_quotients, (doubled(left), doubled(right)), DOUBLE)


def whole_quotient(left: Expression, right: Expression) -> Expression:
    """`left DIV right`. Raises Refused."""
    left, right = _integers_of("DIV", left, right)
    if Family.NULL in (left.sort.family, right.sort.family):
        return NOTHING
    quotient = Call(_truncated, (left, right), BIGINT)
    if not (left.sort.type.unsigned or right.sort.type.unsigned):
        return quotient
    return Call(_not_negative, (quotient,), BIGINT_UNSIGNED)


def remainder(left: Expression, right: Expression) -> Expression:
    """`left % right`, with the sign of `left`. Raises Refused."""
    left, right = _integers_of("%", left, right)
    if Family.NULL in (left.sort.family, right.sort.family):
        return NOTHING
    rest = Call(_rest, (left, right), BIGINT)
    return Call(_not_negative, (rest,), BIGINT_UNSIGNED) if left.sort.type.unsigned else rest


def opposite(value: Expression) -> Expression:
    """`-value`. Raises Refused."""
    value = as_integer(value)
    if isinstance(value, Literal) and value.sort.family in EXACT_NUMBERS:
        return number(value.written.lstrip("-"), negative=not value.written.startswith("-"))
    _must_be_numbers("-", value)
    _must_be_narrow("-", value)
    if value.sort.family is Family.INTEGER:
        return Call(partial(_integers, "-"), (number("0"), value), BIGINT)
    sort = DOUBLE if value.sort.family is Family.DOUBLE else value.sort
    return Call(pc.negate, (doubled(value) if sort is DOUBLE else value,), sort)


def absolute(value: Expression) -> Expression:
    """ABS. Raises Refused."""
    value = as_integer(value)
    _must_be_numbers("ABS", value)
    if value.sort.family is Family.INTEGER:
        return value if value.sort.type.unsigned else Call(_absolute_integers, (value,), BIGINT)
    sort = DOUBLE if value.sort.family is Family.DOUBLE else value.sort
    return Call(pc.abs, (doubled(value) if sort is DOUBLE else value,), sort)


def _families(sign: str, *operands: Expression) -> set[Family]:
    _must_be_numbers(sign, *(one for one in operands if one.sort.family is not Family.NULL))
    return {one.sort.family for one in operands}


def _must_be_numbers(sign: str, *operands: Expression) -> None:
    for one in operands:
        if one.sort.family not in NUMBERS:
            raise Refused(f"{sign} is for numbers, and {shown(one)} is {one.sort.family.value}; CAST it")


def _must_be_narrow(sign: str, *operands: Expression) -> None:
    for one in operands:
        if one.sort.wide:
            raise Refused(
                f"{sign} of {shown(one)}: not for BIGINT UNSIGNED; CAST it AS SIGNED or AS DECIMAL(20)"
            )


def _integers_of(sign: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    left, right = as_integer(left), as_integer(right)
    for one in (left, right):
        if one.sort.family not in (Family.INTEGER, Family.NULL):
            raise Refused(
                f"{sign} is for integers here, and {shown(one)} is {one.sort.family.value}; CAST it AS SIGNED"
            )
    _must_be_narrow(sign, left, right)
    return left, right


def _decimals(sign: str, left: Expression, right: Expression) -> Expression:
    """All digits of the result, in the type that the server gives it."""
    assert {left.sort.family, right.sort.family} <= EXACT_NUMBERS
    (front, scale), (other_front, other_scale) = digits_of(left.sort), digits_of(right.sort)
    if sign == "*":
        digits, behind = front + scale + other_front + other_scale, scale + other_scale
    else:
        behind = max(scale, other_scale)
        digits = max(front, other_front) + 1 + behind
    if behind > _SCALE_MAX:
        raise Refused(
            f"{behind} digits behind the point are more than servers keep of a product; CAST to fewer"
        )
    sort = decimal(fitting(digits), behind)
    operands = (long_decimal(left, scale), long_decimal(right, other_scale))
    return Call(partial(_exact, sign, sort.arrow), operands, sort)


def _exact(sign: str, kind: pa.DataType, left: Values, right: Values) -> Values:
    return _CHECKED[sign](left, right).cast(kind)


def _integers(sign: str, left: Values, right: Values) -> Values:
    try:
        return _CHECKED[sign](left, right)
    except pa.ArrowInvalid:
        raise _out_of_range("BIGINT", sign) from None


def _unsigned(sign: str, left: Values, right: Values) -> Values:
    found = _CHECKED[sign](left, right)
    try:
        wide = found.cast(WIDE)
    except pa.ArrowInvalid:
        raise _out_of_range("BIGINT UNSIGNED", sign) from None
    below = pc.less(wide, pa.scalar(0, WIDE))
    if _some(pc.or_(below, pc.greater_equal(wide, pa.scalar(_UNSIGNED_END, WIDE)))):
        raise _out_of_range("BIGINT UNSIGNED", sign)
    return wide


def _not_negative(values: Values) -> Values:
    if _some(pc.less(values, 0)):
        raise _out_of_range("BIGINT UNSIGNED", "DIV or %")
    return values.cast(WIDE)


def _doubles(sign: str, left: Values, right: Values) -> Values:
    return _finite(_CHECKED[sign](left, right), sign)


def _quotients(left: Values, right: Values) -> Values:
    """Divided; NULL by zero."""
    return _finite(pc.divide(left, null_where(pc.equal(right, 0.0), right)), "/")


def _finite(values: Values, sign: str) -> Values:
    if _some(pc.invert(pc.is_finite(values))):
        raise _out_of_range("DOUBLE", sign)
    return values


def _truncated(left: Values, right: Values) -> Values:
    if _some(pc.and_(pc.equal(left, _INT64_MIN), pc.equal(right, -1))):
        raise _out_of_range("BIGINT", "DIV")
    return pc.divide(left, null_where(pc.equal(right, 0), right))


def _rest(left: Values, right: Values) -> Values:
    # The one quotient that is out of range leaves no rest.
    right = pc.if_else(pc.equal(right, -1), pa.scalar(1, pa.int64()), right)
    whole = pc.divide(left, null_where(pc.equal(right, 0), right))
    return pc.subtract(left, pc.multiply(whole, right))


def _absolute_integers(values: Values) -> Values:
    try:
        return pc.abs_checked(values)
    except pa.ArrowInvalid:
        raise _out_of_range("BIGINT", "ABS") from None


def _some(condition: Values) -> bool:
    """Whether it holds anywhere."""
    return bool(condition.as_py() if isinstance(condition, pa.Scalar) else pc.any(condition).as_py())


def _out_of_range(kind: str, sign: str) -> Unsupported:
    return Unsupported(
        f"a filter of the stream: the result of {sign} is out of range for {kind} (on the server error 1690); CAST "
        "what goes in AS DECIMAL or AS DOUBLE"
    )


def wrapped_signed(values: Values) -> Values:
    """Kernel: CAST AS SIGNED of BIGINT UNSIGNED, by its 64 bits."""
    return _wrapped(values, pa.uint64(), np.int64)


def wrapped_unsigned(values: Values) -> Values:
    """Kernel: CAST AS UNSIGNED of an integer, by its 64 bits."""
    return _wrapped(values, pa.int64(), np.uint64).cast(WIDE)


def _wrapped(values: Values, kind: pa.DataType, bits: type) -> Values:
    if isinstance(values, pa.Scalar):
        return _wrapped(pa.array([values.as_py()], values.type), kind, bits)[0]
    held: np.ndarray = np.asarray(pc.fill_null(values.cast(kind), 0)).view(bits)
    return pa.array(held, mask=np.asarray(pc.is_null(values)))
