"""Character sets: which one a collation number means, and how its bytes become UTF-8.

The tables are those of MariaDB 10.11, and of MySQL 8.0 for gb18030; tests ask both servers for every code of
every set. So a string from the log is the string that the server sends to a session with
`character_set_results = utf8mb4`. A code without a character is what the server sends for it, `?` or U+FFFD.
"""

import re
from array import array
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

import msgspec

from catchment.wire.cells.charset_differences import DIFFERENCES

# Sets whose bytes are UTF-8 already.
UTF8: Final = ("utf8mb3", "utf8mb4")

NO_CHARACTER: Final = "\ufffd"  # for bytes that are no text

# Sets of fixed or nearly fixed width, by Python codec. The server knows no surrogate pairs in ucs2: it sends
# each half by itself, which is not UTF-8. So Catchment refuses such a value from the log and from a SELECT alike.
WIDE: Final = {"ucs2": "utf_16_be", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be"}

# Single-byte sets by Python codec; charset_differences.py says where the server differs.
CODECS: Final = {
    "armscii8": "latin_1",
    "ascii": "ascii",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "dec8": "latin_1",
    "geostd8": "latin_1",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "keybcs2": "cp852",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "swe7": "ascii",
    "tis620": "tis_620",
}


class Pairs(msgspec.Struct, frozen=True):
    """A set of one byte below 128 (ASCII) and, above, of codes of several bytes.

    `lone`: bytes above 127 that are characters by themselves. `rows`: the bytes that lead a pair with those
    that may follow. `triples`: whether 0x8F and two bytes from 0xA1 to 0xFE are a code too. `fours`: whether
    codes of four bytes are too, as GB 18030 has them (`four_bytes`).
    """

    codec: str
    rows: tuple[tuple[bytes, bytes], ...]
    lone: bytes = b""
    triples: bool = False
    fours: bool = False


def _bytes(ranges: str) -> bytes:
    """`81-9f e0` as the bytes it means."""
    ends = [part.partition("-") for part in ranges.split()]
    return bytes(b for low, _, high in ends for b in range(int(low, 16), int(high or low, 16) + 1))


_SJIS: Final = ((_bytes("81-9f e0-fc"), _bytes("40-7e 80-fc")),)
_EUC: Final = ((b"\x8e", _bytes("a1-df")), (_bytes("a1-fe"), _bytes("a1-fe")))

PAIRS: Final = {
    "big5": Pairs("big5", ((_bytes("a1-f9"), _bytes("40-7e a1-fe")),)),
    "cp932": Pairs("cp932", _SJIS, lone=_bytes("a1-df")),
    "eucjpms": Pairs("euc_jp", _EUC, triples=True),
    "euckr": Pairs("cp949", ((_bytes("81-fe"), _bytes("41-5a 61-7a 81-fe")),)),
    "gb18030": Pairs("gb18030", ((_bytes("81-fe"), _bytes("40-7e 80-fe")),), fours=True),
    "gb2312": Pairs("gb2312", ((_bytes("a1-f7"), _bytes("a1-fe")),)),
    "gbk": Pairs("gbk", ((_bytes("81-fe"), _bytes("40-7e 80-fe")),)),
    "sjis": Pairs("shift_jis", _SJIS, lone=_bytes("a1-df")),
    "ujis": Pairs("euc_jp", _EUC, triples=True),
}

# GB 18030: the codes of four bytes for characters of the basic plane come first, those of the others begin at
# BEYOND. Codes in between and after them have no character.
FOURS: Final = 39_420
BEYOND: Final = 189_000
_FOUR: Final = re.compile(rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]")
_PLANE: Final = 0x10000
_BEHIND_PLANES: Final = 0x110000

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
    "utf8mb3": "33 76 83 192-223 576-579",
    "utf8mb4": "45-46 224-247 255-323 608-611",
    "gb18030": "248-250",
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
    return charset in UTF8 or charset in CODECS or charset in PAIRS or charset in WIDE


def four_bytes(place: int) -> bytes:
    """The code of four bytes of GB 18030 at a place among them: bytes from 0x81 to 0xFE and digits in turn."""
    rest, fourth = divmod(place, 10)
    rest, third = divmod(rest, 126)
    first, second = divmod(rest, 10)
    return bytes((0x81 + first, 0x30 + second, 0x81 + third, 0x30 + fourth))


def codes(charset: str) -> Iterator[bytes]:
    """Every code of a set in CODECS or PAIRS, in the order of its length, then of its bytes. Of the codes of four
    bytes it gives those in the basic plane only."""
    pairs = PAIRS.get(charset)
    if pairs is None:
        yield from (bytes((byte,)) for byte in range(256))
        return
    yield from (bytes((byte,)) for byte in (*range(128), *pairs.lone))
    yield from sorted(bytes(code) for row in pairs.rows for code in product(*row))
    if pairs.triples:
        followers = range(0xA1, 0xFF)
        yield from (bytes((0x8F, *code)) for code in product(followers, followers))
    if pairs.fours:
        yield from map(four_bytes, range(FOURS))


def python_character(charset: str, code: bytes) -> str:
    """What Python's codec makes of a code; `?` when nothing."""
    pairs = PAIRS.get(charset)
    try:
        return code.decode(CODECS[charset] if pairs is None else pairs.codec)
    except UnicodeDecodeError:
        return "?"


@cache
def characters(charset: str) -> dict[bytes, str]:
    """The character of every code of a set in CODECS or PAIRS; raises KeyError for other sets."""
    if charset not in CODECS and charset not in PAIRS:
        raise KeyError(charset)
    every = list(codes(charset))
    found = {code: python_character(charset, code) for code in every}
    place = {code: i for i, code in enumerate(every)}
    for part in DIFFERENCES.get(charset, "").split():
        start, _, first = part.partition("=")
        code, _, count = start.partition("*")
        at = place[bytes.fromhex(code)]
        for i in range(int(count or 1)):
            found[every[at + i]] = "?" if first == "?" else chr(int(first, 16) + i)
    return found


@cache
def table(charset: str) -> tuple[bytes, ...] | None:
    """UTF-8 of each of the 256 bytes of a single-byte set; None for a set that is UTF-8 already.

    Raises KeyError for a set of another form.
    """
    if charset in UTF8:
        return None
    if charset not in CODECS:
        raise KeyError(charset)
    return tuple(character.encode() for character in characters(charset).values())


@cache
def grid(charset: str) -> bytes:
    """Code points of a set in PAIRS as 16-bit numbers: 256 of lone bytes, then 65536 of pairs. Behind them
    come 65536 of the two bytes behind 0x8F where a set has triples, or FOURS of four bytes. 0 stands where there is no
    code."""
    points = array("H", bytes(2 * (256 + 65536 * (1 + PAIRS[charset].triples))))
    for code, character in characters(charset).items():
        lead, follower = code[-2] if len(code) > 1 else 0, code[-1]
        if len(code) == len(b"four"):
            points.append(ord(character))
        else:
            points[(0, 256, 65792)[len(code) - 1] + (lead << 8 | follower)] = ord(character)
    return points.tobytes()


def decoded(charset: str, raw: bytes, errors: str = "strict") -> str:
    """Text of a carried set. Raises UnicodeDecodeError, or with `errors="replace"` has U+FFFD for each byte that begins
    no character, as servers pass over one."""
    if charset in UTF8:
        return raw.decode(errors=errors)
    if charset in WIDE:
        return raw.decode(WIDE[charset], errors)
    known, at, text = characters(charset), 0, []
    while at < len(raw):
        size = next((n for n in (1, 2, 3, 4) if raw[at : at + n] in known), 0)
        if size == 0 and charset == "gb18030" and _FOUR.match(raw, at):
            text.append(_beyond(raw[at : at + 4]))
            size = 4
        elif size == 0 and errors == "replace":
            text.append(NO_CHARACTER)
            size = 1
        elif size == 0:
            raise UnicodeDecodeError(charset, raw, at, at + 1, "there is no such code")
        else:
            text.append(known[raw[at : at + size]])
        at += size
    return "".join(text)


def _beyond(code: bytes) -> str:
    """The character of a code of four bytes that is not in the basic plane; `?` where there is none."""
    place = (((code[0] - 0x81) * 10 + code[1] - 0x30) * 126 + code[2] - 0x81) * 10 + code[3] - 0x30
    point = place - BEYOND + _PLANE
    return chr(point) if _PLANE <= point < _BEHIND_PLANES else "?"
