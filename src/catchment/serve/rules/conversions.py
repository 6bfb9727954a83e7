"""Values of one type as values of another, as the server converts them for a comparison or an operation."""

from functools import partial

import pyarrow as pa

from catchment.model.table import DECIMAL_DIGITS_MAX, ColumnType, Kind
from catchment.serve.rules.expression import (
    BIGINT,
    BIGINT_UNSIGNED,
    DATE,
    DOUBLE,
    IN_UTF8,
    NULL,
    WIDE,
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
    void,
)
from catchment.serve.rules.refused import Refused
from catchment.wire.cells.charsets import UTF8

EXACT_NUMBERS = frozenset({Family.INTEGER, Family.DECIMAL})
NUMBERS = EXACT_NUMBERS | {Family.DOUBLE}
MOMENTS = frozenset({Family.DATE, Family.DATETIME, Family.TIMESTAMP})
_LONG = 76  # digits of decimal256, enough to compare any two


def cast_to(kind: pa.DataType, values: Values) -> Values:
    """Kernel: values as another type that has them all."""
    if values.type == kind:
        return values
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        # Arrow wants room for any integer first.
        values = values.cast(pa.decimal256(min(BIGINT.digits + kind.scale, _LONG), kind.scale))
    return values.cast(kind)


def to_double(values: Values) -> Values:
    """Kernel: numbers as the nearest doubles. A decimal goes by its text, which Arrow reads as the server does."""
    if pa.types.is_decimal(values.type):
        return values.cast(pa.string()).cast(pa.float64())
    return values.cast(pa.float64(), safe=False)


def to_moment(values: Values) -> Values:
    """Kernel: dates and times of day as microseconds without a zone, those of a TIMESTAMP in UTC."""
    return values.cast(pa.timestamp("us"))


def converted(expression: Expression, kind: pa.DataType) -> Expression:
    """An expression's values as an Arrow type."""
    if expression.sort.family is Family.NULL:
        return Literal(void(kind), NULL)
    if expression.sort.arrow == kind:
        return expression
    return Call(partial(cast_to, kind), (expression,), expression.sort)


def doubled(expression: Expression) -> Expression:
    """A number as a DOUBLE."""
    expression = as_integer(expression)
    if isinstance(expression, Literal) and expression.sort.family is not Family.NULL:
        return Literal(pa.scalar(float(expression.written)), DOUBLE, expression.written)
    if expression.sort.arrow == pa.float64() and expression.sort.type.kind is Kind.DOUBLE:
        return expression
    return Call(to_double, (expression,), DOUBLE)


def digits_of(sort: Sort) -> tuple[int, int]:
    """Digits of an exact number in front of the point, and behind it."""
    if sort.family is Family.DECIMAL:
        return sort.type.length - sort.type.scale, sort.type.scale
    return sort.digits, 0


def long_decimal(expression: Expression, scale: int) -> Expression:
    """An exact number with so many digits behind the point, and many in front of it."""
    front = max(digits_of(expression.sort)[0], BIGINT.digits)
    return converted(expression, pa.decimal256(min(front + scale, _LONG), scale))


def alike(expressions: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Expressions with the values by which the server compares them. Raises Refused where it would convert a text.

    Texts stay as they are: their order says how they are compared.
    """
    expressions = tuple(as_integer(one) for one in expressions)
    families = {one.sort.family for one in expressions} - {Family.NULL}
    if families <= {Family.INTEGER}:
        wide = any(one.sort.wide for one in expressions)
        return tuple(converted(one, WIDE if wide else pa.int64()) for one in expressions)
    if families <= EXACT_NUMBERS:
        parts = [digits_of(one.sort) for one in expressions if one.sort.family is not Family.NULL]
        front, scale = max(p[0] for p in parts), max(p[1] for p in parts)
        kind = pa.decimal256(min(max(front, BIGINT_UNSIGNED.digits) + scale, _LONG), scale)
        return tuple(converted(one, kind) for one in expressions)
    if families <= NUMBERS:
        return tuple(doubled(one) if one.sort.family is not Family.NULL else one for one in expressions)
    if families == {Family.TEXT, Family.BYTES}:
        return tuple(as_bytes(one) for one in expressions)
    if len(families) > 1 and families <= MOMENTS:
        return tuple(Call(to_moment, (one,), one.sort) for one in expressions)
    if len(families) == 1 and families.isdisjoint({Family.OTHER, Family.YEAR}):
        return expressions
    raise Refused(_not_alike(expressions))


def _not_alike(expressions: tuple[Expression, ...]) -> str:
    """What to do about expressions of types that are not compared here."""
    families = {one.sort.family for one in expressions}
    said = " with ".join(dict.fromkeys(shown(one) for one in expressions))
    if Family.YEAR in families:
        return f"{said}: the server takes some numbers for years of two digits; write CAST(... AS SIGNED) of a YEAR"
    if Family.OTHER in families:
        return f"{said}: values of that type are not compared here; ask whether they are NULL, or give the column"
    return f"{said}: the server would convert one to the type of the other; write a literal of that type, or CAST"


def as_bytes(expression: Expression) -> Expression:
    """CAST(... AS BINARY): the bytes of a text in its character set. Raises Refused."""
    sort = expression.sort
    if sort.family in (Family.BYTES, Family.NULL):
        return expression
    if sort.family is not Family.TEXT:
        raise Refused(f"{shown(expression)} has no bytes here; CAST AS BINARY is for texts")
    must_be_utf8(expression)
    return Call(partial(cast_to, pa.binary()), (expression,), Sort(Family.BYTES, ColumnType(Kind.BLOB)))


def must_be_utf8(expression: Expression) -> None:
    """Raises Refused where bytes of a text in its character set are not those of UTF-8."""
    charset = expression.sort.type.charset
    if charset not in IN_UTF8:
        raise Refused(
            f"{shown(expression)} has other bytes in its character set {charset}; write CONVERT(... USING utf8mb4) "
            "around it"
        )


def united(expressions: tuple[Expression, ...]) -> tuple[tuple[Expression, ...], Sort]:
    """The branches of a CASE, an IF or a COALESCE in the one type that the server gives their result."""
    told = [one for one in expressions if one.sort.family is not Family.NULL]
    if not told:
        raise Refused("it is NULL in any case; give one of its branches a value")
    conditions = all(one.sort.family is Family.BOOLEAN for one in told)
    if not conditions:
        expressions = tuple(as_integer(one) for one in expressions)
        told = [one for one in expressions if one.sort.family is not Family.NULL]
    sort = told[0].sort if conditions else _union(told)
    if sort.family is Family.DOUBLE:
        expressions = tuple(one if one.sort.family is Family.NULL else doubled(one) for one in expressions)
    return tuple(converted(one, sort.arrow) for one in expressions), sort


def _union(told: list[Expression]) -> Sort:
    """The type of a result that has values of these."""
    families = {one.sort.family for one in told}
    sorts = [one.sort for one in told]
    if any(sort.type.kind is Kind.FLOAT for sort in sorts):
        raise Refused("a result of FLOAT is rounded when it is shown; write CAST(... AS DOUBLE)")
    if families == {Family.INTEGER}:
        return _union_of_integers(sorts)
    if families <= EXACT_NUMBERS:
        front, scale = (max(part) for part in zip(*map(digits_of, sorts), strict=True))
        return decimal(fitting(front + scale), scale)
    if families <= NUMBERS:
        return DOUBLE
    if families == {Family.TEXT}:
        return text_of(told)
    if len(families) == 1 and families <= {*MOMENTS, Family.TIME, Family.BYTES}:
        scale = max(s.type.scale for s in sorts)
        kind = Kind.BLOB if families == {Family.BYTES} else sorts[0].type.kind
        return DATE if kind is Kind.DATE else Sort(sorts[0].family, ColumnType(kind, scale=scale))
    raise Refused(_not_alike(tuple(told)))


def _union_of_integers(sorts: list[Sort]) -> Sort:
    digits = max(s.digits for s in sorts)
    if len({s.type.unsigned for s in sorts}) > 1:
        return decimal(digits, 0)  # MariaDB; MySQL takes BIGINT, and refuses sums beyond it
    if any(s.wide for s in sorts):
        return BIGINT_UNSIGNED
    unsigned = Sort(Family.INTEGER, ColumnType(Kind.INT, unsigned=True), digits)
    return unsigned if sorts[0].type.unsigned else BIGINT


def fitting(digits: int) -> int:
    """Digits of a DECIMAL that a stream can give. Raises Refused."""
    if digits > DECIMAL_DIGITS_MAX:
        raise Refused(
            f"the result has up to {digits} digits, and a column holds {DECIMAL_DIGITS_MAX}; CAST what goes in AS a "
            "DECIMAL of fewer digits"
        )
    return digits


def text_of(parts: list[Expression]) -> Sort:
    """The type of a text that is made of others. Raises Refused for two character sets."""
    texts = [one.sort for one in parts if one.sort.family is Family.TEXT]
    sets = {s.type.charset for s in texts if s.order is not Order.ANY}
    other = sets - IN_UTF8
    if len(other) > 1:
        raise Refused(f"texts of {' and '.join(sorted(other))} have no common character set for the server")
    charset = other.pop() if other and sets.isdisjoint(UTF8) else "utf8mb4"
    orders = {s.order for s in texts} - {Order.ANY}
    whole = len(orders) == 1 and len(texts) == len(parts)
    explicit = any(s.explicit for s in texts)
    return text(charset, orders.pop() if whole else Order.UNKNOWN, explicit=whole and explicit)
