"""What the attributes of a column's declaration say: its default, and whether it may be NULL.

Each attribute must be known. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from catchment.schema.statement import Word

_ALONE: Final = frozenset({"UNSIGNED", "SIGNED", "ZEROFILL", "INVISIBLE"})
_NOW: Final = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_CHARSETS: Final = (["CHARACTER", "SET"], ["CHAR", "SET"], ["CHARSET"], ["COLLATE"])
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,65}(?:\.[0-9]{1,38})?")


class Untold(Exception):
    """What a declaration leads to is not known for certain."""


@dataclass(frozen=True, slots=True)
class Default:
    """What stands behind DEFAULT: a `literal`, NULL for None, or the time of the statement."""

    literal: str | None = None
    quoted: bool = False
    now: bool = False


@dataclass(frozen=True, slots=True)
class Attributes:
    """The default that a declaration says, and whether the column may be `null`; None where it says nothing."""

    default: Default | None
    null: bool | None


def attributes(words: Sequence[Word]) -> Attributes:
    """What the words behind a type say. Raises Untold where one of them is not known."""
    default: Default | None = None
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
    return Attributes(default, null)


def _behind_charset(words: Sequence[Word], keywords: Sequence[str], place: int) -> int:
    for said in _CHARSETS:
        end = place + len(said)
        if keywords[place:end] == said and end < len(words) and keywords[end] != "=":
            return end + 1
    raise Untold


def _default(words: Sequence[Word], place: int) -> tuple[Default, int]:
    """The default that begins at a place, and the place behind it."""
    if place >= len(words):
        raise Untold
    word = words[place]
    if word.quote == "'":
        if "\\" in word.text or (words[place + 1 : place + 2] and words[place + 1].quote == "'"):
            raise Untold
        return Default(word.text, quoted=True), place + 1
    if word.keyword in _NOW:
        return Default(now=True), _behind_now(words, place)
    if word.keyword == "NULL":
        return Default(), place + 1
    if word.keyword in ("TRUE", "FALSE"):
        return Default(str(int(word.keyword == "TRUE"))), place + 1
    end = place
    while end < len(words) and (words[end].keyword in ("+", "-", ".") or words[end].keyword.isdigit()):
        end += 1
    number = "".join(word.text for word in words[place:end])
    if not NUMBER.fullmatch(number):
        raise Untold
    return Default(number), end


def _behind_now(words: Sequence[Word], place: int) -> int:
    """Behind CURRENT_TIMESTAMP, also with empty parentheses; NOW asks for them."""
    keywords = [word.keyword for word in words[place : place + 3]]
    if keywords[:1] and keywords[0] in _NOW:
        if keywords[1:] == ["(", ")"]:
            return place + 3
        if keywords[0] != "NOW" and keywords[1:2] != ["("]:
            return place + 1
    raise Untold
