"""Which names of savepoints are one name to the server that wrote a log.

Servers compare them as system names: MySQL and MariaDB by utf8mb3_general_ci, where é is E, MariaDB from 11.5 on by
utf8mb3_general1400_as_ci, where only case does not matter (seen on MariaDB 10.11 and 11.8, MySQL 8.0 and 9.7).
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

# Of utf8mb3_general_ci: it has the letters of Unicode 3.0, of which only those with case lose their marks. These do
# neither, and the others are as those beside them (seen on all characters).
_AS_THEY_ARE: Final = {
    0x19E, 0x3D9, 0x3F5, 0x419, 0x48B, 0x4C6, 0x4CA, 0x4CE, *range(0x501, 0x511, 2), 0x1FBB, 0x1FC9, 0x1FCB,
    0x1FD3, 0x1FDB, 0x1FE3, 0x1FEB, 0x1FF9, 0x1FFB, 0x2126, 0x212A, 0x212B,
}  # fmt: skip
_AS_OTHERS: Final = {
    0xDF: 0x53, 0x3D3: 0x3D2, 0x3D4: 0x3D2, 0x3F2: 0x3A3, 0x439: 0x419, 0x1F71: 0x1FBB, 0x1F73: 0x1FC9,
    0x1F75: 0x1FCB, 0x1F77: 0x1FDB, 0x1F79: 0x1FF9, 0x1F7B: 0x1FEB, 0x1F7D: 0x1FFB,
}  # fmt: skip
_UNICODE_3: Final = unicodedata.ucd_3_2_0
_VERSION: Final = re.compile(rb"(\d{1,3})\.(\d{1,3})\.")
_MARKS_COUNT_FROM: Final = (11, 5)


def names_of(version: bytes, *, mysql: bool) -> Callable[[str], str]:
    """What makes two names the same text where they are one to a server. `version`: as its format event has it."""
    found = _VERSION.match(version)
    if mysql or found is None or (int(found[1]), int(found[2])) < _MARKS_COUNT_FROM:
        return without_case_and_marks
    return without_case


def without_case_and_marks(name: str) -> str:
    """Names that are one by utf8mb3_general_ci become the same."""
    return name.upper() if name.isascii() else "".join(map(_general_ci, name))


def without_case(name: str) -> str:
    """Names that are one by utf8mb3_general1400_as_ci become the same."""
    return name.upper() if name.isascii() else "".join(map(_upper, name))


def _general_ci(letter: str) -> str:
    code = ord(letter)
    if code in _AS_OTHERS:
        return chr(_AS_OTHERS[code])
    if code in _AS_THEY_ARE or _UNICODE_3.category(letter) == "Cn":
        return letter
    base = _UNICODE_3.normalize("NFD", letter)[0]
    upper = _upper(base if base.upper() != base.lower() else letter)
    return letter if _UNICODE_3.category(upper) == "Cn" else upper


def _upper(letter: str) -> str:
    # Some have several letters in upper case, and one in title case: ᾅ has ᾍ.
    return next((one for one in (letter.upper(), letter.title()) if len(one) == 1), letter)
