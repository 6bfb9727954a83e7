"""The value that ADD COLUMN gives to the rows that are there, as its declaration says it.

Servers fill such rows and log none of them. What is not known here to lead to one certain value is not told. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from catchment.model.errors import Unsupported
from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, ColumnType, Kind
from catchment.schema.attributes import NUMBER, Default, Untold, attributes
from catchment.schema.declaration import attributes_of, read_column
from catchment.schema.statement import AmbiguousText, Word
from catchment.schema.widening import BITS
from catchment.wire.cells.types import from_catalog


@dataclass(frozen=True, slots=True)
class Filled:
    """A column that every row has with one `value`, None for NULL: as the text of Arrow's cast to the type.

    Of `type` the character set is left out, which the declaration need not say.
    """

    column: str
    type: ColumnType
    value: str | None


_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]{1,6}))?")
_LENGTH = re.compile(r"(?:var)?char\(([0-9]+)\)")
_SHORTEST_TEXT = 63  # characters that a TINYTEXT has in every character set
_YEARS = range(1901, 2156)
_WHOLE_DOUBLES, _WHOLE_FLOATS = 1 << 53, 1 << 24


# Why a reader of the log alone cannot follow such a column.
UNLOGGED = "a column with a non-NULL default was added, and the server does not log the rows that it fills"


def filled(words: Sequence[Word], time: int) -> Filled | None:
    """The value by the declaration `name type attributes`; None where it is not told for certain.

    `time`: when the statement began, in seconds since 1970, 0 where that is not known.
    """
    try:
        declared = read_column(words, "utf8mb4", mysql=True).declared
        kind = from_catalog(re.split(r"[( ]", declared, maxsplit=1)[0], declared, "utf8mb4")
        said = attributes(attributes_of(words[1:]))
        if said.null is None and kind.kind is Kind.TIMESTAMP:
            return None  # explicit_defaults_for_timestamp decides
        value = _value(kind, declared, said.default, null=said.null is not False, time=time)
    except (AmbiguousText, Unsupported, Untold):
        return None
    return Filled(words[0].text, replace(kind, charset=""), value)


def _value(kind: ColumnType, declared: str, default: Default | None, *, null: bool, time: int) -> str | None:
    if default is not None and default.now:
        # The session's time zone makes a DATETIME of it, and fractions are not in the event.
        if kind.kind is not Kind.TIMESTAMP or kind.scale or time <= 0:
            raise Untold
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S+00:00")
    if kind.kind is Kind.TIMESTAMP:
        raise Untold  # the session's time zone decides
    if default is None or default.literal is None:
        if default is not None and not null:
            raise Untold
        return None if null else _implicit(kind)
    return _literal(kind, declared, default.literal, quoted=default.quoted)


def _implicit(kind: ColumnType) -> str | None:
    """What a NOT NULL column without a default has (manuals: Data Type Default Values). A zero date is NULL here."""
    if kind.kind in INTEGERS or kind.kind in (Kind.BIT, Kind.FLOAT, Kind.DOUBLE):
        return "0"
    if kind.kind is Kind.DECIMAL:
        return _decimal(kind, "0")
    if kind.kind in (Kind.TEXT, Kind.BLOB, Kind.SET):
        return ""
    if kind.kind is Kind.ENUM:
        return _known_label(kind, "", kind.labels[0])
    if kind.kind in (Kind.DATE, Kind.DATETIME):
        return None
    raise Untold


def _literal(kind: ColumnType, declared: str, text: str, *, quoted: bool) -> str:
    if quoted and kind.kind in _OF_TEXT:
        return _OF_TEXT[kind.kind](kind, declared, text)
    if kind.kind is Kind.DECIMAL:
        return _decimal(kind, text)
    if kind.kind is Kind.BIT and quoted:  # a text is taken for bits
        raise Untold
    return _whole(text, *_range(kind))


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
        raise Untold
    bits = BITS[kind.kind]
    return (0, (1 << bits) - 1) if kind.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _whole(text: str, least: int, largest: int) -> str:
    if not _INTEGER.fullmatch(text) or not least <= int(text) <= largest:
        raise Untold
    return str(int(text))


def _decimal(kind: ColumnType, text: str) -> str:
    """With all digits behind the point that the type has; one with more of them than fit is not told."""
    if not NUMBER.fullmatch(text) or kind.length > DECIMAL_DIGITS_MAX:
        raise Untold
    value = Decimal(text)
    whole, _, fraction = format(abs(value), "f").partition(".")
    fits = len(fraction) <= kind.scale and len(whole.lstrip("0")) <= kind.length - kind.scale
    if not fits or (kind.unsigned and value < 0):
        raise Untold
    sign = "-" if value < 0 else ""
    return sign + whole + (f".{fraction.ljust(kind.scale, '0')}" if kind.scale else "")


def _moment(kind: ColumnType, declared: str, text: str) -> str:
    pattern = _DATE if kind.kind is Kind.DATE else _DATETIME
    found = pattern.fullmatch(text)
    if found is None or len((found[1] if pattern is _DATETIME else None) or "") > kind.scale:
        raise Untold
    try:
        date.fromisoformat(text) if kind.kind is Kind.DATE else datetime.fromisoformat(text)
    except ValueError:  # a zero date, or a day that the calendar does not have
        raise Untold from None
    return text


def _known_label(kind: ColumnType, declared: str, text: str) -> str:
    """A label as it was declared; other spellings of it and sets of several are not told."""
    if (text not in kind.labels and not (text == "" and kind.kind is Kind.SET)) or not text.isascii():
        raise Untold
    return text


def _text(kind: ColumnType, declared: str, text: str) -> str:
    """Every character set carried has ASCII; a CHAR loses the spaces at its end."""
    found = _LENGTH.fullmatch(declared)
    longest = int(found[1]) if found else _SHORTEST_TEXT
    if not text.isascii() or not text.isprintable() or text.endswith(" ") or len(text) > longest:
        raise Untold
    return text


_OF_TEXT: Final = {
    Kind.DATE: _moment, Kind.DATETIME: _moment, Kind.ENUM: _known_label, Kind.SET: _known_label, Kind.TEXT: _text,
}  # fmt: skip
