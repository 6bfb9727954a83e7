"""What stands behind DEFAULT in the declaration of a column. Pure."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from catchment.schema.cursor import Cursor, Untold


class Form(Enum):
    """In which form a default is written, which decides how a server makes a value of it."""

    NULL = "NULL"
    NUMBER = "digits, with a sign and a point"
    TEXT = "a text in quotes"
    BITS = "bits in quotes, or 0x or 0b: a number where the column is one, else bytes"
    BYTES = "x and quotes: bytes, and on MySQL a number where the column is one"
    NOW = "the time of the statement"
    COMPUTED = "an expression in parentheses"


_IN_EXPRESSIONS: Final = (Form.NULL, Form.NUMBER, Form.TEXT)


@dataclass(frozen=True, slots=True)
class Default:
    """A default in its `form`: the `text` of a number or a text, the `data` of bits and bytes. Of NOW the
    `text` is the number of fractional digits, empty for none."""

    form: Form
    text: str = ""
    data: bytes = b""


NUMBER: Final = re.compile(r"[+-]?[0-9]{1,65}(?:\.[0-9]{1,38})?")
_NOW: Final = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
_DIGITS: Final = re.compile(r"[0-6]?")
_PLAIN: Final = re.compile(r"[^\\]*")  # a backslash begins an escape in some modes, and is itself in others
_BITS: Final = re.compile(r"[01]*")
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")
# Only these letters in lower case begin a number; `0X1f` is a name (manuals: Hexadecimal Literals).
_BARE: Final = re.compile(r"0x([0-9A-Fa-f]+)|0b([01]+)")
# Character sets in which ASCII's bytes are ASCII's characters: what stands behind them in quotes may be any of the
# texts that `filling.py` tells. N is utf8mb3.
_INTRODUCERS: Final = ("N", "_ASCII", "_LATIN1", "_UTF8", "_UTF8MB3", "_UTF8MB4")


def read_default(cursor: Cursor) -> Default:  # noqa: PLR0911
    """The default that comes next, which is read. Raises Untold for an expression without parentheses: it is not known
    where that ends."""
    if cursor.sees("("):
        return _in_parentheses(Cursor(cursor.parenthesis()))
    if cursor.took("NULL"):
        return Default(Form.NULL)
    truth = cursor.took_one("TRUE", "FALSE")
    if truth:
        return Default(Form.NUMBER, str(int(truth == "TRUE")))
    fractional = read_now(cursor)
    if fractional is not None:
        return Default(Form.NOW, fractional)
    if cursor.took_one("X"):
        return Default(Form.BYTES, data=bytes.fromhex(_matched(_HEX, cursor.text())))
    if cursor.took_one("B"):
        return Default(Form.BITS, data=_of_bits(_matched(_BITS, cursor.text())))
    if cursor.took_one(*_INTRODUCERS) or cursor.sees_text:
        return Default(Form.TEXT, _matched(_PLAIN, cursor.text()))
    return _number(cursor)


def _in_parentheses(cursor: Cursor) -> Default:
    """What stands in parentheses is an expression, of which a number, a text and NULL alone are known to give rows what
    they give without them: bytes may be a number there or a text."""
    try:
        found = read_default(cursor)
    except Untold:
        return Default(Form.COMPUTED)
    return found if cursor.ended and found.form in _IN_EXPRESSIONS else Default(Form.COMPUTED)


def read_now(cursor: Cursor) -> str | None:
    """The fractional digits of the time of the statement, if that comes next, which is read then; empty for none, None
    where something else comes. NOW asks for parentheses."""
    if cursor.sees("NOW") and not cursor.sees("NOW", "("):
        return None
    if not cursor.took_one(*_NOW):
        return None
    digits = " ".join(word.text for word in cursor.parenthesis()) if cursor.sees("(") else ""
    return _matched(_DIGITS, digits)


def _number(cursor: Cursor) -> Default:
    sign = cursor.took_one("+", "-")
    first = cursor.word().text
    bare = _BARE.fullmatch(first)
    if bare is not None and not sign:
        digits = bare[1] or ""
        whole = "0" * (len(digits) % 2) + digits
        return Default(Form.BITS, data=bytes.fromhex(whole) if digits else _of_bits(bare[2]))
    text = sign + first
    if first == ".":
        text = f"{sign}0.{cursor.word().text}"
    elif cursor.took("."):
        text += f".{cursor.word().text}"
    return Default(Form.NUMBER, _matched(NUMBER, text))


def _of_bits(bits: str) -> bytes:
    """The bytes of bits, of which the first one may have fewer than eight."""
    return int(bits or "0", 2).to_bytes((len(bits) + 7) // 8, "big")


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise Untold(f"it is not known what the default {text[:20]!r} is")
    return text
