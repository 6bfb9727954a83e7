# cython: compiled
# ruff: noqa: ANN001, ANN201, F821  (names and signatures of rows.pxd)
"""Row events: the images of rows, cell by cell, into the builders of their table."""

import cython
from cython.cimports.catchment.wire.builders import (
    Cells,
    ColumnBuilders,
    end_row,
    keep_bytes,
    put_bytes,
    put_i8,
    put_i16,
    put_i32,
    put_i64,
    put_i128,
    put_null,
    put_raw,
    reserve_bytes,
    start_row,
)
from cython.cimports.catchment.wire.cursor import Cursor, big, claim, left, little, read_lenenc, read_little
from cython.cimports.catchment.wire.tablemap import (
    CELL_BIT,
    CELL_BIT64,
    CELL_DATE,
    CELL_DATETIME,
    CELL_DECIMAL,
    CELL_ENUM,
    CELL_I16,
    CELL_I24,
    CELL_I32,
    CELL_I64,
    CELL_I8,
    CELL_LONG_DECIMAL,
    CELL_PADDED,
    CELL_RAW,
    CELL_SINGLE,
    CELL_TIME,
    CELL_TIMESTAMP,
    CELL_U16,
    CELL_U24,
    CELL_U32,
    CELL_U64,
    CELL_U8,
    CELL_UTF8,
    CELL_YEAR,
    LAST_FIXED,
    Plan,
    Span,
    TableMap,
)
from cython.cimports.catchment.wire.values import DAY_US, NO_DATE, date_days, is_ascii, is_utf8, uint128
from cython.cimports.libc.stdint import int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcmp, memcpy, memset

from catchment.model.errors import Unsupported

SIDE_BEFORE = cython.declare(cython.int, 0)
SIDE_AFTER = cython.declare(cython.int, 1)
NOT_UTF8 = cython.declare(cython.int, 2)

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


@cython.cfunc
@cython.exceptval(check=False)
def put_decimal(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t)
) -> cython.int:
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
def write_digits(out: cython.pointer(uint8_t), value: int64_t, width: cython.int) -> cython.void:
    """`value` in exactly `width` decimal digits."""
    while width:
        width -= 1
        out[width] = 48 + value % 10
        value //= 10


@cython.cfunc
@cython.exceptval(-1)
def put_long_decimal(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t)
) -> cython.int:
    """A DECIMAL of more than 38 digits as the text that the server gives for it; 1 when malformed."""
    groups: int64_t[18]
    text: uint8_t[80]
    at: cython.int = 1
    n: cython.int = 0
    width: cython.int
    digits: cython.int = p.digits
    scale: cython.int = p.scale
    negative: cython.int = decimal_groups(source, p, groups)
    if negative < 0:
        return 1
    text[1] = 48
    while digits:
        width = digits % 9 if digits % 9 else 9
        write_digits(cython.address(text[at]), groups[n], width)
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
        write_digits(cython.address(text[at]), groups[n], width)
        at += width
        scale -= width
        n += 1
    if negative:
        start -= 1
        text[start] = 45
    return put_bytes(c, row, cython.address(text[start]), at - start)


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


@cython.cfunc
@cython.exceptval(check=False)
def put_time(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t)
) -> cython.int:
    """TIME: hours, minutes, seconds in 10, 6 and 6 bits and the fraction, offset by half; 1 when malformed."""
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


@cython.cfunc
@cython.exceptval(check=False)
def put_datetime(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t)
) -> cython.int:
    """DATETIME: year*13+month, day, hour, minute, second in 17, 5, 5, 6, 6 bits; 1 when malformed."""
    value: int64_t = cython.cast(int64_t, big(source, 5)) - 0x8000000000
    fraction: int64_t = microseconds(source + 5, p.scale)
    if value < 0 or fraction < 0:
        return 1
    months: int64_t = value >> 22
    hour: int64_t = (value >> 12) & 31
    minute: int64_t = (value >> 6) & 63
    second: int64_t = value & 63
    if hour > 23 or minute > 59 or second > 59:
        return 1
    days: int32_t = date_days(months // 13, months % 13, (value >> 17) & 31)
    if days == NO_DATE:
        put_null(c, row)
    else:
        value = days * cython.cast(int64_t, DAY_US) + ((hour * 60 + minute) * 60 + second) * 1000000 + fraction
        put_i64(c, row, value)
    return 0


@cython.cfunc
@cython.exceptval(check=False)
def put_timestamp(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t)
) -> cython.int:
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


@cython.cfunc
@cython.exceptval(-1)
def put_label(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t)
) -> cython.int:
    """The label of an ENUM; 1 when there is no such label."""
    index: uint64_t = little(source, p.size)
    start: int32_t
    if index > cython.cast(uint64_t, p.digits):
        return 1
    start = p.ends[index - 1] if index else 0
    return put_bytes(c, row, p.table + start, p.ends[index] - start)


@cython.cfunc
@cython.exceptval(-1)
def put_labels(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t)
) -> cython.int:
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


@cython.cfunc
@cython.exceptval(-1)
def put_single_byte(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t), n: int64_t
) -> cython.int:
    """Text of a single-byte character set; all sets carried agree with ASCII below 128, the rest goes by table."""
    if is_ascii(source, n):
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
@cython.exceptval(-1)
def put_padded(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(uint8_t), n: int64_t
) -> cython.int:
    """BINARY(n): the log leaves zero bytes at the end out; 1 when longer than declared."""
    if n > p.digits:
        return 1
    out: cython.pointer(uint8_t) = reserve_bytes(c, p.digits)
    memcpy(out, source, n)
    memset(out + n, 0, p.digits - n)
    keep_bytes(c, row, p.digits)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def read_string(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(Cursor)
) -> cython.int:
    """A cell with its length in front; 1 when malformed, NOT_UTF8 for such a text."""
    n: int64_t = read_little(source, p.size)
    start: cython.pointer(cython.const[uint8_t]) = claim(source, n)
    if source.missing:
        return 1
    if p.code == CELL_SINGLE:
        return put_single_byte(p, c, row, cython.cast(cython.pointer(uint8_t), start), n)
    if p.code == CELL_PADDED:
        return put_padded(p, c, row, cython.cast(cython.pointer(uint8_t), start), n)
    if p.code == CELL_UTF8 and not is_utf8(start, n):
        return NOT_UTF8
    return put_bytes(c, row, start, n)


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def read_cell(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(Cursor)
) -> cython.int:
    """One cell that is not NULL; 1 when malformed, NOT_UTF8 for such a text."""
    code: cython.int = p.code
    s: cython.pointer(uint8_t)
    days: int32_t
    if code > LAST_FIXED:
        return read_string(p, c, row, source)
    s = cython.cast(cython.pointer(uint8_t), claim(source, p.size))
    if s == cython.NULL:
        return 1
    if code == CELL_I8:
        put_i8(c, row, cython.cast(int8_t, s[0]))
    elif code == CELL_U8:
        put_i16(c, row, s[0])
    elif code == CELL_I16:
        put_i16(c, row, cython.cast(int16_t, little(s, 2)))
    elif code == CELL_U16:
        put_i32(c, row, little(s, 2))
    elif code == CELL_I24:
        put_i32(c, row, cython.cast(int32_t, cython.cast(uint32_t, little(s, 3) << 8)) >> 8)
    elif code == CELL_U24:
        put_i32(c, row, little(s, 3))
    elif code == CELL_I32:
        put_i32(c, row, cython.cast(int32_t, little(s, 4)))
    elif code == CELL_U32:
        put_i64(c, row, little(s, 4))
    elif code == CELL_I64:
        put_i64(c, row, little(s, 8))
    elif code == CELL_U64:
        put_i128(c, row, little(s, 8), 0)
    elif code == CELL_RAW:
        put_raw(c, row, s)
    elif code == CELL_DECIMAL:
        return put_decimal(p, c, row, s)
    elif code == CELL_LONG_DECIMAL:
        return put_long_decimal(p, c, row, s)
    elif code == CELL_BIT:
        put_i64(c, row, big(s, p.size))
    elif code == CELL_BIT64:
        put_i128(c, row, big(s, p.size), 0)
    elif code == CELL_YEAR:
        put_i16(c, row, 1900 + s[0] if s[0] else 0)
    elif code == CELL_DATE:
        days = date_days(little(s, 3) >> 9, (little(s, 3) >> 5) & 15, s[0] & 31)
        if days == NO_DATE:
            put_null(c, row)
        else:
            put_i32(c, row, days)
    elif code == CELL_TIME:
        return put_time(p, c, row, s)
    elif code == CELL_DATETIME:
        return put_datetime(p, c, row, s)
    elif code == CELL_TIMESTAMP:
        return put_timestamp(p, c, row, s)
    elif code == CELL_ENUM:
        return put_label(p, c, row, s)
    else:
        return put_labels(p, c, row, s)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def skip_cell(p: cython.pointer(Plan), source: cython.pointer(Cursor)) -> int64_t:
    """Step over one cell that is not NULL, its length included; the cursor tells when bytes are missing."""
    start: cython.pointer(cython.const[uint8_t]) = source.at
    if p.code > LAST_FIXED:
        claim(source, read_little(source, p.size))
    else:
        claim(source, p.size)
    return source.at - start


@cython.cfunc
@cython.exceptval(check=False)
def find_key(m: TableMap, source: cython.pointer(Cursor), spans: cython.pointer(Span)) -> cython.int:
    """Step over one image and note where its key's cells lie; 1 when malformed."""
    nulls: cython.pointer(cython.const[uint8_t]) = claim(source, m.null_bytes)
    at: cython.pointer(cython.const[uint8_t])
    size: int64_t
    i: cython.int
    n: cython.int = 0
    if nulls == cython.NULL:
        return 1
    for i in range(m.count):
        at = cython.NULL
        size = 0
        if not (nulls[i >> 3] >> (i & 7)) & 1:
            at = source.at
            size = skip_cell(cython.address(m.plans[i]), source)
        if m.plans[i].key:
            spans[n].at = at
            spans[n].size = size
            n += 1
    return 1 if source.missing else 0


@cython.cfunc
@cython.exceptval(check=False)
def same_key(m: TableMap) -> cython.bint:
    """Whether the two sets of spans hold the same bytes."""
    i: cython.int
    a: cython.pointer(Span)
    b: cython.pointer(Span)
    for i in range(m.keys):
        a = cython.address(m.spans[i])
        b = cython.address(m.spans[m.keys + i])
        if a.size != b.size or (a.at == cython.NULL) != (b.at == cython.NULL):
            return False
        if a.size and memcmp(a.at, b.at, a.size) != 0:
            return False
    return True


@cython.cfunc
@cython.exceptval(-1)
def read_image(
    m: TableMap,
    source: cython.pointer(Cursor),
    side: cython.int,
    op: cython.int,
    order: cython.pointer(Order),
    key_only: cython.bint,
) -> cython.int:
    """One image as one row of the builders; 1 when malformed, with the row undone."""
    images: ColumnBuilders = m.images
    cells: cython.pointer(Cells)
    nulls: cython.pointer(cython.const[uint8_t]) = claim(source, m.null_bytes)
    row: int64_t
    i: cython.int
    failed: cython.int
    if nulls == cython.NULL:
        return 1
    start_row(images)
    row = images.rows
    cells = images.cells
    for i in range(m.count):
        if (nulls[i >> 3] >> (i & 7)) & 1:
            put_null(cython.address(cells[i]), row)
        elif key_only and not m.plans[i].key:
            skip_cell(cython.address(m.plans[i]), source)
            put_null(cython.address(cells[i]), row)
        else:
            failed = read_cell(cython.address(m.plans[i]), cython.address(cells[i]), row, source)
            if failed == NOT_UTF8:
                raise Unsupported(
                    f"{m.table.id}.{m.table.columns[i].name}: a value is not valid UTF-8; repair it on the server"
                )
            if failed:
                return 1
    if source.missing:
        return 1
    put_i8(cython.address(cells[m.count]), row, side)
    put_i8(cython.address(cells[m.count + 1]), row, op)
    put_i64(cython.address(cells[m.count + 2]), row, order.sequence)
    put_i64(cython.address(cells[m.count + 3]), row, order.group)
    end_row(images)
    order.sequence += 1
    return 0


@cython.cfunc
@cython.exceptval(-1)
def read_update(m: TableMap, source: cython.pointer(Cursor), order: cython.pointer(Order)) -> cython.int:
    """The two images of an update; 1 when malformed."""
    ahead: Cursor
    if not order.key_only:
        return read_image(m, source, SIDE_BEFORE, OP_UPDATE, order, False) or read_image(
            m, source, SIDE_AFTER, OP_UPDATE, order, False
        )
    ahead = source[0]
    if find_key(m, cython.address(ahead), m.spans):
        return 1
    after: Cursor = ahead
    if find_key(m, cython.address(ahead), m.spans + m.keys):
        return 1
    if not same_key(m) and read_image(m, source, SIDE_BEFORE, OP_UPDATE, order, True):
        return 1
    source[0] = after
    return read_image(m, source, SIDE_AFTER, OP_UPDATE, order, False)


@cython.cfunc
@cython.exceptval(check=False)
def all_present(m: TableMap, source: cython.pointer(Cursor)) -> cython.bint:
    """Read a bitmap of columns present; True when it has all columns."""
    bits: cython.pointer(cython.const[uint8_t]) = claim(source, m.null_bytes)
    i: cython.int
    if bits == cython.NULL:
        return True
    for i in range(m.count):
        if not (bits[i >> 3] >> (i & 7)) & 1:
            return False
    return True


def read_rows(m, body, op, order):
    """All rows of one row event, from the number of columns on.

    Returns ROWS_READ, ROWS_MALFORMED (the row that is malformed is undone) or ROWS_INCOMPLETE when images
    lack columns (nothing is read).
    """
    failed: cython.int = 0
    complete: cython.bint
    if read_lenenc(body) != cython.cast(uint64_t, m.count):
        return ROWS_MALFORMED
    complete = all_present(m, body)
    if op == OP_UPDATE:
        complete = all_present(m, body) and complete
    if body.missing:
        return ROWS_MALFORMED
    if not complete:
        return ROWS_INCOMPLETE
    try:
        while left(body) and not failed:
            if op == OP_UPDATE:
                failed = read_update(m, body, order)
            elif op == OP_INSERT:
                failed = read_image(m, body, SIDE_AFTER, op, order, False)
            else:
                failed = read_image(m, body, SIDE_BEFORE, op, order, order.key_only)
    except BaseException:
        m.images.undo()
        raise
    if failed:
        m.images.undo()
        return ROWS_MALFORMED
    return ROWS_READ
