# cython: compiled
# ruff: noqa: ANN001, ANN201, F821, PLR0911, PLR0912, SIM110  (names and signatures of rows.pxd)
"""Row events: the images of rows, cell by cell, into the builders of their table."""

import cython
from cython.cimports.catchment.wire.cells.builders import (
    Cells,
    ColumnBuilders,
    end_row,
    put_bytes,
    put_i8,
    put_i16,
    put_i32,
    put_i64,
    put_i128,
    put_null,
    put_raw,
    start_row,
)
from cython.cimports.catchment.wire.cells.cursor import (
    Cursor,
    big,
    claim,
    cursor_over,
    left,
    little,
    read_lenenc,
    read_little,
)
from cython.cimports.catchment.wire.cells.packed import (
    put_datetime,
    put_decimal,
    put_label,
    put_labels,
    put_long_decimal,
    put_time,
    put_timestamp,
)
from cython.cimports.catchment.wire.cells.plans import (
    CELL_BIT,
    CELL_BIT64,
    CELL_BYTES,
    CELL_DATE,
    CELL_DATETIME,
    CELL_DECIMAL,
    CELL_ENUM,
    CELL_I8,
    CELL_I16,
    CELL_I24,
    CELL_I32,
    CELL_I64,
    CELL_LONG_DECIMAL,
    CELL_RAW,
    CELL_TIME,
    CELL_TIMESTAMP,
    CELL_U8,
    CELL_U16,
    CELL_U24,
    CELL_U32,
    CELL_U64,
    CELL_UTF8,
    CELL_YEAR,
    LAST_FIXED,
    Plan,
    Span,
    TableMap,
)
from cython.cimports.catchment.wire.cells.values import NO_DATE, date_days, put_utf8
from cython.cimports.catchment.wire.log.strings import NOT_TEXT, put_string
from cython.cimports.libc.stdint import int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcmp

from catchment.model.errors import Unsupported


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def read_string(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(Cursor)
) -> cython.int:
    """A cell with its length in front; 1 when malformed, NOT_TEXT when it is not of its character set."""
    n: int64_t = read_little(source, p.size)
    start: cython.pointer(cython.const[uint8_t]) = claim(source, n)
    if source.missing:
        return 1
    if p.code == CELL_UTF8:
        return NOT_TEXT if put_utf8(c, row, start, n) else 0
    if p.code == CELL_BYTES:
        return put_bytes(c, row, start, n)
    return put_string(p, c, row, start, n)


@cython.cfunc
@cython.inline
def put_date(c: cython.pointer(Cells), row: int64_t, s: cython.pointer(uint8_t)) -> cython.void:
    """A DATE: day, month and year in 5, 4 and 15 bits; null when there is no such day."""
    days: int32_t = date_days(little(s, 3) >> 9, (little(s, 3) >> 5) & 15, s[0] & 31)
    if days == NO_DATE:
        put_null(c, row)
    else:
        put_i32(c, row, days)


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def read_cell(
    p: cython.pointer(Plan), c: cython.pointer(Cells), row: int64_t, source: cython.pointer(Cursor)
) -> cython.int:
    """One cell that is not NULL; 1 when malformed, NOT_TEXT when it is not of its character set."""
    code: cython.int = p.code
    s: cython.pointer(uint8_t)
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
        put_date(c, row, s)
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
@cython.exceptval(-1)
def refuse_cell(m: TableMap, i: cython.int, failed: cython.int) -> cython.int:
    """1 for a malformed cell of column `i`; raises Unsupported when it is no text."""
    if failed == NOT_TEXT:
        raise Unsupported(
            f"{m.table.id}.{m.table.columns[i].name}: a value is not valid text of the column's "
            "character set; repair it on the server"
        )
    return 1


def put_cell(m, i, row, source):
    """One cell of column `i`, for sparse.py."""
    failed: cython.int = read_cell(cython.address(m.plans[i]), cython.address(m.images.cells[i]), row, source)
    return refuse_cell(m, i, failed) if failed else 0


def skip_cell(p, source):
    """Step over one cell that is not NULL, its length included; the cursor tells when bytes are missing."""
    start: cython.pointer(cython.const[uint8_t]) = source.at
    if p.code > LAST_FIXED:
        claim(source, read_little(source, p.size))
    else:
        claim(source, p.size)
    return source.at - start


def find_key(m, source, spans):
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


def same_key(m):
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
    plans: cython.pointer(Plan) = m.plans
    cells: cython.pointer(Cells)
    here: Cursor = cursor_over(source.at, left(source))
    nulls: cython.pointer(cython.const[uint8_t]) = claim(cython.address(here), m.null_bytes)
    row: int64_t
    i: cython.int
    count: cython.int = m.count
    failed: cython.int
    if nulls == cython.NULL:
        return 1
    start_row(images)
    row = images.rows
    cells = images.cells
    for i in range(count):
        if (nulls[i >> 3] >> (i & 7)) & 1:
            put_null(cython.address(cells[i]), row)
        elif key_only and not plans[i].key:
            skip_cell(cython.address(plans[i]), cython.address(here))
            put_null(cython.address(cells[i]), row)
        else:
            failed = read_cell(cython.address(plans[i]), cython.address(cells[i]), row, cython.address(here))
            if failed:
                return refuse_cell(m, i, failed)
    if here.missing:
        return 1
    source.at = here.at
    put_i8(cython.address(cells[count]), row, side)
    put_i8(cython.address(cells[count + 1]), row, op + order.unchecked)
    put_i64(cython.address(cells[count + 2]), row, order.sequence)
    put_i64(cython.address(cells[count + 3]), row, order.group)
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
    ahead = cursor_over(source.at, left(source))
    if find_key(m, cython.address(ahead), m.spans):
        return 1
    after: cython.pointer(cython.const[uint8_t]) = ahead.at
    if find_key(m, cython.address(ahead), m.spans + m.keys):
        return 1
    if not same_key(m) and read_image(m, source, SIDE_BEFORE, OP_UPDATE, order, True):
        return 1
    source.at = after
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
    end: cython.pointer(cython.const[uint8_t]) = body.end
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
        while body.at != end and not failed:
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
