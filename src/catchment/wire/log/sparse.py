# cython: compiled
# ruff: noqa: ANN001, ANN201  (names and signatures of sparse.pxd)
"""Row events that do not hold whole rows: images that lack columns, and updates of parts of JSON documents.

Source: MySQL, sql/log_event.cc (Rows_log_event, PARTIAL_UPDATE_ROWS) and sql/json_diff.h; the manual on
binlog_row_image and binlog_row_value_options. These are slower than rows.py and rare.
"""

import cython
from cython.cimports.catchment.wire.cells.builders import end_row, put_i8, put_i64, put_null, start_row
from cython.cimports.catchment.wire.cells.cursor import (
    Cursor,
    claim,
    cursor_over,
    left,
    read_lenenc,
    read_little,
)
from cython.cimports.catchment.wire.cells.plans import CELL_JSON, TableMap
from cython.cimports.catchment.wire.json.text import put_json
from cython.cimports.catchment.wire.log.rows import (
    OP_DELETE,
    OP_INSERT,
    OP_UPDATE,
    ROWS_INCOMPLETE,
    ROWS_MALFORMED,
    ROWS_READ,
    SIDE_AFTER,
    SIDE_BEFORE,
    Order,
    find_key,
    put_cell,
    same_key,
    skip_cell,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t

from catchment.model.errors import CorruptLog
from catchment.wire.json.diff import changed

PARTIAL_JSON = cython.declare(uint64_t, 1)  # value option: some JSON columns come as differences


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def bit(bits: cython.pointer(cython.const[uint8_t]), i: cython.int) -> cython.bint:
    return (bits[i >> 3] >> (i & 7)) & 1


@cython.cfunc
@cython.exceptval(check=False)
def count_bits(bits: cython.pointer(cython.const[uint8_t]), n: cython.int) -> cython.int:
    i: cython.int
    found: cython.int = 0
    for i in range(n):
        found += bit(bits, i)
    return found


@cython.cfunc
@cython.exceptval(-1)
def count_lacking(m: TableMap, bits: cython.pointer(cython.const[uint8_t])) -> cython.int:
    """How many columns an image lacks that a SELECT shows."""
    i: cython.int
    found: cython.int = 0
    for i in range(m.count):
        found += not bit(bits, i) and not m.hidden[i]
    return found


@cython.cfunc
@cython.exceptval(check=False)
def json_columns(m: TableMap) -> cython.int:
    i: cython.int
    found: cython.int = 0
    for i in range(m.count):
        found += m.plans[i].code == CELL_JSON
    return found


@cython.cfunc
def json_bytes(m: TableMap, source: Cursor, present: cython.pointer(cython.const[uint8_t])):
    """The JSON documents of the image that begins at `source`, by column; None when it is malformed."""
    found = {}
    nulls: cython.pointer(cython.const[uint8_t]) = claim(
        cython.address(source), (count_bits(present, m.count) + 7) // 8
    )
    i: cython.int
    n: cython.int = 0
    size: int64_t
    if nulls == cython.NULL:
        return None
    for i in range(m.count):
        if not bit(present, i):
            continue
        if not bit(nulls, n):
            size = skip_cell(cython.address(m.plans[i]), cython.address(source))
            if source.missing:
                return None
            if m.plans[i].code == CELL_JSON:
                size -= m.plans[i].size
                found[i] = PyBytes_FromStringAndSize(cython.cast(cython.p_char, source.at - size), size)
        n += 1
    return found


@cython.cfunc
@cython.exceptval(-1)
def put_changed(
    m: TableMap, i: cython.int, row: int64_t, source: cython.pointer(Cursor), documents: object
) -> cython.int:
    """A JSON cell that comes as differences to the document before; 1 when malformed."""
    size: int64_t = read_little(source, m.plans[i].size)
    start: cython.pointer(cython.const[uint8_t]) = claim(source, size)
    if source.missing or i not in documents:
        return 1
    try:
        after = changed(documents[i], PyBytes_FromStringAndSize(cython.cast(cython.p_char, start), size))
    except CorruptLog:
        return 1
    whole: Cursor = cursor_over(cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(after)), len(after))
    return put_json(cython.address(m.images.cells[i]), row, whole.at, left(cython.address(whole)))


@cython.cfunc
@cython.exceptval(-1)
def read_some(
    m: TableMap,
    source: cython.pointer(Cursor),
    side: cython.int,
    op: cython.int,
    order: cython.pointer(Order),
    present: cython.pointer(cython.const[uint8_t]),
    documents: object,
) -> cython.int:
    """One image as a row of the builders, absent columns as null; 1 when malformed.

    `documents`: those of the image before, of an update that may have differences in place of JSON; else None.
    """
    parts: cython.pointer(cython.const[uint8_t]) = cython.NULL
    i: cython.int
    n: cython.int = 0
    json: cython.int = 0
    failed: cython.int
    partial: cython.bint
    if documents is not None and read_lenenc(source) & PARTIAL_JSON:
        parts = claim(source, (json_columns(m) + 7) // 8)
    nulls: cython.pointer(cython.const[uint8_t]) = claim(source, (count_bits(present, m.count) + 7) // 8)
    if source.missing:
        return 1
    start_row(m.images)
    row: int64_t = m.images.rows
    for i in range(m.count):
        partial = False
        if m.plans[i].code == CELL_JSON and parts != cython.NULL:
            partial = bit(parts, json)
            json += 1
        if not bit(present, i):
            put_null(cython.address(m.images.cells[i]), row)
            continue
        if bit(nulls, n):
            put_null(cython.address(m.images.cells[i]), row)
        elif side == SIDE_BEFORE and order.key_only and not m.plans[i].key:
            skip_cell(cython.address(m.plans[i]), source)
            put_null(cython.address(m.images.cells[i]), row)
        else:
            failed = put_changed(m, i, row, source, documents) if partial else put_cell(m, i, row, source)
            if failed:
                return 1
        n += 1
    if source.missing:
        return 1
    put_i8(cython.address(m.images.cells[m.count]), row, side)
    put_i8(cython.address(m.images.cells[m.count + 1]), row, op + order.unchecked)
    put_i64(cython.address(m.images.cells[m.count + 2]), row, order.sequence)
    put_i64(cython.address(m.images.cells[m.count + 3]), row, order.group)
    end_row(m.images)
    order.sequence += 1
    return 0


@cython.cfunc
@cython.exceptval(check=False)
def keeps_key(m: TableMap, body: cython.pointer(Cursor), partial: cython.bint) -> cython.bint:
    """Whether an update with all columns leaves the key as it is; the cursor then stands behind the first image.

    Malformed images are left to the reading that follows.
    """
    ahead: Cursor = body[0]
    if find_key(m, cython.address(ahead), m.spans):
        return False
    after: Cursor = ahead
    if partial and read_lenenc(cython.address(ahead)) & PARTIAL_JSON:
        claim(cython.address(ahead), (json_columns(m) + 7) // 8)
    if find_key(m, cython.address(ahead), m.spans + m.keys) or not same_key(m):
        return False
    body[0] = after
    return True


@cython.cfunc
@cython.exceptval(-1)
def read_event(
    m: TableMap,
    body: cython.pointer(Cursor),
    op: cython.int,
    order: cython.pointer(Order),
    bits: cython.pointer(cython.const[uint8_t]),
    partial: cython.bint,
    whole: cython.bint,
) -> cython.int:
    """All rows of an event; 1 when malformed. `bits`: the columns of its first image, then of its second."""
    after: cython.pointer(cython.const[uint8_t]) = bits + m.null_bytes
    # Rows without any column have no bytes: there would be no end of them.
    if count_bits(bits, m.count) == 0 and left(body):
        return 1
    while left(body):
        if op == OP_INSERT:
            if read_some(m, body, SIDE_AFTER, op, order, bits, None):
                return 1
            continue
        documents = None
        if partial:
            documents = json_bytes(m, body[0], bits)
            if documents is None:
                return 1
        if whole and order.key_only and op == OP_UPDATE and keeps_key(m, body, partial):
            pass
        elif read_some(m, body, SIDE_BEFORE, op, order, bits, None):
            return 1
        if op == OP_UPDATE and read_some(m, body, SIDE_AFTER, op, order, after, documents):
            return 1
    return 0


def read_sparse(m, body, op, order, partial):
    """All rows of one row event, as rows.read_rows.

    ROWS_INCOMPLETE says that images lack columns; their rows were read only when `order.sparse`.
    """
    images: cython.int = 2 if op == OP_UPDATE else 1
    failed: cython.int
    present: cython.int
    lacking: cython.int
    if read_lenenc(body) != cython.cast(uint64_t, m.count):
        return ROWS_MALFORMED
    bits: cython.pointer(cython.const[uint8_t]) = claim(body, images * m.null_bytes)
    if bits == cython.NULL:
        return ROWS_MALFORMED
    present = count_bits(bits, m.count)
    lacking = count_lacking(m, bits)
    if op == OP_UPDATE:
        present = min(present, count_bits(bits + m.null_bytes, m.count))
        lacking = max(lacking, count_lacking(m, bits + m.null_bytes))
    if lacking and not order.sparse:
        return ROWS_INCOMPLETE
    try:
        failed = read_event(m, body, op, order, bits, partial, present == m.count)
    except BaseException:
        m.images.undo()
        raise
    if failed:
        m.images.undo()
        return ROWS_MALFORMED
    return ROWS_INCOMPLETE if lacking else ROWS_READ


def columns_present(m, body, op):
    """Names of the columns in the images before and after; none in an image that the event does not have."""
    read_lenenc(cython.address(body))
    first = names(m, claim(cython.address(body), m.null_bytes))
    if op == OP_UPDATE:
        return first, names(m, claim(cython.address(body), m.null_bytes))
    return (first, ()) if op == OP_DELETE else ((), first)


@cython.cfunc
def names(m: TableMap, bits: cython.pointer(cython.const[uint8_t])):
    if bits == cython.NULL:
        return ()
    return tuple([column.name for i, column in enumerate(m.table.columns) if bit(bits, i)])
