"""Expressions of a filter, typed as the server types them, and their values for many rows at once.

An expression is a value: it is made once for a table, and can be pickled. Arrays that stand for it have the type of its
`Sort`, whatever the columns have.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from catchment.model.errors import Unsupported
from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, Column, ColumnType, Kind
from catchment.wire.cells.charsets import UTF8
from catchment.wire.cells.types import arrow_type

Rows: TypeAlias = pa.Table | pa.RecordBatch
Values: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar
Kernel: TypeAlias = Callable[..., Values]

BIGINT_DIGITS, UNSIGNED_DIGITS = 19, 20
WIDE = pa.decimal128(UNSIGNED_DIGITS, 0)  # of BIGINT UNSIGNED
# Sets of which a text has as many bytes as its UTF-8, and code points in the order of its bytes.
IN_UTF8 = frozenset({*UTF8, "ascii"})


class Family(Enum):
    """What kinds of values the server treats alike."""

    INTEGER = "an integer"
    BOOLEAN = "a condition"  # for the server the integer 1 or 0
    DECIMAL = "a DECIMAL"
    DOUBLE = "a DOUBLE"
    TEXT = "a text"
    BYTES = "bytes"
    DATE = "a DATE"
    DATETIME = "a DATETIME"
    TIMESTAMP = "a TIMESTAMP"
    TIME = "a TIME"
    YEAR = "a YEAR"
    NULL = "NULL"
    OTHER = "a value of its type"  # can be given, and asked whether it is NULL


class Order(Enum):
    """How texts are compared."""

    EXACT = "by code points"
    PADDED = "by code points, as if spaces followed"
    UNKNOWN = "as a collation says that is not known here"
    ANY = "as the other text"  # of a literal


@dataclass(frozen=True, slots=True)
class Sort:
    """The type of an expression. `digits`: of an integer, at most. `order`: of a text, `explicit` by COLLATE."""

    family: Family
    type: ColumnType
    digits: int = 0
    order: Order = Order.ANY
    explicit: bool = False

    @property
    def wide(self) -> bool:
        """Whether its integers are more than 64 signed bits hold, so that arrays have them as decimals."""
        return self.family is Family.INTEGER and arrow_type(self.type) == WIDE

    @property
    def arrow(self) -> pa.DataType:
        """The type of arrays with its values."""
        if self.family is Family.BOOLEAN:
            return pa.bool_()
        if self.family is Family.INTEGER:
            return WIDE if self.wide else pa.int64()
        return pa.float64() if self.family is Family.DOUBLE else arrow_type(self.type)


BOOLEAN = Sort(Family.BOOLEAN, ColumnType(Kind.INT), 1)
BIGINT = Sort(Family.INTEGER, ColumnType(Kind.BIGINT), BIGINT_DIGITS)
BIGINT_UNSIGNED = Sort(Family.INTEGER, ColumnType(Kind.BIGINT, unsigned=True), UNSIGNED_DIGITS)
DOUBLE = Sort(Family.DOUBLE, ColumnType(Kind.DOUBLE))
DATE = Sort(Family.DATE, ColumnType(Kind.DATE))
NULL = Sort(Family.NULL, ColumnType(Kind.BLOB))

_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.MEDIUMINT: 8, Kind.INT: 10, Kind.BIGINT: BIGINT_DIGITS}
_FAMILIES = {
    Kind.FLOAT: Family.DOUBLE,
    Kind.DOUBLE: Family.DOUBLE,
    Kind.TEXT: Family.TEXT,
    Kind.ENUM: Family.TEXT,
    Kind.SET: Family.TEXT,
    Kind.BINARY: Family.BYTES,
    Kind.BLOB: Family.BYTES,
    Kind.DATE: Family.DATE,
    Kind.DATETIME: Family.DATETIME,
    Kind.TIMESTAMP: Family.TIMESTAMP,
    Kind.TIME: Family.TIME,
    Kind.YEAR: Family.YEAR,
}


def decimal(digits: int, scale: int) -> Sort:
    """A DECIMAL of so many digits, of which `scale` stand behind the point."""
    return Sort(Family.DECIMAL, ColumnType(Kind.DECIMAL, length=digits, scale=scale))


def text(charset: str, order: Order, *, explicit: bool = False) -> Sort:
    """A text."""
    return Sort(Family.TEXT, ColumnType(Kind.TEXT, charset=charset), order=order, explicit=explicit)


def sort_of(column: ColumnType, order: Order) -> Sort:
    """That of a column; `order`: how its texts are compared."""
    if column.kind in INTEGERS:
        more = column.unsigned and column.kind is Kind.BIGINT
        return Sort(Family.INTEGER, column, _DIGITS[column.kind] + more)
    if column.kind is Kind.BIT:
        return Sort(Family.INTEGER, replace(column, unsigned=True), UNSIGNED_DIGITS)
    if column.kind is Kind.DECIMAL:
        fits = column.length <= DECIMAL_DIGITS_MAX
        return Sort(Family.DECIMAL if fits else Family.OTHER, column)
    family = _FAMILIES.get(column.kind, Family.OTHER)
    return Sort(family, column, order=order if family is Family.TEXT else Order.ANY)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the table."""

    name: str
    sort: Sort

    def of(self, rows: Rows) -> Values:
        """Its values for the rows."""
        column = rows.column(self.name)
        return column if column.type == self.sort.arrow else column.cast(self.sort.arrow)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that the filter says. `written`: a number's digits, a text."""

    value: pa.Scalar
    sort: Sort
    written: str = ""

    def of(self, rows: Rows) -> Values:
        """It, for any rows."""
        return self.value


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel over the values of other expressions."""

    kernel: Kernel
    operands: tuple["Expression", ...]
    sort: Sort

    def of(self, rows: Rows) -> Values:
        """Its values for the rows."""
        return self.kernel(*(operand.of(rows) for operand in self.operands))


@dataclass(frozen=True, slots=True)
class Guarded:
    """`whole`, which is `yes` where a condition holds and `no` elsewhere. Only what counts for a row can be out of
    range there, as on a server."""

    whole: Call
    condition: "Expression"
    yes: "Expression"
    no: "Expression"

    @property
    def sort(self) -> Sort:
        """That of the whole."""
        return self.whole.sort

    def of(self, rows: Rows) -> Values:
        """Its values for the rows. Raises Unsupported where a result is out of range that counts."""
        try:
            return self.whole.of(rows)
        except Unsupported:
            return self._apart(rows)

    def _apart(self, rows: Rows) -> Values:
        """Each row by what counts for it."""
        holds = pc.fill_null(array_of(self.condition.of(rows), rows, pa.bool_()), False)
        kind = self.sort.arrow
        sides = ((holds, self.yes), (pc.invert(holds), self.no))
        parts: list[pa.Array] = []
        for side, expression in sides:
            its = rows.filter(side)
            values = array_of(expression.of(its), its, kind) if its.num_rows else pa.array([], kind)
            parts += values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        back = np.argsort(np.argsort(~np.asarray(holds), kind="stable"))
        return pa.chunked_array(parts, kind).take(pa.array(back))


Expression: TypeAlias = Field | Literal | Call | Guarded


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result."""

    column: Column
    value: Expression


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns that an expression needs; some come more than once."""
    if isinstance(expression, Field):
        yield expression.name
    elif isinstance(expression, Call):
        for operand in expression.operands:
            yield from columns_of(operand)
    elif isinstance(expression, Guarded):
        yield from columns_of(expression.whole)


def as_integer(expression: Expression) -> Expression:
    """A condition as the integer that it is for the server; others as they are."""
    if expression.sort.family is not Family.BOOLEAN:
        return expression
    return Call(to_int64, (expression,), Sort(Family.INTEGER, ColumnType(Kind.BIGINT), 1))


def to_int64(values: Values) -> Values:
    """Kernel: conditions, small integers and years as 64 bits."""
    return values.cast(pa.int64())


def array_of(values: Any, rows: Rows, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Values of an expression as an array of a type with an entry for each row."""
    if isinstance(values, pa.Scalar):
        values = pa.repeat(values.cast(kind), rows.num_rows)
    return values if values.type == kind else values.cast(kind)


def shown(expression: Expression) -> str:
    """An expression in a message: the name of a column, what a literal is, or what kind of value it has."""
    if isinstance(expression, Field):
        return f"column {expression.name}"
    if isinstance(expression, Literal) and expression.written:
        return repr(expression.written) if expression.sort.family is Family.TEXT else expression.written
    return expression.sort.family.value


def void(kind: pa.DataType) -> pa.Scalar:
    """NULL of a type."""
    return pa.scalar(None, kind)


def null_where(condition: Values, values: Values) -> Values:
    """Values, and NULL where a condition holds."""
    return pc.if_else(condition, void(values.type), values)
