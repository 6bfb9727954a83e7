# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN202, ANN204, ANN205, F821  (signatures are in keys.pyi, names in keys.pxd)
"""Identity and order of rows: the key columns of each row as one string of bytes that memcmp orders.

An encoded key is the encodings of its columns one after another. No encoding is a prefix of another one of
the same column. So bytes order keys as tuples are ordered, and the encoding of the first columns is a bound.

    integers, dates, times   8 bytes, big-endian, sign bit flipped: all widths alike, int32 7 equals int64 7
    float, double            8 bytes of the double, sign bit flipped, all bits if negative; -0.0 becomes 0.0
    bool                     1 byte
    decimal128               16 bytes, big-endian, sign bit flipped; the scale is not part of it
    string, binary           0x00 as 0x00 0xFF, then 0x00 0x00 as the end

Bytes order strings by code point: the server's order for binary columns, not for collated ones. Key columns
hold no NULL (a primary key cannot), so there is no marker for it. Loops hold no interpreter lock.
"""

import cython
import numpy as np
import pyarrow as pa
from cython.cimports.libc.stdint import int64_t, uint8_t, uint16_t, uint64_t
from cython.cimports.libc.string import memchr, memcmp

from catchment.model.errors import Unsupported
from catchment.wire.keys.layouts import chunks_of, layout


class Keys:
    """The encoded keys of some rows, in row order: `data` bytes with `offsets`, or of one `width` without."""

    __slots__ = ("data", "offsets", "rows", "width")

    def __init__(self, data, offsets, width, rows):
        self.data = data
        self.offsets = offsets
        self.width = width
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        if not 0 <= row < self.rows:
            raise IndexError(f"row {row} of {self.rows} keys")
        offsets = self._offsets()
        return self.data[offsets[row] : offsets[row + 1]].tobytes()

    def _offsets(self):
        if self.offsets is not None:
            return self.offsets
        return np.arange(self.rows + 1, dtype=np.int64) * self.width

    def to_binary(self):
        buffers = [None, pa.py_buffer(self._offsets()), pa.py_buffer(self.data)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), self.rows, buffers)

    @staticmethod
    def from_binary(array):
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays([chunk.cast(pa.large_binary()) for chunk in array.chunks] or [_NO_KEYS])
        if array.null_count:
            raise ValueError("encoded keys must not hold a null")
        array = array.cast(pa.large_binary())
        rows = len(array)
        if rows == 0:
            return Keys(np.empty(0, np.uint8), np.zeros(1, np.int64), 0, 0)
        _, offsets, data = array.buffers()
        wanted = np.frombuffer(offsets, np.int64, rows + 1, array.offset * 8)
        held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return Keys(held, wanted, 0, rows)


_NO_KEYS = pa.array([], pa.large_binary())


def encode(batch, columns):
    if not columns:
        raise ValueError("a key needs at least one column")
    parts = [chunks_of(batch, name) for name in columns]
    widths = [_key_width(name, chunks) for name, chunks in zip(columns, parts, strict=True)]
    rows = batch.num_rows
    if all(widths):
        width = sum(widths)
        data = np.empty(rows * width, np.uint8)
        at = 0
        for chunks, column_width in zip(parts, widths, strict=True):
            _write_column(chunks, data, None, width, at)
            at += column_width
        return Keys(data, None, width, rows)
    offsets = np.zeros(rows + 1, np.int64)
    for chunks, column_width in zip(parts, widths, strict=True):
        _add_sizes(chunks, offsets, column_width)
    np.cumsum(offsets, out=offsets)
    data = np.empty(offsets[rows], np.uint8)
    cursors = offsets[:rows].copy()
    for chunks in parts:
        _write_column(chunks, data, cursors, 0, 0)
    return Keys(data, offsets, 0, rows)


def _key_width(name, chunks):
    """Bytes of the encoding of one key column, 0 when they vary; raises ValueError."""
    row = 0
    for chunk in chunks:
        if chunk.null_count:
            null = row + chunk.is_null().index(True).as_py()
            raise Unsupported(
                f"key column {name!r} holds a NULL in row {null}: a zero date, or one that no calendar has, is NULL in "
                "the lake, and a key must not be; correct the row on the server or exclude the table"
            )
        row += len(chunk)
        kind, width = layout(chunk.type)
        if kind == UINT and width == 8:
            raise ValueError(f"key column {name!r}: uint64 has no order with int64; use decimal128(20, 0)")
    if not chunks:
        return 0
    code = layout(chunks[0].type)[0]
    if code in (SMALL_BYTES, LARGE_BYTES, FIXED_BYTES):
        return 0
    return {BOOL: 1, DECIMAL: 16, NOTHING: 0}.get(code, 8)


@cython.cfunc
def _address(held: object) -> cython.pointer[uint8_t]:
    """Where the bytes of an Arrow buffer or numpy array lie; NULL for None."""
    if held is None:
        return cython.NULL
    at: cython.size_t = held.ctypes.data if isinstance(held, np.ndarray) else held.address
    return cython.cast(cython.pointer[uint8_t], at)


@cython.cfunc
def _chunk(array: object) -> Chunk:
    chunk: Chunk
    kind, width = layout(array.type)
    buffers = array.buffers()
    chunk.kind = kind
    chunk.width = width
    chunk.rows = len(array)
    chunk.first = array.offset
    chunk.valid = _address(buffers[0]) if array.null_count else cython.NULL
    chunk.offsets = _address(buffers[1]) if len(buffers) == 3 else cython.NULL
    chunk.values = _address(buffers[len(buffers) - 1])
    return chunk


@cython.cfunc
def _view(keys: object) -> View:
    view: View
    view.data = _address(keys.data)
    view.offsets = cython.cast(cython.pointer[int64_t], _address(keys.offsets))
    view.width = keys.width
    view.rows = keys.rows
    return view


# --- columns ---------------------------------------------------------------------------------------------


@cython.cfunc
def _add_sizes(chunks: list, offsets: object, width: int64_t) -> object:
    """Add the size of each row's encoding of this column to offsets[row + 1]."""
    if width:
        offsets[1:] += width
        return None
    sizes: cython.pointer[int64_t] = cython.cast(cython.pointer[int64_t], _address(offsets)) + 1
    for array in chunks:
        chunk: Chunk = _chunk(array)
        with cython.nogil:
            _add_chunk_sizes(cython.address(chunk), sizes)
        sizes += chunk.rows
    return None


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_chunk_sizes(chunk: cython.pointer[Chunk], sizes: cython.pointer[int64_t]) -> cython.void:
    row: int64_t
    span: Span
    end: cython.pointer[uint8_t]
    for row in range(chunk.rows):
        span = bytes_at(chunk, row)
        sizes[row] += span.size + 2
        end = span.data + span.size
        while span.data < end:
            span.data = cython.cast(cython.pointer[uint8_t], memchr(span.data, 0, end - span.data))
            if span.data == cython.NULL:
                break
            sizes[row] += 1
            span.data += 1


@cython.cfunc
def _write_column(chunks: list, data: object, cursors: object, width: int64_t, at: int64_t) -> object:
    """Encode a column: row i at `cursors[i]`, which moves on, or without cursors at `i * width + at`."""
    out: cython.pointer[uint8_t] = _address(data)
    cursor: cython.pointer[int64_t] = cython.cast(cython.pointer[int64_t], _address(cursors))
    row: int64_t
    for array in chunks:
        chunk: Chunk = _chunk(array)
        with cython.nogil:
            if cursor == cython.NULL:
                for row in range(chunk.rows):
                    put_value(cython.address(chunk), row, out + row * width + at)
                out += chunk.rows * width
            else:
                for row in range(chunk.rows):
                    cursor[row] += put_value(cython.address(chunk), row, out + cursor[row])
                cursor += chunk.rows
    return None


def hash_rows(batch, columns):
    hashes = np.zeros(batch.num_rows, np.uint64)
    out: cython.pointer[uint64_t] = cython.cast(cython.pointer[uint64_t], _address(hashes))
    rows: int64_t = batch.num_rows
    row: int64_t
    for name in columns:
        at: cython.pointer[uint64_t] = out
        for array in chunks_of(batch, name):
            chunk: Chunk = _chunk(array)
            with cython.nogil:
                for row in range(chunk.rows):
                    at[row] = absorbed_value(at[row], cython.address(chunk), row)
            at += chunk.rows
    with cython.nogil:
        for row in range(rows):
            out[row] = finished(out[row])
    return hashes


def bucket(keys, buckets, seed=0):
    if not 1 <= buckets <= 65536:
        raise ValueError(f"rows go to 1 to 65536 buckets, not {buckets}")
    view: View = _view(keys)
    chosen = np.empty(view.rows, np.uint16)
    out: cython.pointer[uint16_t] = cython.cast(cython.pointer[uint16_t], _address(chosen))
    count: uint64_t = buckets
    start: uint64_t = seed
    row: int64_t
    with cython.nogil:
        start = finished(start + P1)
        for row in range(view.rows):
            hashed: uint64_t = finished(absorbed(start, key_at(cython.address(view), row)))
            out[row] = cython.cast(uint16_t, ((hashed >> 32) * count) >> 32)
    return chosen


def at_or_below(keys, bound: bytes):
    view: View = _view(keys)
    below = np.empty(view.rows, np.bool_)
    out: cython.pointer[uint8_t] = _address(below)
    limit: cython.p_const_char = bound
    size: int64_t = len(bound)
    row: int64_t
    with cython.nogil:
        for row in range(view.rows):
            key: Span = key_at(cython.address(view), row)
            out[row] = memcmp(key.data, limit, min(key.size, size)) <= 0
    return below


@cython.cfunc
def _slots(rows: int64_t) -> object:
    """An empty table, at most half full with that many rows."""
    if rows >= 0xFFFFFFFF:
        raise ValueError(f"{rows} keys are too many for one table; split them with bucket()")
    return np.zeros(1 << max(4, int(2 * rows - 1).bit_length()), np.uint64)


@cython.cfunc
def _distinct(keys: object, last: cython.bint) -> object:
    """Ascending rows of the first or last of each key."""
    view: View = _view(keys)
    table = _slots(view.rows)
    chosen = np.zeros(view.rows, np.bool_)
    kept: cython.pointer[uint8_t] = _address(chosen)
    slots: cython.pointer[uint64_t] = cython.cast(cython.pointer[uint64_t], _address(table))
    mask: uint64_t = len(table) - 1
    row: int64_t
    with cython.nogil:
        for row in range(view.rows):
            key: Span = key_at(cython.address(view), row)
            hashed: uint64_t = table_hash(key)
            at: uint64_t = located(slots, mask, cython.address(view), key, hashed)
            if slots[at] == 0 or last:
                if slots[at] != 0:
                    kept[slot_row(slots[at])] = 0
                kept[row] = 1
                slots[at] = slot_of(hashed, row)
    return np.flatnonzero(chosen)


def last_of_each(keys):
    return _distinct(keys, True)


def first_of_each(keys):
    return _distinct(keys, False)


class KeySet:
    """A hash table over encoded keys; of equal keys the last row is found."""

    __slots__ = ("_keys", "_table")

    def __init__(self, keys):
        self._keys = keys
        view: View = _view(keys)
        self._table = _slots(view.rows)
        slots: cython.pointer[uint64_t] = cython.cast(cython.pointer[uint64_t], _address(self._table))
        mask: uint64_t = len(self._table) - 1
        row: int64_t
        with cython.nogil:
            for row in range(view.rows):
                key: Span = key_at(cython.address(view), row)
                hashed: uint64_t = table_hash(key)
                slots[located(slots, mask, cython.address(view), key, hashed)] = slot_of(hashed, row)

    def __len__(self):
        return int(np.count_nonzero(self._table))

    def find(self, keys):
        held: View = _view(self._keys)
        asked: View = _view(keys)
        found = np.empty(asked.rows, np.int64)
        out: cython.pointer[int64_t] = cython.cast(cython.pointer[int64_t], _address(found))
        slots: cython.pointer[uint64_t] = cython.cast(cython.pointer[uint64_t], _address(self._table))
        mask: uint64_t = len(self._table) - 1
        row: int64_t
        with cython.nogil:
            for row in range(asked.rows):
                key: Span = key_at(cython.address(asked), row)
                out[row] = slot_row(slots[located(slots, mask, cython.address(held), key, table_hash(key))])
        return found

    def contains(self, keys):
        return self.find(keys) >= 0
