"""Functions of a filter, each with the type that the server gives it."""

from collections.abc import Sequence
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.table import ColumnType, Kind
from catchment.serve.rules.casts import first_characters, written
from catchment.serve.rules.compare import compared, truth
from catchment.serve.rules.conversions import MOMENTS, must_be_utf8, text_of, to_moment, united
from catchment.serve.rules.expression import (
    BOOLEAN,
    Call,
    Expression,
    Family,
    Guarded,
    Sort,
    Values,
    shown,
    text,
    to_int64,
    void,
)
from catchment.serve.rules.literals import NOTHING
from catchment.serve.rules.refused import Refused

PARTS_OF_DATES = {
    "YEAR": pc.year,
    "MONTH": pc.month,
    "DAY": pc.day,
    "DAYOFMONTH": pc.day,
    "QUARTER": pc.quarter,
}
PARTS_OF_TIMES = {"HOUR": pc.hour, "MINUTE": pc.minute, "SECOND": pc.second}
_COUNT = Sort(Family.INTEGER, ColumnType(Kind.BIGINT), 10)


def joined_texts(parts: Sequence[Expression]) -> Expression:
    """CONCAT; NULL where a part is. Raises Refused."""
    texts = tuple(written(part, "CHAR in CONCAT") for part in parts)
    return Call(_joined, texts, text_of(list(texts)))


def length_in_bytes(value: Expression) -> Expression:
    """LENGTH. Raises Refused."""
    if value.sort.family is not Family.BYTES:
        _must_be_text("LENGTH", value)
        must_be_utf8(value)
    return Call(_bytes_long, (value,), _COUNT)


def length_in_characters(value: Expression) -> Expression:
    """CHAR_LENGTH. Raises Refused."""
    _must_be_text("CHAR_LENGTH", value)
    return Call(_characters_long, (value,), _COUNT)


def part_of_text(value: Expression, start: int, length: int | None) -> Expression:
    """SUBSTRING from a character on, 1 for the first, -1 for the last. Raises Refused."""
    _must_be_text("SUBSTRING", value)
    return Call(partial(_part, start, length), (value,), _of_text(value))


def left_of_text(value: Expression, length: int) -> Expression:
    """LEFT. Raises Refused."""
    _must_be_text("LEFT", value)
    return Call(partial(first_characters, max(length, 0)), (value,), _of_text(value))


def right_of_text(value: Expression, length: int) -> Expression:
    """RIGHT. Raises Refused."""
    _must_be_text("RIGHT", value)
    return Call(partial(_last_characters, max(length, 0)), (value,), _of_text(value))


def without_spaces(value: Expression, position: str) -> Expression:
    """TRIM, LTRIM, RTRIM: `position` is empty, LEADING or TRAILING. Raises Refused."""
    _must_be_text("TRIM", value)
    kernel = {"LEADING": _left_trimmed, "TRAILING": _right_trimmed}.get(position, _trimmed)
    return Call(kernel, (value,), _of_text(value))


def in_case(value: Expression, *, upper: bool) -> Expression:
    """UPPER and LOWER, of texts in ASCII. Raises Refused."""
    _must_be_text("UPPER and LOWER", value)
    if value.sort.type.charset != "ascii":
        raise Refused(
            f"UPPER and LOWER of {shown(value)} depend on its collation; they are known here for ascii alone"
        )
    return Call(pc.ascii_upper if upper else pc.ascii_lower, (value,), _of_text(value))


def part_of_date(name: str, value: Expression) -> Expression:
    """YEAR, MONTH, DAY, QUARTER of a date, HOUR, MINUTE, SECOND of a moment; of a TIMESTAMP in UTC. Raises Refused."""
    kernel = PARTS_OF_DATES.get(name) or PARTS_OF_TIMES[name]
    if value.sort.family not in MOMENTS:
        raise Refused(f"{name} is for dates and moments, and {shown(value)} is {value.sort.family.value}")
    moment = Call(to_moment, (value,), value.sort)
    return Call(to_int64, (Call(kernel, (moment,), _COUNT),), _COUNT)


def first_not_null(values: Sequence[Expression]) -> Expression:
    """COALESCE and IFNULL. Raises Refused."""
    alike, sort = united(tuple(values))
    return reduce(lambda rest, value: _first(value, rest, sort), reversed(alike[:-1]), alike[-1])


def chosen(condition: Expression, yes: Expression, no: Expression) -> Expression:
    """IF. Raises Refused."""
    (yes, no), sort = united((yes, no))
    return _branch(truth(condition), yes, no, sort)


def first_case(cases: Sequence[tuple[Expression, Expression]], other: Expression) -> Expression:
    """CASE WHEN ... THEN ... ELSE. Raises Refused."""
    (*results, other), sort = united((*(result for _, result in cases), other))
    conditions = [truth(condition) for condition, _ in cases]
    pairs = list(zip(conditions, results, strict=True))
    return reduce(lambda rest, pair: _branch(pair[0], pair[1], rest, sort), reversed(pairs), other)


def null_if(left: Expression, right: Expression) -> Expression:
    """NULLIF. Raises Refused."""
    return chosen(compared("=", left, right), NOTHING, left)


def _branch(condition: Expression, yes: Expression, no: Expression, sort: Sort) -> Expression:
    return Guarded(Call(_chosen, (condition, yes, no), sort), condition, yes, no)


def _first(value: Expression, rest: Expression, sort: Sort) -> Expression:
    valid = Call(pc.is_valid, (value,), BOOLEAN)
    return Guarded(Call(pc.coalesce, (value, rest), sort), valid, value, rest)


def _must_be_text(name: str, value: Expression) -> None:
    if value.sort.family is not Family.TEXT:
        raise Refused(f"{name} is for texts, and {shown(value)} is {value.sort.family.value}")


def _of_text(value: Expression) -> Sort:
    """The type of a text that is made of another."""
    return text(value.sort.type.charset, value.sort.order, explicit=value.sort.explicit)


def _joined(*texts: Values) -> Values:
    return pc.binary_join_element_wise(*(one.cast(pa.string()) for one in texts), "")


def _bytes_long(values: Values) -> Values:
    return pc.binary_length(values).cast(pa.int64())


def _characters_long(values: Values) -> Values:
    return pc.utf8_length(values).cast(pa.int64())


def _part(start: int, length: int | None, values: Values) -> Values:
    """Nothing from in front of the first character, or of no length."""
    if start == 0 or (length is not None and length <= 0):
        return _where_valid(values)
    if start > 0:
        stop = None if length is None else start - 1 + length
        return pc.utf8_slice_codeunits(values, start - 1, stop)
    stop = None if length is None or start + length >= 0 else start + length
    found = pc.utf8_slice_codeunits(values, start, stop)
    return pc.if_else(pc.less(pc.utf8_length(values), -start), _where_valid(values), found)


def _last_characters(length: int, values: Values) -> Values:
    return pc.utf8_slice_codeunits(values, -length) if length else _where_valid(values)


def _where_valid(values: Values) -> Values:
    """Empty texts, and NULL where there is none."""
    return pc.if_else(pc.is_valid(values), "", void(pa.string()))


def _trimmed(values: Values) -> Values:
    return pc.utf8_trim(values, characters=" ")


def _left_trimmed(values: Values) -> Values:
    return pc.utf8_ltrim(values, characters=" ")


def _right_trimmed(values: Values) -> Values:
    return pc.utf8_rtrim(values, characters=" ")


def _chosen(condition: Values, yes: Values, no: Values) -> Values:
    return pc.if_else(pc.fill_null(condition, False), yes, no)
