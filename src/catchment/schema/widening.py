"""Which definitions of a column hold every value that another one holds, as the same value.

A list of what is known; the server is its judge (test_redeclared_judged.py). Pure.
"""

import re
from typing import Final

from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, ColumnType, Kind

BITS: Final = {
    Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.MEDIUMINT: 24, Kind.INT: 32, Kind.BIGINT: 64,
}  # fmt: skip
_FRACTIONAL: Final = (Kind.TIME, Kind.DATETIME)
# Kinds of which a type of the same description has the same values. (MySQL 8.0 brings a TIMESTAMP of more digits
# through the session's time zone: values of the hour that comes twice became one.)
_SAME: Final = (
    Kind.TIMESTAMP, Kind.FLOAT, Kind.DOUBLE, Kind.BIT, Kind.YEAR, Kind.DATE, Kind.BINARY, Kind.BLOB, Kind.JSON,
    Kind.UUID, Kind.INET4, Kind.INET6,
)  # fmt: skip
_WIDER_CHARSET: Final = ("utf8mb3", "utf8mb4")
_SIZED: Final = re.compile(r"(char|varchar|varbinary)\(([0-9]{1,10})\)")
_BYTES: Final = {
    f"{size}{family}": (1 << bits) - 1
    for family in ("text", "blob")
    for size, bits in (("tiny", 8), ("", 16), ("medium", 24), ("long", 32))
}
# The type of large values for what a short one is declared as, and the bytes of a character at most.
_LARGE: Final = {"varchar": ("text", 4), "varbinary": ("blob", 1)}


def has_length(kind: ColumnType) -> bool:
    """Whether a type leaves open how long its values may be."""
    return kind.kind in (Kind.TEXT, Kind.BLOB)


def holds_type(new: ColumnType, old: ColumnType) -> bool:
    """Whether a column that becomes `new` has the values that it had as `old`, as far as a type tells it."""
    if new.kind in INTEGERS and old.kind in INTEGERS:
        return _holds_integers(new, old)
    if new.kind is not old.kind:
        return False
    if new.kind is Kind.DECIMAL:
        return _holds_decimals(new, old)
    if new.kind in _FRACTIONAL:
        return new.scale >= old.scale
    if new.kind in (Kind.TEXT, Kind.ENUM, Kind.SET):
        charset = new.charset == old.charset or (old.charset, new.charset) == _WIDER_CHARSET
        return charset and new.labels[: len(old.labels)] == old.labels
    return new.kind in _SAME and new == old


def holds_length(new: str, old: str) -> bool:
    """Whether a column of texts or bytes that is declared as `new` holds all of one that was as `old`."""
    to, size = _sized(new)
    was, before = _sized(old)
    if to == was:
        return size >= before
    if to in _BYTES and was in _BYTES:
        return to.endswith("text") == was.endswith("text") and size >= before
    family, width = _LARGE.get(was, ("none", 0))
    return to in _BYTES and to.endswith(family) and size >= before * width


def _sized(declared: str) -> tuple[str, int]:
    """The name of a type and how much it holds, in characters or bytes; -1 for one that is not known."""
    found = _SIZED.fullmatch(declared)
    if found is not None:
        return found[1], int(found[2])
    return declared, _BYTES.get(declared, -1)


def _holds_integers(new: ColumnType, old: ColumnType) -> bool:
    if new.unsigned == old.unsigned:
        return BITS[new.kind] >= BITS[old.kind]
    return old.unsigned and BITS[new.kind] > BITS[old.kind]


def _holds_decimals(new: ColumnType, old: ColumnType) -> bool:
    if new == old:
        return True
    digits = new.length - new.scale >= old.length - old.scale and new.scale >= old.scale
    return digits and new.length <= DECIMAL_DIGITS_MAX and (new.unsigned == old.unsigned or old.unsigned)
