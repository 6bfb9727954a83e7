# cython: compiled
# ruff: noqa: ANN001, ANN201, F821  (names and signatures of scalars.pxd)
"""Scalars of MySQL's binary JSON that are more than a number: strings, doubles, and values of SQL types."""

import cython
from cython.cimports.catchment.wire.cells.cursor import little
from cython.cimports.catchment.wire.cells.packed import decimal_size, decimal_text
from cython.cimports.catchment.wire.cells.plans import Plan
from cython.cimports.catchment.wire.cells.values import is_utf8
from cython.cimports.catchment.wire.json.buffer import Text, write, write_bytes, write_number
from cython.cimports.catchment.wire.json.shortest import PyMem_Free, PyOS_double_to_string
from cython.cimports.libc.math import isfinite
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t
from cython.cimports.libc.string import memcpy, memset

HEX = cython.declare(cython.p_char, b"0123456789abcdef")
BASE64 = cython.declare(cython.p_char, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
ZEROS = cython.declare(cython.p_char, b"000000000000000")
POINT_MAX = cython.declare(cython.int, 15)  # DBL_DIG: larger and smaller numbers have an exponent

# Field types of values that have a text of their own (MySQL: enum_field_types).
TYPE_TIMESTAMP = cython.declare(cython.int, 7)
TYPE_DATE = cython.declare(cython.int, 10)
TYPE_TIME = cython.declare(cython.int, 11)
TYPE_DATETIME = cython.declare(cython.int, 12)
TYPE_NEWDECIMAL = cython.declare(cython.int, 246)


@cython.cfunc
@cython.exceptval(-1)
def write_escaped(t: cython.pointer(Text), byte: uint8_t) -> cython.int:
    """A character that cannot stand in a string as it is."""
    out: cython.char[6]
    out[0] = 92
    out[1] = byte
    if byte == 8:
        out[1] = 98
    elif byte == 9:
        out[1] = 116
    elif byte == 10:
        out[1] = 110
    elif byte == 12:
        out[1] = 102
    elif byte == 13:
        out[1] = 114
    elif byte < 32:
        out[1] = 117
        out[2] = 48
        out[3] = 48
        out[4] = HEX[byte >> 4]
        out[5] = HEX[byte & 15]
        return write(t, out, 6)
    return write(t, out, 2)


def write_string(t, source, n):
    """A string in quotes; 1 when it is not UTF-8."""
    i: int64_t
    plain: int64_t = 0
    if not is_utf8(source, n):
        return 1
    write(t, b'"', 1)
    for i in range(n):
        if source[i] < 32 or source[i] == 34 or source[i] == 92:
            write_bytes(t, source + plain, i - plain)
            write_escaped(t, source[i])
            plain = i + 1
    write_bytes(t, source + plain, n - plain)
    return write(t, b'"', 1)


def write_double(t, source):
    """A double as MySQL prints it (my_gcvt in strings/dtoa.cc): the fewest digits that give the same number."""
    value: cython.double
    digits: cython.char[32]
    count: cython.int = 0
    point: cython.int = 0
    exponent: cython.int
    text: cython.p_char
    at: cython.p_char
    memcpy(cython.address(value), source, 8)
    if not isfinite(value):
        return 1
    text = PyOS_double_to_string(value, 114, 0, 0, cython.NULL)
    if text == cython.NULL:
        raise MemoryError
    at = text
    if at[0] == 45:
        write(t, b"-", 1)
        at += 1
    # Python gives ddd.ddd or d.ddde-xx; its digits without zeros around them and where the point stands.
    behind: cython.bint = False
    while at[0] and at[0] != 101:
        if at[0] == 46:
            behind = True
        elif count or at[0] != 48:
            digits[count] = at[0]
            count += 1
            point += not behind
        elif behind:
            point -= 1
        at += 1
    if at[0]:
        exponent = exponent_of(at + 1)
        point += exponent
    PyMem_Free(text)
    while count and digits[count - 1] == 48:
        count -= 1
    if count == 0:
        return write(t, b"0.0", 3)
    if point > -POINT_MAX and (point <= POINT_MAX or count > point):
        return write_plain(t, digits, count, point)
    return write_scientific(t, digits, count, point - 1)


@cython.cfunc
@cython.exceptval(check=False)
def exponent_of(at: cython.p_char) -> cython.int:
    """A sign and decimal digits, up to the end of the string."""
    value: cython.int = 0
    negative: cython.bint = at[0] == 45
    at += 1
    while at[0]:
        value = value * 10 + at[0] - 48
        at += 1
    return -value if negative else value


@cython.cfunc
@cython.exceptval(-1)
def write_plain(
    t: cython.pointer(Text), digits: cython.p_char, count: cython.int, point: cython.int
) -> cython.int:
    """`0.000ddd`, `dd.dd` or `ddd000.0`: a JSON double always shows that it is one."""
    if point <= 0:
        write(t, b"0.", 2)
        write(t, ZEROS, -point)
        return write(t, digits, count)
    if point < count:
        write(t, digits, point)
        write(t, b".", 1)
        return write(t, digits + point, count - point)
    write(t, digits, count)
    write(t, ZEROS, point - count)
    return write(t, b".0", 2)


@cython.cfunc
@cython.exceptval(-1)
def write_scientific(
    t: cython.pointer(Text), digits: cython.p_char, count: cython.int, exponent: cython.int
) -> cython.int:
    """`d.ddde-5`, without plus and leading zeros in the exponent."""
    write(t, digits, 1)
    if count > 1:
        write(t, b".", 1)
        write(t, digits + 1, count - 1)
    write(t, b"e", 1)
    return write_number(t, -exponent if exponent < 0 else exponent, exponent < 0, 1)


def write_opaque(t, kind, source, n):
    """A value of an SQL type: number, date and time as text, all others in base64 with their type."""
    if kind == TYPE_NEWDECIMAL:
        return write_decimal(t, source, n)
    if kind in (TYPE_TIME, TYPE_DATE, TYPE_DATETIME, TYPE_TIMESTAMP):
        if n != 8:
            return 1
        write(t, b'"', 1)
        if write_moment(t, kind, cython.cast(int64_t, little(source, 8))):
            return 1
        return write(t, b'"', 1)
    write(t, b'"base64:type', 12)
    write_number(t, kind, False, 1)
    write(t, b":", 1)
    write_base64(t, source, n)
    return write(t, b'"', 1)


@cython.cfunc
@cython.exceptval(-1)
def write_decimal(
    t: cython.pointer(Text), source: cython.pointer(cython.const[uint8_t]), n: int64_t
) -> cython.int:
    """A DECIMAL: digits, digits after the point, packed digits."""
    p: Plan
    text: uint8_t[80]
    start: cython.int = 0
    size: cython.int
    memset(cython.address(p), 0, cython.sizeof(Plan))
    if n < 3 or source[0] > 65 or source[1] > 30 or source[1] > source[0] or source[0] == 0:
        return 1
    p.digits = source[0] - source[1]
    p.scale = source[1]
    p.size = decimal_size(p.digits) + decimal_size(p.scale)
    if n != p.size + 2:
        return 1
    size = decimal_text(
        cython.address(p), cython.cast(cython.pointer(uint8_t), source + 2), text, cython.address(start)
    )
    if size < 0:
        return 1
    return write_bytes(t, text + start, size)


@cython.cfunc
@cython.exceptval(-1)
def write_moment(t: cython.pointer(Text), kind: cython.int, packed: int64_t) -> cython.int:
    """DATE, TIME, DATETIME or TIMESTAMP: date, 5, 6 and 6 bits of time, and 24 of microseconds."""
    negative: cython.bint = packed < 0
    value: uint64_t = -cython.cast(uint64_t, packed) if negative else packed
    micros: uint64_t = value & 0xFFFFFF
    clock: uint64_t = (value >> 24) & 0x1FFFF
    date: uint64_t = value >> 41
    months: uint64_t = date >> 5
    hours: uint64_t = clock >> 12
    if micros > 999999 or ((clock >> 6) & 63) > 59 or (clock & 63) > 59:
        return 1
    if kind == TYPE_TIME:
        hours = value >> 36
        if hours > 838:
            return 1
        if negative:
            write(t, b"-", 1)
    else:
        if negative or months // 13 > 9999 or hours > 23:
            return 1
        write_number(t, months // 13, False, 4)
        write(t, b"-", 1)
        write_number(t, months % 13, False, 2)
        write(t, b"-", 1)
        write_number(t, date & 31, False, 2)
        if kind == TYPE_DATE:
            return 0
        write(t, b" ", 1)
    write_number(t, hours, False, 2)
    write(t, b":", 1)
    write_number(t, (clock >> 6) & 63, False, 2)
    write(t, b":", 1)
    write_number(t, clock & 63, False, 2)
    write(t, b".", 1)
    return write_number(t, micros, False, 6)


@cython.cfunc
@cython.exceptval(-1)
def write_base64(
    t: cython.pointer(Text), source: cython.pointer(cython.const[uint8_t]), n: int64_t
) -> cython.int:
    """The bytes in base64, in lines of 76 characters as the server makes them; a line's end is escaped."""
    out: cython.char[4]
    i: int64_t = 0
    bits: cython.uint
    while i < n:
        if i and i % 57 == 0:
            write(t, b"\\n", 2)
        bits = source[i] << 16
        if i + 1 < n:
            bits |= source[i + 1] << 8
        if i + 2 < n:
            bits |= source[i + 2]
        out[0] = BASE64[bits >> 18]
        out[1] = BASE64[(bits >> 12) & 63]
        out[2] = BASE64[(bits >> 6) & 63] if i + 1 < n else 61
        out[3] = BASE64[bits & 63] if i + 2 < n else 61
        write(t, out, 4)
        i += 3
    return 0
