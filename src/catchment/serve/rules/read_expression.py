"""sqlglot's trees of expressions made typed expressions, for the columns of one table.

What is not listed here is refused. So is what sqlglot and the servers may group in different ways without parentheses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from catchment.model.table import Table
from catchment.serve.rules import arithmetic, casts, compare, functions, literals
from catchment.serve.rules.conversions import cast_to
from catchment.serve.rules.expression import (
    BOOLEAN,
    Call,
    Expression,
    Family,
    Field,
    Literal,
    Order,
    shown,
    sort_of,
    text,
)
from catchment.serve.rules.key_range import in_key_range, of_key
from catchment.serve.rules.refused import Refused

_SIGNS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_CALCULATED: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_PARTS: dict[type[exp.Expression], str] = {
    exp.Year: "YEAR",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAYOFMONTH",
    exp.Quarter: "QUARTER",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Second: "SECOND",
}
# The server takes these from the left on, sqlglot some before others.
_CONDITIONS = (*_SIGNS, exp.NullSafeEQ, exp.Is, exp.In, exp.Like, exp.Escape, exp.Between, exp.Not)
_DECIMAL_DIGITS = 10  # of a DECIMAL without arguments

_T = exp.DType


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions over the columns of a table. `known_as`: the names of the table. `orders`: how texts of columns
    are compared, by their names; others are compared as nobody knows."""

    table: Table
    known_as: frozenset[str]
    orders: Mapping[str, Order]

    def read(self, tree: exp.Expression) -> Expression:
        """The expression. Raises Refused."""
        read = _READERS.get(type(tree))
        if read is None:
            raise Refused(f"{_sql(tree)} is not known here to give what the server gives; leave it out")
        return read(self, tree)

    def condition(self, tree: exp.Expression) -> Expression:
        """An expression as a condition. Raises Refused."""
        return compare.truth(self.read(tree))

    def field(self, name: str) -> Field:
        """A column of the table, by its name in any case. Raises Refused."""
        found = next((c for c in self.table.columns if c.name.lower() == name.lower()), None)
        if found is None:
            named = ", ".join(column.name for column in self.table.columns)
            raise Refused(f"{self.table.id} has no column {name}; it has {named}")
        order = self.orders.get(found.name, Order.UNKNOWN)
        return Field(found.name, sort_of(found.type, order))

    def operand(self, tree: exp.Expression) -> Expression:
        """What a comparison compares. Raises Refused for a condition that stands there without parentheses."""
        if isinstance(tree, _CONDITIONS):
            raise Refused(f"put parentheses around {_sql(tree)}")
        return self.read(tree)


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect="mysql")


def _must_have_only(tree: exp.Expr, *names: str) -> None:
    for name, value in tree.args.items():
        if value and name not in names:
            raise Refused(f"{_sql(tree)} says more than is known here ({name.strip('_')})")


def _column(reader: Reader, tree: exp.Column) -> Expression:
    *before, name = [part.name for part in tree.parts]
    if isinstance(tree.this, exp.Star) or (before and ".".join(before).lower() not in reader.known_as):
        raise Refused(f"{_sql(tree)} is no column of {reader.table.id}")
    return reader.field(name)


def _literal(reader: Reader, tree: exp.Expression) -> Expression:
    return literals.string(tree.this) if tree.is_string else literals.number(tree.this)


def _paren(reader: Reader, tree: exp.Expression) -> Expression:
    return reader.read(tree.this)


def _comparison(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "expression")
    left, right = reader.operand(tree.this), reader.operand(tree.expression)
    if isinstance(tree, exp.NullSafeEQ):
        return compare.equal_or_null(left, right)
    return compare.compared(_SIGNS[type(tree)], left, right)


def _connected(reader: Reader, tree: exp.Connector) -> Expression:
    _must_have_only(tree, "this", "expression")
    left, right = reader.condition(tree.this), reader.condition(tree.expression)
    if isinstance(tree, exp.And):
        return compare.both(left, right)
    return compare.either(left, right) if isinstance(tree, exp.Or) else Call(pc.xor, (left, right), BOOLEAN)


def _not(reader: Reader, tree: exp.Expression) -> Expression:
    return compare.negated(reader.condition(tree.this))


def _is(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "expression")
    value, other = reader.operand(tree.this), tree.expression
    if isinstance(tree.this.unnest(), exp.NullSafeEQ) and isinstance(other, exp.Null):
        # MySQL 8.0.15 says of dates that it is.
        raise Refused(f"{_sql(tree.this)} is never NULL: leave that question out")
    if isinstance(other, exp.Null):
        return Call(pc.is_null, (value,), BOOLEAN)
    if isinstance(other, exp.Boolean):
        return compare.is_true(compare.truth(value), bool(other.this))
    raise Refused(f"{_sql(tree)} is not known here; write IS NULL, IS TRUE or IS FALSE")


def _in(reader: Reader, tree: exp.Expression) -> Expression:
    if tree.args.get("query") or not tree.expressions:
        raise Refused(f"{_sql(tree)}: a filter sees one changed row at a time; list the values themselves")
    _must_have_only(tree, "this", "expressions")
    return compare.one_of(reader.operand(tree.this), [reader.operand(one) for one in tree.expressions])


def _between(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "low", "high")
    return compare.between(*(reader.operand(tree.args[name]) for name in ("this", "low", "high")))


def _like(reader: Reader, tree: exp.Expression) -> Expression:
    escape = ""
    like = tree
    if isinstance(tree, exp.Escape):
        escape, like = tree.expression.name, tree.this
        if not (isinstance(tree.expression, exp.Literal) and tree.expression.is_string and len(escape) == 1):
            raise Refused("ESCAPE takes one character between quotes")
        if not isinstance(like, exp.Like):
            raise Refused(f"{_sql(tree)} is not known here")
    _must_have_only(like, "this", "expression", "negate")
    found = compare.like(reader.operand(like.this), reader.operand(like.expression), escape)
    return compare.negated(found) if like.args.get("negate") else found


def _calculation(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "expression", "typed", "safe")
    left, right = reader.operand(tree.this), reader.operand(tree.expression)
    if isinstance(tree, exp.Div):
        return arithmetic.divided(left, right)
    if isinstance(tree, exp.IntDiv):
        return arithmetic.whole_quotient(left, right)
    if isinstance(tree, exp.Mod):
        return arithmetic.remainder(left, right)
    return arithmetic.calculated(_CALCULATED[type(tree)], left, right)


def _concat(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "expressions", "safe", "coalesce")
    return functions.joined_texts([reader.read(one) for one in tree.expressions])


def _coalesce(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "expressions")
    return functions.first_not_null([reader.read(one) for one in (tree.this, *tree.expressions)])


def _if(reader: Reader, tree: exp.Expression) -> Expression:
    no = tree.args.get("false")
    other = literals.NOTHING if no is None else reader.read(no)
    return functions.chosen(reader.condition(tree.this), reader.read(tree.args["true"]), other)


def _case(reader: Reader, tree: exp.Expression) -> Expression:
    cases = []
    held = None if tree.this is None else reader.read(tree.this)
    for one in tree.args["ifs"]:
        said = reader.read(one.this)
        met = compare.truth(said) if held is None else compare.same_as(held, said)
        cases.append((met, reader.read(one.args["true"])))
    default = tree.args.get("default")
    return functions.first_case(cases, literals.NOTHING if default is None else reader.read(default))


def _nullif(reader: Reader, tree: exp.Expression) -> Expression:
    return functions.null_if(reader.read(tree.this), reader.read(tree.expression))


def _cast(reader: Reader, tree: exp.Cast) -> Expression:
    _must_have_only(tree, "this", "to")
    value, to = reader.operand(tree.this), tree.to
    if to.this is _T.CHARACTER_SET:
        if to.args["kind"].name.lower() != "utf8mb4":
            raise Refused(f"{_sql(tree)}: only CONVERT(... USING utf8mb4) is known here")
        return casts.in_utf8mb4(value)
    sizes = [int(one.name) for one in to.expressions]
    if to.this is _T.DECIMAL:
        digits, scale = [*sizes, *(_DECIMAL_DIGITS, 0)[len(sizes) :]]
        return casts.as_decimal(value, digits, scale)
    if to.this is _T.CHAR:
        return casts.as_characters(value, sizes[0] if sizes else None)
    if to.this in (_T.DATETIME, _T.TIMESTAMPTZ):
        written = isinstance(value, Literal) and to.this is _T.TIMESTAMPTZ
        if to.this is _T.TIMESTAMPTZ and not written:
            raise Refused(f"{_sql(tree)} is not known here; write CAST(... AS DATETIME)")
        scale = sizes[0] if sizes else (6 if written else 0)
        return casts.as_moment(value, scale)
    plain = _CASTS.get(to.this)
    if plain is None or sizes:
        raise Refused(
            f"CAST AS {_sql(to)} is not known here; there are SIGNED, UNSIGNED, DECIMAL, DOUBLE, CHAR, BINARY, DATE "
            "and DATETIME"
        )
    return plain(value)


def _collate(reader: Reader, tree: exp.Expression) -> Expression:
    value, name = reader.operand(tree.this), tree.expression.name
    if value.sort.family is not Family.TEXT:
        raise Refused(f"COLLATE is for texts, and {shown(value)} is {value.sort.family.value}")
    order = order_of(name)
    charset = value.sort.type.charset
    if order is Order.UNKNOWN or name.lower().partition("_")[0] not in {charset, *_ALIASES.get(charset, ())}:
        raise Refused(f"COLLATE {name} is not known here for {charset}; write COLLATE {charset}_bin")
    sort = text(charset, order, explicit=True)
    return Call(partial(cast_to, sort.arrow), (value,), sort)


_ALIASES = {"utf8mb3": ("utf8",)}


def order_of(collation: str) -> Order:
    """How a collation of a server compares texts."""
    name = collation.lower()
    if name == "binary" or name.endswith(("_nopad_bin", "_0900_bin")):
        return Order.EXACT
    return Order.PADDED if name.endswith("_bin") else Order.UNKNOWN


def _length(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "binary")
    measured = functions.length_in_bytes if tree.args.get("binary") else functions.length_in_characters
    return measured(reader.read(tree.this))


def _substring(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "start", "length")
    start, length = (tree.args.get(name) for name in ("start", "length"))
    return _part_of_text(reader, tree.this, start, length)


def _part_of_text(
    reader: Reader, tree: exp.Expression, start: exp.Expression | None, length: exp.Expression | None
) -> Expression:
    if start is None:
        raise Refused("SUBSTRING takes the number of the character from which on it goes")
    count = None if length is None else literals.whole(reader.read(length), "the length of SUBSTRING")
    first = literals.whole(reader.read(start), "the start of SUBSTRING")
    return functions.part_of_text(reader.read(tree), first, count)


def _end_of_text(reader: Reader, tree: exp.Expression) -> Expression:
    count = literals.whole(reader.read(tree.expression), "the length")
    taken = functions.left_of_text if isinstance(tree, exp.Left) else functions.right_of_text
    return taken(reader.read(tree.this), count)


def _trim(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this", "position")
    position = tree.args.get("position") or ""
    return functions.without_spaces(reader.read(tree.this), str(position))


def _part_of_date(reader: Reader, tree: exp.Expression) -> Expression:
    _must_have_only(tree, "this")
    held = tree.this
    held = held.this if isinstance(held, exp.TsOrDsToDate) else held
    return functions.part_of_date(_PARTS[type(tree)], reader.read(held))


def _anonymous(reader: Reader, tree: exp.Expression) -> Expression:
    name, given = tree.name.lower(), tree.expressions
    if name == "in_keyrange":
        return _in_key_range(reader, given)
    if name == "octet_length" and len(given) == 1:
        return functions.length_in_bytes(reader.read(given[0]))
    if name == "mid" and len(given) == 3:
        return _part_of_text(reader, given[0], given[1], given[2])
    raise Refused(f"{_sql(tree)} is not known here to give what the server gives; leave it out")


def _in_key_range(reader: Reader, given: list[exp.Expression]) -> Expression:
    """in_keyrange('-80'), of the key, and in_keyrange(column, 'vindex', '-80')."""
    wanted = given[-1] if given else None
    if len(given) not in (1, 3) or not (isinstance(wanted, exp.Literal) and wanted.is_string):
        raise Refused("write in_keyrange('-80'), or in_keyrange(column, 'hash', '-80')")
    if len(given) == 1:
        return of_key(reader.table, wanted.name)
    column, vindex = given[0], given[1]
    if not isinstance(column, exp.Column) or not (isinstance(vindex, exp.Literal) and vindex.is_string):
        raise Refused("in_keyrange takes a column, a vindex between quotes and a range between quotes")
    found = _column(reader, column)
    assert isinstance(found, Field)
    return in_key_range(found, vindex.name, wanted.name)


_CASTS: dict[_T, Callable[[Expression], Expression]] = {
    _T.BIGINT: casts.as_signed,
    _T.UBIGINT: casts.as_unsigned,
    _T.DOUBLE: casts.as_double,
    _T.BINARY: casts.as_binary,
    _T.DATE: casts.as_day,
}

_READERS: dict[type[exp.Expression], Callable[[Reader, Any], Expression]] = {
    **dict.fromkeys((*_SIGNS, exp.NullSafeEQ), _comparison),
    **dict.fromkeys((*_CALCULATED, exp.Div, exp.IntDiv, exp.Mod), _calculation),
    **dict.fromkeys(_PARTS, _part_of_date),
    **dict.fromkeys((exp.And, exp.Or, exp.Xor), _connected),
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda _, tree: literals.truth_value(bool(tree.this)),
    exp.Null: lambda _, tree: literals.NOTHING,
    exp.HexString: lambda _, tree: literals.octets(tree.name),
    exp.Paren: _paren,
    exp.Not: _not,
    exp.Neg: lambda reader, tree: arithmetic.opposite(reader.read(tree.this)),
    exp.Abs: lambda reader, tree: arithmetic.absolute(reader.read(tree.this)),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _like,
    exp.Concat: _concat,
    exp.Coalesce: _coalesce,
    exp.If: _if,
    exp.Case: _case,
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.Collate: _collate,
    exp.Length: _length,
    exp.Substring: _substring,
    exp.Left: _end_of_text,
    exp.Right: _end_of_text,
    exp.Trim: _trim,
    exp.Lower: lambda reader, tree: functions.in_case(reader.read(tree.this), upper=False),
    exp.Upper: lambda reader, tree: functions.in_case(reader.read(tree.this), upper=True),
    exp.TsOrDsToDate: lambda reader, tree: casts.as_day(reader.read(tree.this)),
    exp.Anonymous: _anonymous,
}
