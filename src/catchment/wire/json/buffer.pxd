# Text of a cell that is written piece by piece, behind the bytes that the column has already. `keep_bytes`
# with its size makes it the cell's value; left alone it never was.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from catchment.wire.cells.builders cimport Cells, grow_bytes


cdef struct Text:
    Cells* cells
    int64_t size         # bytes written
    int64_t unread       # bytes of the source that no value has taken yet


cdef inline int write_bytes(Text* t, const uint8_t* source, int64_t n) except -1:
    cdef Cells* c = t.cells
    if c.used + t.size + n > c.room:
        grow_bytes(c, t.size + n)
    memcpy(c.values + c.used + t.size, source, n)
    t.size += n
    return 0


cdef inline int write(Text* t, const char* source, int64_t n) except -1:
    return write_bytes(t, <const uint8_t*> source, n)


cdef inline int write_number(Text* t, uint64_t value, bint negative, int width) except -1:
    """A decimal number of at least `width` <= 20 digits."""
    cdef uint8_t[24] digits
    cdef int at = 24
    while value or at > 24 - width:
        at -= 1
        digits[at] = 48 + value % 10
        value //= 10
    if negative:
        at -= 1
        digits[at] = 45
    return write_bytes(t, &digits[at], 24 - at)
