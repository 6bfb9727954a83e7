# cython: compiled
# ruff: noqa: ANN001, ANN201, F821  (names and signatures of packed.pxd)
"""Cells that need more than a copy: packed decimals, temporal values, labels of ENUM and SET."""

import cython
from cython.cimports.catchment.wire.cells.builders import (
    keep_bytes,
    put_bytes,
    put_i64,
    put_i128,
    put_null,
    reserve_bytes,
)
from cython.cimports.catchment.wire.cells.cursor import big, little
from cython.cimports.catchment.wire.cells.plans import Plan
from cython.cimports.catchment.wire.cells.values import DAY_US, NO_DATE, date_days, uint128
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy

DIGIT_BYTES = cython.declare(cython.int[10], [0, 1, 1, 2, 2, 3, 3, 4, 4, 4])
POWERS = cython.declare(
    uint32_t[10], [1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000]
)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def digit_group(source: cython.pointer(uint8_t), digits: cython.int, mask: uint8_t) -> int64_t:
    """Up to nine packed decimal digits; -1 when the bytes hold more than that many digits."""
    value: uint32_t = 0
    i: cython.int
    for i in range(DIGIT_BYTES[digits]):
        value = value << 8 | (source[i] ^ mask)
    return value if value < POWERS[digits] else -1


@cython.cfunc
@cython.exceptval(check=False)
def decimal_groups(
    source: cython.pointer(uint8_t), p: cython.pointer(Plan), groups: cython.pointer(int64_t)
) -> cython.int:
    """Split a packed DECIMAL (MySQL: strings/decimal.c) into its digit groups; -1 when malformed.

    The groups are those of the digits before the point, short one first, then those behind it, short one
    last. Returns 1 for a negative number, else 0. `groups` has room for 18.
    """
    first: uint8_t = source[0] ^ 0x80
    mask: uint8_t = 0 if source[0] & 0x80 else 0xFF
    packed: uint8_t[32]
    digits: cython.int
    width: cython.int
    at: cython.int = 0
    n: cython.int = 0
    memcpy(packed, source, p.size)
    packed[0] = first
    digits = p.digits % 9
    rest: cython.int = p.digits + p.scale
    behind: cython.bint = False
    before: cython.int = p.digits
    while rest:
        if before == 0:
            behind = True
        if behind:
            width = min(rest, 9)
        else:
            width = digits if digits else 9
            digits = 0
            before -= width
        groups[n] = digit_group(cython.address(packed[at]), width, mask)
        if groups[n] < 0:
            return -1
        at += DIGIT_BYTES[width]
        rest -= width
        n += 1
    return 1 if mask else 0


def put_decimal(p, c, row, source):
    """A DECIMAL of up to 38 digits as a 128-bit number; 1 when malformed."""
    groups: int64_t[18]
    value: uint128 = 0
    n: cython.int = 0
    width: cython.int
    digits: cython.int = p.digits
    scale: cython.int = p.scale
    negative: cython.int = decimal_groups(source, p, groups)
    if negative < 0:
        return 1
    while digits:
        width = digits % 9 if digits % 9 else 9
        value = value * POWERS[width] + cython.cast(uint64_t, groups[n])
        digits -= width
        n += 1
    while scale:
        width = min(scale, 9)
        value = value * POWERS[width] + cython.cast(uint64_t, groups[n])
        scale -= width
        n += 1
    if negative:
        value = -value
    put_i128(c, row, cython.cast(uint64_t, value), cython.cast(int64_t, value >> 64))
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def write_digits(out: cython.pointer(uint8_t), value: uint32_t, width: cython.int) -> cython.void:
    """`value` in exactly `width` decimal digits."""
    while width:
        width -= 1
        out[width] = 48 + value % 10
        value //= 10


def decimal_text(p, source, text, first):
    """A packed DECIMAL as the text that the server gives for it, from `text[first]` on.

    Returns the length of the text, -1 when malformed. `text` has room for 80 bytes.
    """
    groups: int64_t[18]
    at: cython.int = 1
    n: cython.int = 0
    width: cython.int
    digits: cython.int = p.digits
    scale: cython.int = p.scale
    negative: cython.int = decimal_groups(source, p, groups)
    if negative < 0:
        return -1
    text[1] = 48
    while digits:
        width = digits % 9 if digits % 9 else 9
        write_digits(text + at, groups[n], width)
        at += width
        digits -= width
        n += 1
    start: cython.int = 1
    if at == 1:
        at = 2
    while start < at - 1 and text[start] == 48:
        start += 1
    if scale:
        text[at] = 46
        at += 1
    while scale:
        width = min(scale, 9)
        write_digits(text + at, groups[n], width)
        at += width
        scale -= width
        n += 1
    if negative:
        start -= 1
        text[start] = 45
    first[0] = start
    return at - start


def put_long_decimal(p, c, row, source):
    """A DECIMAL of more than 38 digits as text; 1 when malformed."""
    text: uint8_t[80]
    first: cython.int = 0
    size: cython.int = decimal_text(p, source, text, cython.address(first))
    return 1 if size < 0 else put_bytes(c, row, cython.address(text[first]), size)


def decimal_size(digits):
    """Bytes of that many packed digits on one side of the point."""
    return digits // 9 * 4 + DIGIT_BYTES[digits % 9]


@cython.cfunc
@cython.exceptval(check=False)
def microseconds(source: cython.pointer(uint8_t), scale: cython.int) -> int64_t:
    """The fraction of TIMESTAMP and DATETIME: two digits a byte, big-endian; -1 when malformed."""
    if scale == 0:
        return 0
    if scale <= 2:
        return source[0] * 10000 if source[0] < 100 else -1
    if scale <= 4:
        return cython.cast(int64_t, big(source, 2)) * 100 if big(source, 2) < 10000 else -1
    return big(source, 3) if big(source, 3) < 1000000 else -1


def put_time(p, c, row, source):
    """TIME: hours, minutes, seconds in 10, 6 and 6 bits and the fraction, less a half; 1 when malformed."""
    value: int64_t = cython.cast(int64_t, big(source, p.size)) - (cython.cast(int64_t, 1) << (8 * p.size - 1))
    negative: cython.bint = value < 0
    fraction: int64_t = 0
    if negative:
        value = -value
    if p.size > 3:
        fraction = value & ((cython.cast(int64_t, 1) << (8 * (p.size - 3))) - 1)
        value >>= 8 * (p.size - 3)
        if p.size == 4:
            fraction *= 10000
        elif p.size == 5:
            fraction *= 100
    if (value >> 12) > 838 or ((value >> 6) & 63) > 59 or (value & 63) > 59 or fraction > 999999:
        return 1
    value = ((value >> 12) * 3600 + ((value >> 6) & 63) * 60 + (value & 63)) * 1000000 + fraction
    put_i64(c, row, -value if negative else value)
    return 0


def put_datetime(p, c, row, source):
    """DATETIME: year*13+month, day, hour, minute, second in 17, 5, 5, 6, 6 bits; 1 when malformed."""
    value: int64_t = cython.cast(int64_t, big(source, 5)) - (cython.cast(int64_t, 1) << 39)
    fraction: int64_t = microseconds(source + 5, p.scale)
    if value < 0 or fraction < 0:
        return 1
    months: cython.int = value >> 22
    hour: int64_t = (value >> 12) & 31
    minute: int64_t = (value >> 6) & 63
    second: int64_t = value & 63
    if hour > 23 or minute > 59 or second > 59:
        return 1
    days: int32_t = date_days(months // 13, months % 13, (value >> 17) & 31)
    if days == NO_DATE:
        put_null(c, row)
    else:
        value = (
            days * cython.cast(int64_t, DAY_US) + ((hour * 60 + minute) * 60 + second) * 1000000 + fraction
        )
        put_i64(c, row, value)
    return 0


def put_timestamp(p, c, row, source):
    """TIMESTAMP: seconds since 1970 big-endian, and the fraction; 0 is the zero date; 1 when malformed."""
    seconds: int64_t = big(source, 4)
    fraction: int64_t = microseconds(source + 4, p.scale)
    if fraction < 0:
        return 1
    if seconds == 0 and fraction == 0:
        put_null(c, row)
    else:
        put_i64(c, row, seconds * 1000000 + fraction)
    return 0


def put_label(p, c, row, source):
    """The label of an ENUM; 1 when there is no such label."""
    index: uint64_t = little(source, p.size)
    start: int32_t
    if index > cython.cast(uint64_t, p.digits):
        return 1
    start = p.ends[index - 1] if index else 0
    return put_bytes(c, row, p.table + start, p.ends[index] - start)


def put_labels(p, c, row, source):
    """The labels of a SET joined by commas; 1 when a bit stands for no label."""
    bits: uint64_t = little(source, p.size)
    out: cython.pointer(uint8_t)
    n: int64_t = 0
    i: cython.int
    size: int32_t
    if p.digits < 64 and bits >> p.digits:
        return 1
    out = reserve_bytes(c, p.ends[p.digits] + p.digits)
    for i in range(min(p.digits, 64)):
        if not (bits >> i) & 1:
            continue
        if n:
            out[n] = 44
            n += 1
        size = p.ends[i + 1] - p.ends[i]
        memcpy(out + n, p.table + p.ends[i], size)
        n += size
    keep_bytes(c, row, n)
    return 0
