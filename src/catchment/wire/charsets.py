"""Character sets: which one a collation number means, and how a single-byte one becomes UTF-8.

The tables are those of MariaDB 10.11 (a test asks a server for every byte of every set), so that a string
from the log is the string that the server sends to a session with `character_set_results = utf8mb4`.
"""

from functools import cache
from typing import Final

# Sets whose bytes are UTF-8 already.
UTF8: Final = ("utf8mb3", "utf8mb4")

# Single-byte sets by Python codec. Where MariaDB differs from the codec, OVERRIDES says how.
CODECS: Final = {
    "ascii": "ascii",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "tis620": "tis_620",
}

OVERRIDES: Final[dict[str, dict[int, str]]] = {
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), "?"),
    "cp866": {0xFC: "\u207f", 0xFD: "\u00b2"},
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: "?", 0xA5: "?", 0xAA: "?"},
    "hebrew": {0xAF: "\u203e"},
    "koi8u": {0x95: "\u2022"},
    "latin1": {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},
}

# Collation numbers below 1024 (information_schema.COLLATIONS); 1024 + n is the NO PAD twin of n.
_NUMBERS: Final = {
    "ascii": "11 65",
    "big5": "1 84",
    "binary": "63",
    "cp1250": "26 34 44 66 99",
    "cp1251": "14 23 50-52",
    "cp1256": "57 67",
    "cp1257": "29 58-59",
    "cp850": "4 80",
    "cp852": "40 81",
    "cp866": "36 68",
    "cp932": "95-96",
    "dec8": "3 69",
    "armscii8": "32 64",
    "eucjpms": "97-98",
    "euckr": "19 85",
    "gb2312": "24 86",
    "gbk": "28 87",
    "geostd8": "92-93",
    "greek": "25 70",
    "hebrew": "16 71",
    "hp8": "6 72",
    "keybcs2": "37 73",
    "koi8r": "7 74",
    "koi8u": "22 75",
    "latin1": "5 8 15 31 47-49 94",
    "latin2": "2 9 21 27 77",
    "latin5": "30 78",
    "latin7": "20 41-42 79",
    "macce": "38 43",
    "macroman": "39 53",
    "sjis": "13 88",
    "swe7": "10 82",
    "tis620": "18 89",
    "ucs2": "35 90 128-159 640-642",
    "ujis": "12 91",
    "utf16": "54-55 101-124 672-674",
    "utf16le": "56 62",
    "utf32": "60-61 160-183 736-738",
    "utf8mb3": "33 76 83 192-223 576-578",
    "utf8mb4": "45-46 224-247 608-610",
}
_UCA1400: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")  # 256 numbers each, from 2048


def _expand(ranges: str) -> list[int]:
    numbers: list[int] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


_CHARSET: Final = {number: name for name, ranges in _NUMBERS.items() for number in _expand(ranges)}


def of_collation(number: int) -> str:
    """Name of the character set of a collation number; `collation N` for a number that is not known."""
    if 2048 <= number < 2048 + 256 * len(_UCA1400):
        return _UCA1400[(number - 2048) >> 8]
    plain = number - 1024 if 1024 <= number < 2048 else number
    return _CHARSET.get(plain, f"collation {number}")


def carried(charset: str) -> bool:
    """Whether values of the character set can be carried as UTF-8 exactly as the server converts them."""
    return charset in UTF8 or charset in CODECS


@cache
def table(charset: str) -> tuple[bytes, ...] | None:
    """UTF-8 of each of the 256 bytes of a single-byte set; None for a set that is UTF-8 already.

    Raises KeyError when the set is not carried. A byte without a character is what the server sends for it:
    `?`, or U+FFFD in tis620.
    """
    if charset in UTF8:
        return None
    blank = "\ufffd" if charset == "tis620" else "?"
    special = OVERRIDES.get(charset, {})
    codec = CODECS[charset]

    def character(byte: int) -> str:
        decoded = bytes((byte,)).decode(codec, "replace")
        return special.get(byte, blank if decoded == "\ufffd" else decoded)

    return tuple(character(byte).encode() for byte in range(256))
