"""The value that ADD COLUMN gives to the rows that are there, as its declaration says it.

Servers fill such rows and log none of them. What is not known here to lead to one certain value is not told. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
from msgspec.structs import replace

from catchment.model.definition import DefinedColumn
from catchment.model.errors import Unsupported
from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, ColumnType, Kind
from catchment.schema.attributes import Attributes, attributes
from catchment.schema.conditions import Conditions
from catchment.schema.cursor import Untold
from catchment.schema.declaration import attributes_of, has_size, read_column
from catchment.schema.defaults import NUMBER, Default, Form
from catchment.schema.statement import AmbiguousText, Word
from catchment.schema.widening import BITS
from catchment.wire.cells.types import from_catalog
from catchment.wire.log.declared import data_type


@dataclass(frozen=True, slots=True)
class Filled:
    """A column that every row has with one `value`, None for NULL: as the text of Arrow's cast to the type, and bytes
    as hexadecimal digits.

    Of `type` the character set is left out, which the declaration need not say.
    """

    column: str
    type: ColumnType
    value: str | None


_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]{1,6}))?")
_TIME = re.compile(
    r"(?P<sign>-?)(?P<hours>[0-9]{2,3}):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9])(?:\.(?P<fraction>[0-9]{1,6}))?"
)
# Of these the character set of the session's connection, which may be UCS-2, decides which bytes a text is.
_OF_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_HOURS_MAX = 837  # what is beyond 838:59:59 is cut off
_LENGTH = re.compile(r"\w+\(([0-9]+)\)")
_SHORTEST_TEXT = 63  # characters that a TINYTEXT has in every character set
_SHORTEST_BLOB = 255
_NUMBER_BYTES = 8  # servers make no number of more bytes
_FLOAT_BYTES = 4  # of each dimension of a VECTOR
_YEARS = range(1901, 2156)
_WHOLE_DOUBLES, _WHOLE_FLOATS = 1 << 53, 1 << 24
# Character sets in which bytes of ASCII are its characters: a column's own set is the one in which it takes bytes.
_OF_ASCII = ("ascii", "latin1", "utf8mb3", "utf8mb4")


# Why a reader of the log alone cannot follow such a column.
UNLOGGED = "a column with a non-NULL default was added, and the server does not log the rows that it fills"


def filled(words: Sequence[Word], conditions: Conditions) -> Filled | None:
    """The value by the declaration `name type attributes` of a column that servers fill; None where it is not told for
    certain."""
    try:
        column = read_column(words, "", mysql=conditions.mysql)
        kind = from_catalog(data_type(column.declared), column.declared, "utf8mb4")
        said = attributes(attributes_of(words[1:]))
        if said.null is None and kind.kind is Kind.TIMESTAMP:
            return None  # explicit_defaults_for_timestamp decides
        value = _Filling(kind, column, has_size(words[1:]), conditions).value(said)
    except (AmbiguousText, Unsupported):
        return None
    return Filled(words[0].text, replace(kind, charset=""), value)


@dataclass(frozen=True, slots=True)
class _Filling:
    """A column of this type, declared so, that comes to rows under some conditions. `sized`: with a size."""

    kind: ColumnType
    column: DefinedColumn
    sized: bool
    conditions: Conditions

    def value(self, said: Attributes) -> str | None:
        """What rows have by the attributes. Raises Untold."""
        default = said.default or Default(Form.NULL)
        if default.form is Form.NOW:
            return self._now(default)
        if self.kind.kind is Kind.TIMESTAMP:
            raise Untold("the session's time zone decides")
        if default.form is not Form.NULL:
            return self._literal(default)
        if said.default is not None and said.null is False:
            raise Untold("NULL and NOT NULL contradict each other")
        return None if said.null is not False else self._implicit()

    def _now(self, default: Default) -> str:
        # The session's time zone makes a DATETIME of it, and fractions are not in the event.
        time = self.conditions.time
        if self.kind.kind is not Kind.TIMESTAMP or self.kind.scale or default.text.strip("0") or time <= 0:
            raise Untold("the time is not known as the column has it")
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S+00:00")

    def _implicit(self) -> str | None:
        """What a NOT NULL column without a default has (manuals: Data Type Default Values). A zero date is NULL
        here."""
        kind = self.kind
        if kind.kind in INTEGERS or kind.kind in (Kind.BIT, Kind.FLOAT, Kind.DOUBLE):
            return "0"
        if kind.kind is Kind.DECIMAL:
            return _decimal(kind, "0")
        if kind.kind is Kind.BINARY or self._is_vector:
            empty = self._is_vector and self.conditions.mysql  # MariaDB has zeros there
            return "" if empty else bytes(kind.length or self._length()).hex()
        if kind.kind in (Kind.TEXT, Kind.BLOB, Kind.SET):
            return ""
        if kind.kind is Kind.ENUM:
            return _known_label(kind, kind.labels[0])
        if kind.kind in (Kind.DATE, Kind.DATETIME):
            return None
        raise Untold("the type has no implicit default that is known")

    def _literal(self, default: Default) -> str:
        text = default.text
        if default.form in (Form.BITS, Form.BYTES):
            return self._of_bytes(default)
        if default.form not in (Form.NUMBER, Form.TEXT):
            raise Untold("an expression is the default")
        value = self._quoted(text) if default.form is Form.TEXT else None
        return self._number(text) if value is None else value

    def _quoted(self, text: str) -> str | None:
        """What a text is as a value of the type; None where it is taken for a number."""
        kind = self.kind
        if text == "" and not self.conditions.usual:
            raise Untold("EMPTY_STRING_IS_NULL may make NULL of it")
        if kind.kind in (Kind.ENUM, Kind.SET):
            return _known_label(kind, text)
        if kind.kind in (Kind.DATE, Kind.DATETIME):
            return _moment(kind, text)
        if kind.kind is Kind.TIME:
            return _time(kind, text)
        if kind.kind is Kind.TEXT:
            return self._text(text)
        if kind.kind is Kind.BIT:  # a text is taken for bits
            raise Untold("a text is the default of bits")
        if text == "" and data_type(self.column.declared) in _OF_BYTES:
            return bytes(self._length() if kind.kind is Kind.BINARY else 0).hex()
        return None

    def _number(self, text: str) -> str:
        kind = self.kind
        if kind.kind is Kind.DECIMAL:
            return _decimal(kind, text)
        if kind.kind in (Kind.FLOAT, Kind.DOUBLE) and not self.sized:
            return _float(kind, text)
        return _whole(text, *_range(kind))

    def _of_bytes(self, default: Default) -> str:
        """What `0x1f`, `b'1'` and `x'1f'` are as a value of the type. MariaDB takes the last one for a text where a
        number is asked for."""
        kind, data = self.kind, default.data
        if kind.kind is Kind.BINARY and len(data) <= kind.length:
            return data.ljust(kind.length, b"\0").hex()
        if kind.kind is Kind.BLOB and len(data) <= self._length():
            return data.hex()
        if kind.kind is Kind.TEXT and self.column.charset in _OF_ASCII and data.isascii():
            return self._text(data.decode("ascii"))
        number = default.form is Form.BITS or self.conditions.mysql or kind.kind is Kind.BIT
        if not number or not 1 <= len(data) <= _NUMBER_BYTES:
            raise Untold("it is not known which number the bytes are")
        text = str(int.from_bytes(data, "big"))
        return _decimal(kind, text) if kind.kind is Kind.DECIMAL else _whole(text, *_range(kind))

    def _text(self, text: str) -> str:
        """Every character set carried has ASCII; a CHAR loses the spaces at its end."""
        longest = self._length()
        if not text.isascii() or not text.isprintable() or text.endswith(" ") or len(text) > longest:
            raise Untold("it is not known which text the column has")
        return text

    @property
    def _is_vector(self) -> bool:
        return self.column.declared.startswith("vector")

    def _length(self) -> int:
        """Characters or bytes that every value of the declared type may have."""
        found = _LENGTH.fullmatch(self.column.declared)
        if found is None:
            return _SHORTEST_TEXT if self.kind.kind is Kind.TEXT else _SHORTEST_BLOB
        return int(found[1]) * (_FLOAT_BYTES if self._is_vector else 1)


def _range(kind: ColumnType) -> tuple[int, int]:
    """The whole numbers that a type has exactly. Digits in parentheses may round others of FLOAT and DOUBLE."""
    match kind.kind:
        case Kind.BIT:
            return 0, (1 << kind.length) - 1
        case Kind.YEAR:
            return _YEARS.start, _YEARS.stop - 1
        case Kind.FLOAT | Kind.DOUBLE:
            largest = _WHOLE_DOUBLES if kind.kind is Kind.DOUBLE else _WHOLE_FLOATS
            return 0 if kind.unsigned else -largest, largest
    if kind.kind not in INTEGERS:
        raise Untold("it is not known which number the column has")
    bits = BITS[kind.kind]
    return (0, (1 << bits) - 1) if kind.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _whole(text: str, least: int, largest: int) -> str:
    if not _INTEGER.fullmatch(text) or not least <= int(text) <= largest:
        raise Untold("it is not known which number the column has")
    return str(int(text))


def _decimal(kind: ColumnType, text: str) -> str:
    """With all digits behind the point that the type has; one with more of them than fit is not told."""
    if not NUMBER.fullmatch(text) or kind.length > DECIMAL_DIGITS_MAX:
        raise Untold("it is not known which number the column has")
    value = Decimal(text)
    whole, _, fraction = format(abs(value), "f").partition(".")
    fits = len(fraction) <= kind.scale and len(whole.lstrip("0")) <= kind.length - kind.scale
    if not fits or (kind.unsigned and value < 0):
        raise Untold("it is not known which number the column has")
    sign = "-" if value < 0 else ""
    return sign + whole + (f".{fraction.ljust(kind.scale, '0')}" if kind.scale else "")


def _float(kind: ColumnType, text: str) -> str:
    """The nearest number of the type. Servers read a DOUBLE, of which a FLOAT is the nearest one."""
    if not NUMBER.fullmatch(text):
        raise Untold("it is not known which number the column has")
    value = np.float64(text)
    with np.errstate(over="ignore"):
        found = np.float32(value) if kind.kind is Kind.FLOAT else value
    if not np.isfinite(found) or (kind.unsigned and value < 0) or (found == 0 and text.startswith("-")):
        raise Untold("it is not known which number the column has")
    return np.format_float_positional(found, unique=True, trim="-")


def _time(kind: ColumnType, text: str) -> str:
    """In microseconds."""
    found = _TIME.fullmatch(text)
    if found is None or int(found["hours"]) > _HOURS_MAX or len(found["fraction"] or "") > kind.scale:
        raise Untold("it is not known which time the column has")
    seconds = int(found["hours"]) * 3600 + int(found["minutes"]) * 60 + int(found["seconds"])
    micros = seconds * 1_000_000 + int((found["fraction"] or "").ljust(6, "0"))
    return str(-micros if found["sign"] else micros)


def _moment(kind: ColumnType, text: str) -> str:
    pattern = _DATE if kind.kind is Kind.DATE else _DATETIME
    found = pattern.fullmatch(text)
    if found is None or len((found[1] if pattern is _DATETIME else None) or "") > kind.scale:
        raise Untold("it is not known which moment the column has")
    try:
        date.fromisoformat(text) if kind.kind is Kind.DATE else datetime.fromisoformat(text)
    except ValueError:  # a zero date, or a day that the calendar does not have
        raise Untold("the calendar does not have the day") from None
    return text


def _known_label(kind: ColumnType, text: str) -> str:
    """A label as it was declared; other spellings of it and sets of several are not told."""
    if (text not in kind.labels and not (text == "" and kind.kind is Kind.SET)) or not text.isascii():
        raise Untold("it is not known which label the column has")
    return text
