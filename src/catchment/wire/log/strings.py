# cython: compiled
# ruff: noqa: ANN001, ANN201, F821  (names and signatures of strings.pxd)
"""Strings of the log that are more than a copy: other character sets, padding, UUID, INET, COMPRESSED columns.

Text becomes what the server sends to a session in utf8mb4 (DESIGN section 6).
"""

import cython
from cython.cimports.catchment.wire.cells.builders import keep_bytes, put_bytes, reserve_bytes
from cython.cimports.catchment.wire.cells.cursor import big
from cython.cimports.catchment.wire.cells.plans import (
    CELL_BYTES,
    CELL_COMPRESSED,
    CELL_INET4,
    CELL_JSON,
    CELL_PADDED,
    CELL_PAIRS,
    CELL_SINGLE,
    CELL_SWE7,
    CELL_UCS2,
    CELL_UTF8,
    CELL_UTF16,
    CELL_UTF16LE,
    CELL_UTF32,
    CELL_UUID,
    Plan,
)
from cython.cimports.catchment.wire.cells.values import is_ascii, put_utf8
from cython.cimports.catchment.wire.json.text import put_json
from cython.cimports.catchment.wire.log.inflate import INFLATED_MOST, inflated
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy, memset

# Codes of four bytes in GB 18030: charsets.FOURS, charsets.BEYOND.
FOURS = cython.declare(uint32_t, 39_420)
BEYOND = cython.declare(uint32_t, 189_000)
HEX_DIGITS = cython.declare(cython.uchar[16], b"0123456789abcdef")


def put_string(p, c, row, source, n):
    """One cell behind its length, of any kind that is not a plain copy."""
    code: cython.int = p.code
    if code == CELL_JSON:
        return put_json(c, row, source, n)
    if code == CELL_COMPRESSED:
        return put_compressed(p, c, row, source, n)
    return put_plain(p, c, row, source, n, code)


def put_plain(p, c, row, source, n, code):
    """A cell that is not compressed, or no longer."""
    if code == CELL_UTF8:
        return NOT_TEXT if put_utf8(c, row, source, n) else 0
    if code == CELL_BYTES:
        return put_bytes(c, row, source, n)
    if code in (CELL_SINGLE, CELL_SWE7):
        return put_single_byte(p, c, row, source, n, code)
    if code == CELL_PAIRS:
        return put_pairs(p, c, row, source, n)
    if CELL_UCS2 <= code <= CELL_UTF32:
        return put_wide(c, row, source, n, code)
    return put_fixed(p, c, row, source, n, code)


def put_single_byte(p, c, row, source, n, code):
    """Text of a single-byte character set by table; below 128 it is ASCII, but for swe7."""
    if code == CELL_SINGLE and is_ascii(source, n):
        return put_bytes(c, row, source, n)
    out: cython.pointer(uint8_t) = reserve_bytes(c, 3 * n)
    entry: cython.pointer(uint8_t)
    used: int64_t = 0
    i: int64_t
    for i in range(n):
        entry = p.table + 4 * source[i]
        memcpy(out + used, entry + 1, 3)
        used += entry[0]
    keep_bytes(c, row, used)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_point(out: cython.pointer(uint8_t), point: uint32_t) -> cython.int:
    """A code point in UTF-8; the bytes written, 0 for one that has no UTF-8."""
    if point < 0x80:
        out[0] = point
        return 1
    if point < 0x800:
        out[0] = 0xC0 | point >> 6
        out[1] = 0x80 | (point & 63)
        return 2
    if point < 0x10000:
        if 0xD800 <= point < 0xE000:
            return 0
        out[0] = 0xE0 | point >> 12
        out[1] = 0x80 | ((point >> 6) & 63)
        out[2] = 0x80 | (point & 63)
        return 3
    if point > 0x10FFFF:
        return 0
    out[0] = 0xF0 | point >> 18
    out[1] = 0x80 | ((point >> 12) & 63)
    out[2] = 0x80 | ((point >> 6) & 63)
    out[3] = 0x80 | (point & 63)
    return 4


def put_pairs(p, c, row, source, n):
    """Text of one to four bytes a character, by the code points of `p.grid`."""
    if is_ascii(source, n):
        return put_bytes(c, row, source, n)
    out: cython.pointer(uint8_t) = reserve_bytes(c, 3 * n)
    used: int64_t = 0
    i: int64_t = 0
    point: uint32_t
    while i < n:
        if source[i] < 0x80:
            out[used] = source[i]
            used += 1
            i += 1
            continue
        point = p.grid[source[i]]
        if point:
            i += 1
        elif i + 2 < n and p.triples and source[i] == 0x8F:
            point = p.grid[65792 + big(source + i + 1, 2)]
            i += 3
        elif i + 3 < n and p.fours and source[i + 1] < 0x40:
            point = point_of_four(p, source + i)
            i += 4
        elif i + 1 < n:
            point = p.grid[256 + big(source + i, 2)]
            i += 2
        if point == 0:
            return NOT_TEXT
        used += put_point(out + used, point)
    keep_bytes(c, row, used)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def point_of_four(p: cython.pointer(Plan), source: cython.pointer(cython.const[uint8_t])) -> uint32_t:
    """Code point of four bytes of GB 18030 (charsets.four_bytes); `?` without a character, 0 for no code."""
    place: uint32_t
    if not (0x81 <= source[0] <= 0xFE and 0x30 <= source[1] <= 0x39):
        return 0
    if not (0x81 <= source[2] <= 0xFE and 0x30 <= source[3] <= 0x39):
        return 0
    place = (((source[0] - 0x81) * 10 + source[1] - 0x30) * 126 + source[2] - 0x81) * 10 + source[3] - 0x30
    if place < FOURS:
        return p.grid[65792 + place]
    if BEYOND <= place < BEYOND + 0x100000:
        return place - BEYOND + 0x10000
    return 63


def put_wide(c, row, source, n, code):
    """Text in UCS-2, UTF-16 or UTF-32, highest byte first but for utf16le."""
    unit: cython.int = 4 if code == CELL_UTF32 else 2
    if n % unit:
        return NOT_TEXT
    out: cython.pointer(uint8_t) = reserve_bytes(c, 3 * n)
    used: int64_t = 0
    i: int64_t = 0
    point: uint32_t
    low: uint32_t
    size: cython.int
    while i < n:
        point = wide_unit(source + i, code)
        i += unit
        if 0xD800 <= point < 0xDC00 and i < n and CELL_UTF16 <= code <= CELL_UTF16LE:
            low = wide_unit(source + i, code)
            i += unit
            if not 0xDC00 <= low < 0xE000:
                return NOT_TEXT
            point = 0x10000 + ((point & 0x3FF) << 10 | (low & 0x3FF))
        size = put_point(out + used, point)
        if size == 0:
            return NOT_TEXT
        used += size
    keep_bytes(c, row, used)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def wide_unit(source: cython.pointer(cython.const[uint8_t]), code: cython.int) -> uint32_t:
    """The next two bytes, or four in UTF-32, as a number."""
    if code == CELL_UTF16LE:
        return source[0] | source[1] << 8
    return big(source, 4 if code == CELL_UTF32 else 2)


def put_fixed(p, c, row, source, n, code):
    """BINARY(n) and what the log keeps as such: it leaves zero bytes at the end out; 1 when longer."""
    padded: uint8_t[16]
    out: cython.pointer(uint8_t)
    used: cython.int
    if n > p.digits:
        return 1
    if code == CELL_PADDED:
        out = reserve_bytes(c, p.digits)
        memcpy(out, source, n)
        memset(out + n, 0, p.digits - n)
        keep_bytes(c, row, p.digits)
        return 0
    memset(padded, 0, 16)
    memcpy(padded, source, n)
    out = reserve_bytes(c, 48)
    if code == CELL_UUID:
        used = put_uuid(out, padded)
    elif code == CELL_INET4:
        used = put_inet4(out, padded)
    else:
        used = put_inet6(out, padded)
    keep_bytes(c, row, used)
    return 0


@cython.cfunc
@cython.exceptval(check=False)
def put_uuid(out: cython.pointer(uint8_t), value: cython.pointer(uint8_t)) -> cython.int:
    """Thirty-two digits with hyphens behind the eighth, twelfth, sixteenth and twentieth."""
    used: cython.int = 0
    i: cython.int
    for i in range(16):
        if i in (4, 6, 8, 10):
            out[used] = 45
            used += 1
        out[used] = HEX_DIGITS[value[i] >> 4]
        out[used + 1] = HEX_DIGITS[value[i] & 15]
        used += 2
    return used


@cython.cfunc
@cython.exceptval(check=False)
def put_inet4(out: cython.pointer(uint8_t), value: cython.pointer(uint8_t)) -> cython.int:
    """Four numbers with points between them."""
    used: cython.int = 0
    i: cython.int
    for i in range(4):
        if i:
            out[used] = 46
            used += 1
        if value[i] >= 100:
            out[used] = 48 + value[i] // 100
            used += 1
        if value[i] >= 10:
            out[used] = 48 + value[i] // 10 % 10
            used += 1
        out[used] = 48 + value[i] % 10
        used += 1
    return used


@cython.cfunc
@cython.exceptval(check=False)
def put_inet6(out: cython.pointer(uint8_t), value: cython.pointer(uint8_t)) -> cython.int:
    """As MariaDB prints it. `::` is the longest run of zero words, the first of several, even a single one.
    Behind six zero words, or five and ffff, MariaDB prints the rest as an IPv4 address."""
    used: cython.int = 0
    gap: cython.int = -1
    length: cython.int = 0
    run: cython.int = 0
    i: cython.int = 0
    word: uint32_t
    for i in range(8):
        run = run + 1 if big(value + 2 * i, 2) == 0 else 0
        if run > length:
            length = run
            gap = i + 1 - run
    i = 0
    while i < 8:
        if i == gap:
            if i == 0:
                out[used] = 58
                used += 1
            out[used] = 58
            used += 1
            i += length
            continue
        if i == 6 and gap == 0 and (length == 6 or (length == 5 and big(value + 10, 2) == 0xFFFF)):
            return used + put_inet4(out + used, value + 12)
        word = big(value + 2 * i, 2)
        used += put_word(out + used, word)
        if i < 7:
            out[used] = 58
            used += 1
        i += 1
    return used


@cython.cfunc
@cython.exceptval(check=False)
def put_word(out: cython.pointer(uint8_t), word: uint32_t) -> cython.int:
    """A 16-bit number in hexadecimal without zeros before it."""
    used: cython.int = 0
    shift: cython.int = 12
    while shift >= 0:
        if used or word >> shift or shift == 0:
            out[used] = HEX_DIGITS[(word >> shift) & 15]
            used += 1
        shift -= 4
    return used


def put_compressed(p, c, row, source, n):
    """A value of a COMPRESSED column (MariaDB: Field_longstr::uncompress). The first byte is 0 before plain bytes.
    Else it is 0x80 for zlib, plus 8 for a stream without frame, plus how many bytes of length follow, highest first."""
    size: int64_t
    digits: cython.int
    failed: cython.int
    plain: cython.pointer(uint8_t)
    if n == 0:
        return put_plain(p, c, row, source, 0, p.inner)
    if source[0] == 0:
        return put_plain(p, c, row, source + 1, n - 1, p.inner)
    digits = source[0] & 7
    if source[0] >> 4 != 8 or digits == 0 or digits > 4 or 1 + digits > n:
        return 1
    size = big(source + 1, digits)
    source += 1 + digits
    n -= 1 + digits
    if size > n * INFLATED_MOST:
        return 1
    plain = cython.cast(cython.pointer(uint8_t), malloc(size + 1))
    if plain == cython.NULL:
        raise MemoryError
    try:
        if not inflated(source, n, plain, size, (source - 1 - digits)[0] & 8 != 0):
            return 1
        failed = put_plain(p, c, row, plain, size, p.inner)
    finally:
        free(plain)
    return failed
