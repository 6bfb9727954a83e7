"""Comparisons of two or more values: the six operators, IN, BETWEEN and LIKE, with the logic of three values.

Texts are compared by code points alone. Where a collation that is not known here decides, the filter is refused.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc

from catchment.serve.rules.conversions import MOMENTS, NUMBERS, alike, as_bytes, cast_to
from catchment.serve.rules.expression import (
    BOOLEAN,
    IN_UTF8,
    Call,
    Expression,
    Family,
    Field,
    Guarded,
    Literal,
    Order,
    Values,
    as_integer,
    shown,
    void,
)
from catchment.serve.rules.literals import dated, truth_value
from catchment.serve.rules.refused import Refused

OPERATORS: dict[str, Callable[..., Values]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EQUALITY = ("=", "<>")
_LISTED = ({Family.INTEGER}, {Family.BYTES}, {Family.TEXT})
_TIMES = MOMENTS | {Family.TIME}
_NO_ROWS = pa.table({})
_CONTROL = re.compile(r"[\x00-\x1f]")


def compared(sign: str, left: Expression, right: Expression) -> Expression:
    """`left sign right`; NULL where one of them is. Raises Refused."""
    if Family.NULL in (left.sort.family, right.sort.family):
        return Literal(void(pa.bool_()), BOOLEAN)
    left, right = alike(dated((left, right)))
    if left.sort.family is Family.TEXT:
        return _texts(sign, left, right)
    whole = Call(OPERATORS[sign], (left, right), BOOLEAN)
    # Where the left side is NULL, a server does not ask for the right one.
    return Guarded(whole, Call(pc.is_valid, (left,), BOOLEAN), whole, Literal(void(pa.bool_()), BOOLEAN))


def equal_or_null(left: Expression, right: Expression) -> Expression:
    """`left <=> right`, which is never NULL."""
    if Family.NULL in (left.sort.family, right.sort.family):
        other = right if left.sort.family is Family.NULL else left
        return Call(pc.is_null, (other,), BOOLEAN)
    left, right = dated((left, right))
    return Call(_equal_or_null, (compared("=", left, right), left, right), BOOLEAN)


def between(value: Expression, low: Expression, high: Expression) -> Expression:
    """`value BETWEEN low AND high`. Raises Refused where doubles and exact numbers meet."""
    value, low, high = dated((value, low, high))
    _must_be_alike((value, low, high))
    integers = [one.sort for one in (value, low, high) if one.sort.family is Family.INTEGER]
    if any(one.wide for one in integers) and not all(one.type.unsigned for one in integers):
        # MySQL 8.0 takes all of them for unsigned ones: seen with -128 BETWEEN 0 AND -128.
        raise Refused("BETWEEN of a BIGINT UNSIGNED and of numbers with a sign: compare by >=, AND and <=")
    return Call(pc.and_kleene, (compared(">=", value, low), compared("<=", value, high)), BOOLEAN)


def same_as(value: Expression, other: Expression) -> Expression:
    """`CASE value WHEN other`. Raises Refused where doubles and exact numbers meet."""
    value, other = dated((value, other))
    _must_be_alike((value, other))
    return compared("=", value, other)


def one_of(value: Expression, others: Sequence[Expression]) -> Expression:
    """`value IN (others)`. Raises Refused where doubles and exact numbers meet."""
    value, *others = dated((value, *others))
    if not all(isinstance(one, Literal | Field) for one in others):
        # Some servers go on behind the one that is equal, and some do not: it may be out of range there.
        raise Refused("IN takes columns and values that the filter says; compare with each by = and OR")
    _must_be_alike((value, *others))
    listed = _listed(value, others)
    if listed is not None:
        return listed
    return reduce(either, (compared("=", value, other) for other in others))


def like(value: Expression, pattern: Expression, escape: str) -> Expression:
    """`value LIKE pattern ESCAPE escape`, of a pattern that the filter says. Raises Refused."""
    if not isinstance(pattern, Literal) or pattern.sort.family is not Family.TEXT:
        raise Refused("LIKE takes a pattern that is written in the filter, between quotes")
    if value.sort.family is Family.BYTES:
        return Call(partial(_matches, _regex(pattern.written, escape)), (as_bytes(value),), BOOLEAN)
    if value.sort.family is not Family.TEXT:
        raise Refused(f"LIKE is for texts and bytes, and {shown(value)} is {value.sort.family.value}")
    _order_of("LIKE", value, pattern)
    return Call(partial(_matches, _regex(pattern.written, escape)), (value,), BOOLEAN)


def both(left: Expression, right: Expression) -> Expression:
    """AND of two conditions."""
    whole = Call(pc.and_kleene, (left, right), BOOLEAN)
    return Guarded(whole, Call(_not_false, (left,), BOOLEAN), whole, truth_value(False))


def either(left: Expression, right: Expression) -> Expression:
    """OR of two conditions."""
    whole = Call(pc.or_kleene, (left, right), BOOLEAN)
    return Guarded(whole, left, truth_value(True), whole)


def truth(expression: Expression) -> Expression:
    """An expression as a condition: an integer is true where it is not zero. Raises Refused.

    Of other numbers some servers take the integer first: 0.5 is true on MariaDB 10.11, and false on MySQL 8.0.15.
    """
    if expression.sort.family is Family.BOOLEAN:
        return expression
    if expression.sort.family is Family.NULL:
        return Literal(void(pa.bool_()), BOOLEAN)
    if expression.sort.family is not Family.INTEGER:
        raise Refused(f"{shown(expression)} is no condition; compare it with something")
    return Call(_not_zero, (expression,), BOOLEAN)


def _not_false(condition: Values) -> Values:
    return pc.fill_null(condition, True)


def _equal_or_null(equal: Values, left: Values, right: Values) -> Values:
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(equal, False))


def _not_zero(values: Values) -> Values:
    return pc.not_equal(values, cast_to(values.type, pa.scalar(0)))


def _must_be_alike(expressions: tuple[Expression, ...]) -> None:
    """The server compares all by one type, which it finds from all. So only some mixtures are taken."""
    told = [as_integer(one) for one in expressions if one.sort.family is not Family.NULL]
    families = {one.sort.family for one in told}
    if Family.DOUBLE in families and len(families) > 1 and not all(map(_is_double, told)):
        raise Refused(
            "doubles and exact numbers are compared as doubles here by the server; CAST all AS DOUBLE"
        )
    if not families.isdisjoint(_TIMES) and not all(map(_is_said, expressions[1:])):
        # MySQL 8.0.15 compares some of these as texts.
        raise Refused(
            "BETWEEN, IN and CASE take moments and times that the filter says, not NULL and no columns"
        )
    if len(families) > 1 and not families <= NUMBERS:
        raise Refused("all that BETWEEN, IN and CASE compare must be of one type; CAST to it")


def _is_said(one: Expression) -> bool:
    return isinstance(one, Literal) and one.sort.family is not Family.NULL


def _is_double(one: Expression) -> bool:
    return one.sort.family is Family.DOUBLE or isinstance(one, Literal)


def _listed(value: Expression, others: Sequence[Expression]) -> Expression | None:
    """IN by a table of the values, where all are integers, bytes or texts that the filter says."""
    told = [one for one in others if one.sort.family is not Family.NULL]
    if not told or not all(isinstance(one, Literal) for one in told):
        return None
    held, *listed = alike((value, *told))
    if {one.sort.family for one in (held, *listed)} not in _LISTED:
        return None
    padded = held.sort.family is Family.TEXT and _order_of("IN", held, listed[0]) is Order.PADDED
    scalars = [one.of(_NO_ROWS) for one in listed]
    values = [one.as_py().rstrip(" ") if padded else one.as_py() for one in scalars]
    table = pa.array(values, scalars[0].type)
    return Call(partial(_is_in, table, padded, len(told) < len(others)), (held,), BOOLEAN)


def _is_in(table: pa.Array, padded: bool, or_null: bool, values: Values) -> Values:
    held = pc.is_in(_unpadded(values) if padded else values, value_set=table)
    held = pc.if_else(pc.is_null(values), void(pa.bool_()), held)
    return pc.if_else(held, True, void(pa.bool_())) if or_null else held


def _texts(sign: str, left: Expression, right: Expression) -> Expression:
    """Texts by code points."""
    if _order_of(sign, left, right) is Order.EXACT:
        return Call(OPERATORS[sign], (left, right), BOOLEAN)
    if sign in _EQUALITY:
        return Call(OPERATORS[sign], (_without_spaces(left), _without_spaces(right)), BOOLEAN)
    if isinstance(left, Literal) and not isinstance(right, Literal):
        turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]
        return _texts(turned, right, left)
    if not isinstance(right, Literal) or _CONTROL.search(right.written):
        raise Refused(
            f"{sign} of two columns compares them as if spaces followed; write CAST(... AS BINARY) of both"
        )
    return Call(partial(_padded_order, sign, right.written.rstrip(" ")), (_without_spaces(left),), BOOLEAN)


def _padded_order(sign: str, other: str, values: Values) -> Values:
    """A text that goes on behind the other with a character below the space comes before it, not after it."""
    below = pc.match_substring_regex(values, f"(?s)^{_quoted(other)} *[\\x00-\\x1f]")
    found = OPERATORS[sign](values, pa.scalar(other))
    return pc.if_else(below, sign in ("<", "<="), found)


def _without_spaces(expression: Expression) -> Expression:
    return Call(_unpadded, (expression,), expression.sort)


def _unpadded(values: Values) -> Values:
    return pc.utf8_rtrim(values, characters=" ")


def _order_of(sign: str, left: Expression, right: Expression) -> Order:
    """How two texts are compared. Raises Refused where that is not known, or not by code points."""
    sides = (left, right)
    told = [one.sort for one in sides if one.sort.explicit] or [
        one.sort for one in sides if one.sort.order is not Order.ANY
    ]
    orders = {sort.order for sort in told}
    if len(orders) != 1 or Order.UNKNOWN in orders:
        what = next((one for one in sides if one.sort.order is Order.UNKNOWN), left)
        raise Refused(
            f"a collation that is not known here decides about {shown(what)} {sign} ...; write CAST({_name(what)} AS "
            f"BINARY) {sign} ..., or {_name(what)} COLLATE {what.sort.type.charset or 'utf8mb4'}_bin {sign} ..."
        )
    ranks = sign not in (*_EQUALITY, "IN", "LIKE")
    if ranks and any(one.sort.type.charset not in IN_UTF8 for one in sides):
        raise Refused(
            f"{sign} of {shown(left)}: its character set has another order; write CONVERT(... USING utf8mb4)"
        )
    return orders.pop()


def _name(expression: Expression) -> str:
    return getattr(expression, "name", "...")


def _regex(pattern: str, escape: str) -> str:
    """A pattern of LIKE for RE2, where a dot takes line ends too."""
    parts, at = [], 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == escape and at + 1 < len(pattern):
            at += 1
            parts.append(_quoted(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter) or _quoted(letter))
        at += 1
    return f"(?s)^{''.join(parts)}$"


def _quoted(literal: str) -> str:
    """A text that stands for itself in RE2."""
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{ord(c):02x}" for c in literal)


def _matches(regex: str, values: Values) -> Values:
    return pc.match_substring_regex(values, regex)


def negated(expression: Expression) -> Expression:
    """NOT of a condition."""
    return Call(pc.invert, (expression,), BOOLEAN)


def is_true(expression: Expression, wanted: bool) -> Expression:
    """IS TRUE and IS FALSE, which are never NULL."""
    held = expression if wanted else negated(expression)
    return Call(partial(pc.fill_null, fill_value=False), (held,), BOOLEAN)
