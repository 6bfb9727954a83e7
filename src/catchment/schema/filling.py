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
from catchment.schema.declaration import attributes_of, read_column
from catchment.schema.statement import AmbiguousText, Word
from catchment.wire.cells.types import from_catalog


@dataclass(frozen=True, slots=True)
class Filled:
    """A column that every row has with one `value`, None for NULL: as the text of Arrow's cast to the type.

    Of `type` the character set is left out, which the declaration need not say.
    """

    column: str
    type: ColumnType
    value: str | None


_ALONE: Final = frozenset({"UNSIGNED", "SIGNED", "ZEROFILL", "INVISIBLE"})
_NOW: Final = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_CHARSETS: Final = (["CHARACTER", "SET"], ["CHAR", "SET"], ["CHARSET"], ["COLLATE"])
_BITS: Final = {
    Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.MEDIUMINT: 24, Kind.INT: 32, Kind.BIGINT: 64,
}  # fmt: skip
_INTEGER, _NUMBER = re.compile(r"[+-]?[0-9]{1,20}"), re.compile(r"[+-]?[0-9]{1,65}(?:\.[0-9]{1,38})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]{1,6}))?")
_LENGTH = re.compile(r"(?:var)?char\(([0-9]+)\)")
_SHORTEST_TEXT = 63  # characters that a TINYTEXT has in every character set
_YEARS = range(1901, 2156)
_WHOLE_DOUBLES, _WHOLE_FLOATS = 1 << 53, 1 << 24


# Why a reader of the log alone cannot follow such a column.
UNLOGGED = "a column with a non-NULL default was added, and the server does not log the rows that it fills"


class _Untold(Exception):
    """The value is not known for certain."""


@dataclass(frozen=True, slots=True)
class _Default:
    """What stands behind DEFAULT: a `literal`, NULL for None, or the time of the statement."""

    literal: str | None = None
    quoted: bool = False
    now: bool = False


def filled(words: Sequence[Word], time: int) -> Filled | None:
    """The value by the declaration `name type attributes`; None where it is not told for certain.

    `time`: when the statement began, in seconds since 1970, 0 where that is not known.
    """
    try:
        declared = read_column(words, "utf8mb4", mysql=True).declared
        kind = from_catalog(re.split(r"[( ]", declared, maxsplit=1)[0], declared, "utf8mb4")
        default, null = _said(attributes_of(words[1:]))
        if null is None and kind.kind is Kind.TIMESTAMP:
            return None  # explicit_defaults_for_timestamp decides
        value = _value(kind, declared, default, null=null is not False, time=time)
    except (AmbiguousText, Unsupported, _Untold):
        return None
    return Filled(words[0].text, replace(kind, charset=""), value)


def _said(words: Sequence[Word]) -> tuple[_Default | None, bool | None]:
    """What the attributes say: the default, and whether the column may be NULL. Each must be known."""
    default: _Default | None = None
    null: bool | None = None
    place = 0
    keywords = [word.keyword for word in words]
    while place < len(words):
        keyword, after = keywords[place], keywords[place + 1 : place + 2]
        if keyword in _ALONE:
            place += 1
        elif keyword == "NOT" and after == ["NULL"]:
            null, place = False, place + 2
        elif keyword == "NULL":
            null, place = True, place + 1
        elif keyword == "COMMENT" and words[place + 1 : place + 2] and words[place + 1].quote == "'":
            place += 2
        elif keyword == "DEFAULT" and default is None:
            default, place = _default(words, place + 1)
        elif keyword == "ON" and after == ["UPDATE"]:
            place = _behind_now(words, place + 2)
        elif keyword in ("FIRST", "AFTER"):
            place += 1 if keyword == "FIRST" else 2
        else:
            place = _behind_charset(words, keywords, place)
    return default, null


def _behind_charset(words: Sequence[Word], keywords: Sequence[str], place: int) -> int:
    for said in _CHARSETS:
        end = place + len(said)
        if keywords[place:end] == said and end < len(words) and keywords[end] != "=":
            return end + 1
    raise _Untold


def _default(words: Sequence[Word], place: int) -> tuple[_Default, int]:
    """The default that begins at a place, and the place behind it."""
    if place >= len(words):
        raise _Untold
    word = words[place]
    if word.quote == "'":
        if "\\" in word.text or (words[place + 1 : place + 2] and words[place + 1].quote == "'"):
            raise _Untold
        return _Default(word.text, quoted=True), place + 1
    if word.keyword in _NOW:
        return _Default(now=True), _behind_now(words, place)
    if word.keyword == "NULL":
        return _Default(), place + 1
    if word.keyword in ("TRUE", "FALSE"):
        return _Default(str(int(word.keyword == "TRUE"))), place + 1
    end = place
    while end < len(words) and (words[end].keyword in ("+", "-", ".") or words[end].keyword.isdigit()):
        end += 1
    number = "".join(word.text for word in words[place:end])
    if not _NUMBER.fullmatch(number):
        raise _Untold
    return _Default(number), end


def _behind_now(words: Sequence[Word], place: int) -> int:
    """Behind CURRENT_TIMESTAMP, also with empty parentheses; NOW asks for them."""
    keywords = [word.keyword for word in words[place : place + 3]]
    if keywords[:1] and keywords[0] in _NOW:
        if keywords[1:] == ["(", ")"]:
            return place + 3
        if keywords[0] != "NOW" and keywords[1:2] != ["("]:
            return place + 1
    raise _Untold


def _value(kind: ColumnType, declared: str, default: _Default | None, *, null: bool, time: int) -> str | None:
    if default is not None and default.now:
        # The session's time zone makes a DATETIME of it, and fractions are not in the event.
        if kind.kind is not Kind.TIMESTAMP or kind.scale or time <= 0:
            raise _Untold
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S+00:00")
    if kind.kind is Kind.TIMESTAMP:
        raise _Untold  # the session's time zone decides
    if default is None or default.literal is None:
        if default is not None and not null:
            raise _Untold
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
    raise _Untold


def _literal(kind: ColumnType, declared: str, text: str, *, quoted: bool) -> str:
    if quoted and kind.kind in _OF_TEXT:
        return _OF_TEXT[kind.kind](kind, declared, text)
    if kind.kind is Kind.DECIMAL:
        return _decimal(kind, text)
    if kind.kind is Kind.BIT and quoted:  # a text is taken for bits
        raise _Untold
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
        raise _Untold
    bits = _BITS[kind.kind]
    return (0, (1 << bits) - 1) if kind.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _whole(text: str, least: int, largest: int) -> str:
    if not _INTEGER.fullmatch(text) or not least <= int(text) <= largest:
        raise _Untold
    return str(int(text))


def _decimal(kind: ColumnType, text: str) -> str:
    """With all digits behind the point that the type has; one with more of them than fit is not told."""
    if not _NUMBER.fullmatch(text) or kind.length > DECIMAL_DIGITS_MAX:
        raise _Untold
    value = Decimal(text)
    whole, _, fraction = format(abs(value), "f").partition(".")
    fits = len(fraction) <= kind.scale and len(whole.lstrip("0")) <= kind.length - kind.scale
    if not fits or (kind.unsigned and value < 0):
        raise _Untold
    sign = "-" if value < 0 else ""
    return sign + whole + (f".{fraction.ljust(kind.scale, '0')}" if kind.scale else "")


def _moment(kind: ColumnType, declared: str, text: str) -> str:
    pattern = _DATE if kind.kind is Kind.DATE else _DATETIME
    found = pattern.fullmatch(text)
    if found is None or len((found[1] if pattern is _DATETIME else None) or "") > kind.scale:
        raise _Untold
    try:
        date.fromisoformat(text) if kind.kind is Kind.DATE else datetime.fromisoformat(text)
    except ValueError:  # a zero date, or a day that the calendar does not have
        raise _Untold from None
    return text


def _known_label(kind: ColumnType, declared: str, text: str) -> str:
    """A label as it was declared; other spellings of it and sets of several are not told."""
    if (text not in kind.labels and not (text == "" and kind.kind is Kind.SET)) or not text.isascii():
        raise _Untold
    return text


def _text(kind: ColumnType, declared: str, text: str) -> str:
    """Every character set carried has ASCII; a CHAR loses the spaces at its end."""
    found = _LENGTH.fullmatch(declared)
    longest = int(found[1]) if found else _SHORTEST_TEXT
    if not text.isascii() or not text.isprintable() or text.endswith(" ") or len(text) > longest:
        raise _Untold
    return text


_OF_TEXT: Final = {
    Kind.DATE: _moment, Kind.DATETIME: _moment, Kind.ENUM: _known_label, Kind.SET: _known_label, Kind.TEXT: _text,
}  # fmt: skip
