# Columns under construction: one per Arrow column, on memory that Arrow takes over without a copy.
# The put functions are inline so that every decoder writes cells without a call; none checks `row`:
# `start_row` makes room first.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset


cdef struct Cells:
    uint8_t* values    # fixed width: one slot per row; variable width: the bytes of all rows
    int32_t* offsets   # NULL for fixed width
    uint8_t* valid     # bit 1 unless the cell is null
    int64_t used       # variable width: bytes written
    int64_t room       # variable width: bytes allocated
    int64_t hint       # variable width: bytes to begin with
    int64_t nulls
    int32_t width      # bytes of a slot, 0 for variable width


cdef class ColumnBuilders:
    cdef Cells* cells
    cdef readonly int64_t rows
    cdef int64_t room
    cdef int64_t hint
    cdef int count
    cdef readonly object schema
    cdef int grow(self) except -1
    cdef int64_t size(self) noexcept
    cdef void undo(self) noexcept
    cdef object column(self, int i)
    cpdef object take(self)


cdef int grow_bytes(Cells* c, int64_t n) except -1


cdef inline int start_row(ColumnBuilders b) except -1:
    """Makes room for row number `b.rows`; every cell of it must then be put, or `b.undo()` called."""
    if b.rows == b.room:
        b.grow()
    return 0


cdef inline void end_row(ColumnBuilders b) noexcept:
    b.rows += 1


cdef inline void put_null(Cells* c, int64_t row) noexcept nogil:
    c.valid[row >> 3] &= ~(<uint8_t> (1 << (row & 7)))
    c.nulls += 1
    if c.width == 0:
        c.offsets[row + 1] = <int32_t> c.used
    else:
        memset(c.values + row * c.width, 0, c.width)


cdef inline void put_i8(Cells* c, int64_t row, int64_t value) noexcept nogil:
    (<int8_t*> c.values)[row] = <int8_t> value


cdef inline void put_i16(Cells* c, int64_t row, int64_t value) noexcept nogil:
    (<int16_t*> c.values)[row] = <int16_t> value


cdef inline void put_i32(Cells* c, int64_t row, int64_t value) noexcept nogil:
    (<int32_t*> c.values)[row] = <int32_t> value


cdef inline void put_i64(Cells* c, int64_t row, int64_t value) noexcept nogil:
    (<int64_t*> c.values)[row] = value


cdef inline void put_i128(Cells* c, int64_t row, uint64_t low, int64_t high) noexcept nogil:
    (<uint64_t*> c.values)[2 * row] = low
    (<int64_t*> c.values)[2 * row + 1] = high


cdef inline void put_raw(Cells* c, int64_t row, const uint8_t* value) noexcept nogil:
    """Copies `c.width` bytes: FLOAT and DOUBLE are the same on the wire and in Arrow (little endian)."""
    memcpy(c.values + row * c.width, value, c.width)


cdef inline uint8_t* reserve_bytes(Cells* c, int64_t n) except NULL:
    """Room for `n` more bytes of the row's value; write there, then call `keep_bytes`."""
    if c.used + n > c.room:
        grow_bytes(c, n)
    return c.values + c.used


cdef inline void keep_bytes(Cells* c, int64_t row, int64_t n) noexcept nogil:
    c.used += n
    c.offsets[row + 1] = <int32_t> c.used


cdef inline int put_bytes(Cells* c, int64_t row, const uint8_t* value, int64_t n) except -1:
    memcpy(reserve_bytes(c, n), value, n)
    keep_bytes(c, row, n)
    return 0
