# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN202  (signatures are in splice.pyi)
"""Rows of another table put into a table, others taken out: what stays is copied in runs, not row by row.

Most rows of a base file stay as they are when a fold works changes in. Arrow's `take` looks at each row of each
column; here a run of rows between two changes is one copy. Loops hold no interpreter lock.
"""

import cython
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t
from cython.cimports.libc.string import memcpy

_INT32_MAX = 2**31 - 1


def splice(rows, others, at, gone, put):
    at, gone, put = (
        np.ascontiguousarray(a, t) for a, t in ((at, np.int64), (gone, np.int64), (put, np.int64))
    )
    _check(rows.num_rows, others.num_rows, at, gone, put)
    columns = [
        _column(_single(a), _single(b), at, gone, put)
        for a, b in zip(rows.columns, others.columns, strict=True)
    ]
    return pa.table(columns, schema=rows.schema)


def _check(rows, others, at, gone, put):
    """Every loop below stays inside its buffers when this holds."""
    if not len(at) == len(gone) == len(put):
        raise ValueError("a splice needs as many rows to leave out and to put in as places")
    ends = at + gone
    inside = len(at) == 0 or (at[0] >= 0 and ends[len(ends) - 1] <= rows and not np.any(ends[:-1] > at[1:]))
    if not inside or np.any((gone != 0) & (gone != 1)) or np.any(put >= others):
        raise ValueError(f"a splice of {rows} rows and {others} others reaches beyond them or goes back")


def _single(column):
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _column(rows, others, at, gone, put):
    """One column; both parts have its type."""
    kind = rows.type
    valid = None
    if rows.null_count or others.null_count:
        valid = _fixed(_mask(rows.is_valid()), _mask(others.is_valid()), 1, at, gone, put)
    size = len(rows) - int(gone.sum()) + int(np.count_nonzero(put >= 0))
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if pa.types.is_boolean(kind):
        bits = _fixed(_mask(rows), _mask(others), 1, at, gone, put)
        return pa.Array.from_buffers(kind, size, [bitmap, pa.py_buffer(np.packbits(bits, bitorder="little"))])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets, data = _strings(
            _offsets(rows), _bytes(rows, 2), _offsets(others), _bytes(others, 2), at, gone, put
        )
        return pa.Array.from_buffers(kind, size, [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)])
    if pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
        width = kind.bit_width // 8
        values = _fixed(_values(rows, width), _values(others, width), width, at, gone, put)
        return pa.Array.from_buffers(kind, size, [bitmap, pa.py_buffer(values)])
    return pa.concat_arrays([rows, others]).take(pa.array(_numbers(len(rows), at, gone, put)))


def _mask(array):
    return pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.uint8)


def _bytes(array, number):
    buffer = array.buffers()[number]
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def _values(array, width):
    return _bytes(array, 1)[array.offset * width : (array.offset + len(array)) * width]


def _offsets(array):
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(1, np.int32)
    return np.frombuffer(buffer, np.int32, len(array) + 1, array.offset * 4)


def _numbers(count, at, gone, put):
    """The same splice as row numbers of both parts, one behind the other."""
    kept = np.ones(count, np.bool_)
    kept[at[gone == 1]] = False
    numbers = np.where(kept, np.arange(count), -1)
    numbers = np.insert(numbers, at[put >= 0], count + put[put >= 0])
    return numbers[numbers >= 0]


@cython.cfunc
def _fixed(rows: object, others: object, width: int64_t, at: object, gone: object, put: object) -> object:
    """Values of `width` bytes."""
    count: int64_t = len(rows) // width
    size = count - int(gone.sum()) + int(np.count_nonzero(put >= 0))
    made = np.empty(size * width, np.uint8)
    source: cython.pointer[cython.const[uint8_t]] = _pointer(rows)
    other: cython.pointer[cython.const[uint8_t]] = _pointer(others)
    out: cython.pointer[uint8_t] = cython.cast(cython.pointer[uint8_t], _pointer(made))
    places: cython.const[int64_t][::1] = at
    leaves: cython.const[int64_t][::1] = gone
    puts: cython.const[int64_t][::1] = put
    places_count: int64_t = len(at)
    row: int64_t = 0
    i: int64_t
    with cython.nogil:
        for i in range(places_count):
            run: int64_t = (places[i] - row) * width
            memcpy(out, source + row * width, run)
            out += run
            row = places[i] + leaves[i]
            if puts[i] >= 0:
                memcpy(out, other + puts[i] * width, width)
                out += width
        memcpy(out, source + row * width, (count - row) * width)
    return made


@cython.cfunc
def _strings(
    starts: object,
    data: object,
    other_starts: object,
    other_data: object,
    at: object,
    gone: object,
    put: object,
) -> tuple:
    """Offsets and bytes; raises ValueError when they pass the 2 GiB of Arrow's small strings."""
    into = put[put >= 0]
    drop = at[gone == 1]
    bytes_out = int(starts[len(starts) - 1]) - int(starts[0])
    bytes_out -= int((starts[drop + 1].astype(np.int64) - starts[drop]).sum())
    bytes_out += int((other_starts[into + 1].astype(np.int64) - other_starts[into]).sum())
    if bytes_out > _INT32_MAX:
        raise ValueError(f"{bytes_out} bytes of strings in one batch are more than 2 GiB")
    count: int64_t = len(starts) - 1
    offsets = np.empty(count - len(drop) + len(into) + 1, np.int32)
    made = np.empty(bytes_out, np.uint8)
    ends: cython.pointer[int32_t] = cython.cast(cython.pointer[int32_t], _pointer(offsets)) + 1
    out: cython.pointer[uint8_t] = cython.cast(cython.pointer[uint8_t], _pointer(made))
    source: cython.pointer[cython.const[uint8_t]] = _pointer(data)
    other: cython.pointer[cython.const[uint8_t]] = _pointer(other_data)
    from_: cython.const[int32_t][::1] = starts
    other_from: cython.const[int32_t][::1] = other_starts
    places: cython.const[int64_t][::1] = at
    leaves: cython.const[int64_t][::1] = gone
    puts: cython.const[int64_t][::1] = put
    places_count: int64_t = len(at)
    written: int64_t = 0
    row: int64_t = 0
    i: int64_t
    offsets[0] = 0
    with cython.nogil:
        for i in range(places_count + 1):
            stop: int64_t = places[i] if i < places_count else count
            shift: int64_t = written - from_[row]
            size: int64_t = from_[stop] - from_[row]
            memcpy(out + written, source + from_[row], size)
            n: int64_t
            for n in range(row, stop):
                ends[n - row] = cython.cast(int32_t, from_[n + 1] + shift)
            ends += stop - row
            written += size
            row = stop
            if i < places_count:
                row += leaves[i]
                if puts[i] >= 0:
                    first: int64_t = other_from[puts[i]]
                    size = other_from[puts[i] + 1] - first
                    memcpy(out + written, other + first, size)
                    written += size
                    ends[0] = cython.cast(int32_t, written)
                    ends += 1
    return offsets, made


@cython.cfunc
def _pointer(held: object) -> cython.pointer[uint8_t]:
    """Where the bytes of a numpy array lie."""
    at: cython.size_t = held.ctypes.data
    return cython.cast(cython.pointer[uint8_t], at)
