# cython: compiled
# ruff: noqa: ANN001, ANN201, F821, PLR0911  (names and signatures of text.pxd)
"""MySQL's binary JSON to the text that SELECT gives for it, straight into a column under construction.

Source: MySQL's description of the format in sql-common/json_binary.h. A server never lets two values share
bytes, so a document whose values do is malformed. Because it is refused, reading takes no longer than the
document is long.
"""

import cython
from cython.cimports.catchment.wire.cells.builders import keep_bytes
from cython.cimports.catchment.wire.cells.cursor import little
from cython.cimports.catchment.wire.json.buffer import Text, write, write_number
from cython.cimports.catchment.wire.json.scalars import write_double, write_opaque, write_string
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t

DEPTH_MAX = cython.declare(cython.int, 100)  # of arrays and objects; the server refuses deeper documents


@cython.cfunc
@cython.exceptval(-1)
def write_signed(t: cython.pointer(Text), value: int64_t) -> cython.int:
    if value < 0:
        return write_number(t, ~cython.cast(uint64_t, value) + 1, True, 1)
    return write_number(t, value, False, 1)


@cython.cfunc
@cython.exceptval(-1)
def write_literal(t: cython.pointer(Text), value: uint8_t) -> cython.int:
    if value == 0:
        return write(t, b"null", 4)
    if value == 1:
        return write(t, b"true", 4)
    return write(t, b"false", 5) if value == 2 else 1


@cython.cfunc
@cython.exceptval(-1)
def write_sized(
    t: cython.pointer(Text), kind: cython.int, at: cython.pointer(uint8_t), end: cython.pointer(uint8_t)
) -> cython.int:
    """A string or an opaque value: its length goes seven bits a byte, lowest first; 1 when malformed."""
    opaque: cython.int = -1
    size: uint64_t = 0
    shift: cython.int = 0
    byte: uint8_t = 0x80
    start: cython.pointer(uint8_t) = at
    if kind == JSON_OPAQUE:
        if at >= end:
            return 1
        opaque = at[0]
        at += 1
    while byte & 0x80:
        if at >= end or shift > 28:
            return 1
        byte = at[0]
        size |= cython.cast(uint64_t, byte & 0x7F) << shift
        shift += 7
        at += 1
    if size > cython.cast(uint64_t, end - at):
        return 1
    t.unread -= (at - start) + cython.cast(int64_t, size)
    if t.unread < 0:
        return 1
    if opaque >= 0:
        return write_opaque(t, opaque, at, size)
    return write_string(t, at, size)


@cython.cfunc
@cython.exceptval(-1)
def write_scalar(
    t: cython.pointer(Text), kind: cython.int, at: cython.pointer(uint8_t), end: cython.pointer(uint8_t)
) -> cython.int:
    """A value that holds no others; 1 when malformed."""
    size: cython.int
    if kind in (JSON_STRING, JSON_OPAQUE):
        return write_sized(t, kind, at, end)
    if kind == JSON_LITERAL:
        size = 1
    elif kind in (JSON_INT16, JSON_UINT16):
        size = 2
    elif kind in (JSON_INT32, JSON_UINT32):
        size = 4
    elif kind in (JSON_INT64, JSON_UINT64, JSON_DOUBLE):
        size = 8
    else:
        return 1
    if end - at < size:
        return 1
    t.unread -= size
    if t.unread < 0:
        return 1
    return write_fixed(t, kind, at)


@cython.cfunc
@cython.exceptval(-1)
def write_fixed(t: cython.pointer(Text), kind: cython.int, at: cython.pointer(uint8_t)) -> cython.int:
    """A scalar of fixed length, which is there; 1 when there is no such value."""
    if kind == JSON_LITERAL:
        return write_literal(t, at[0])
    if kind == JSON_INT16:
        return write_signed(t, cython.cast(cython.short, little(at, 2)))
    if kind == JSON_UINT16:
        return write_number(t, little(at, 2), False, 1)
    if kind == JSON_INT32:
        return write_signed(t, cython.cast(cython.int, little(at, 4)))
    if kind == JSON_UINT32:
        return write_number(t, little(at, 4), False, 1)
    if kind == JSON_INT64:
        return write_signed(t, little(at, 8))
    if kind == JSON_UINT64:
        return write_number(t, little(at, 8), False, 1)
    return write_double(t, at)


@cython.cfunc
@cython.exceptval(-1)
def write_value(
    t: cython.pointer(Text),
    kind: cython.int,
    at: cython.pointer(uint8_t),
    end: cython.pointer(uint8_t),
    depth: cython.int,
) -> cython.int:
    """Any value whose bytes begin at `at` and end before `end`; 1 when malformed."""
    if kind > JSON_LARGE_ARRAY:
        return write_scalar(t, kind, at, end)
    if depth >= DEPTH_MAX:
        return 1
    return write_container(t, kind, at, end, depth + 1)


@cython.cfunc
@cython.exceptval(-1)
def write_container(
    t: cython.pointer(Text),
    kind: cython.int,
    at: cython.pointer(uint8_t),
    end: cython.pointer(uint8_t),
    depth: cython.int,
) -> cython.int:
    """An array or an object: counts, entries of keys, entries of values, then keys and values."""
    wide: cython.bint = kind in (JSON_LARGE_OBJECT, JSON_LARGE_ARRAY)
    keyed: cython.bint = kind in (JSON_SMALL_OBJECT, JSON_LARGE_OBJECT)
    w: cython.int = 4 if wide else 2
    if end - at < 2 * w:
        return 1
    count: int64_t = little(at, w)
    size: int64_t = little(at + w, w)
    values: int64_t = 2 * w + (count * (w + 2) if keyed else 0)
    head: int64_t = values + count * (w + 1)
    t.unread -= head
    if size > end - at or head > size or t.unread < 0:
        return 1
    i: int64_t
    write(t, b"{" if keyed else b"[", 1)
    for i in range(count):
        if i:
            write(t, b", ", 2)
        if keyed and write_key(t, at, at + 2 * w + i * (w + 2), head, size, w):
            return 1
        if write_entry(t, at, at + values + i * (w + 1), head, size, w, depth):
            return 1
    return write(t, b"}" if keyed else b"]", 1)


@cython.cfunc
@cython.exceptval(-1)
def write_key(
    t: cython.pointer(Text),
    at: cython.pointer(uint8_t),
    entry: cython.pointer(uint8_t),
    head: int64_t,
    size: int64_t,
    w: cython.int,
) -> cython.int:
    """A key and its colon; 1 when malformed."""
    start: int64_t = little(entry, w)
    length: int64_t = little(entry + w, 2)
    t.unread -= length
    if start < head or start + length > size or t.unread < 0 or write_string(t, at + start, length):
        return 1
    return write(t, b": ", 2)


@cython.cfunc
@cython.exceptval(-1)
def write_entry(
    t: cython.pointer(Text),
    at: cython.pointer(uint8_t),
    entry: cython.pointer(uint8_t),
    head: int64_t,
    size: int64_t,
    w: cython.int,
    depth: cython.int,
) -> cython.int:
    """The value of an entry: a type, then a small value itself or where the value stands."""
    kind: cython.int = entry[0]
    if kind in (JSON_LITERAL, JSON_INT16, JSON_UINT16):
        return write_fixed(t, kind, entry + 1)
    if w == 4 and (kind in (JSON_INT32, JSON_UINT32)):
        return write_fixed(t, kind, entry + 1)
    start: int64_t = little(entry + 1, w)
    if start < head or start >= size:
        return 1
    return write_value(t, kind, at + start, at + size, depth)


def put_json(c, row, source, n):
    """One document as the text of the server; see text.pxd. No bytes at all mean `null` (seen where an
    ALTER added a JSON column that cannot be NULL)."""
    t: Text
    t.cells = c
    t.size = 0
    t.unread = n - 1
    start: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), source)
    if n == 0:
        write(cython.address(t), b"null", 4)
    elif write_value(cython.address(t), start[0], start + 1, start + n, 0):
        return 1
    keep_bytes(c, row, t.size)
    return 0
