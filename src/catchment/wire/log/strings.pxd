# Strings of the log that are more than a copy. `put_string` puts one cell and returns 0, 1 when its bytes are malformed,
# or NOT_TEXT when they are no text of the column's character set.

from libc.stdint cimport int64_t, uint8_t

from catchment.wire.cells.builders cimport Cells
from catchment.wire.cells.plans cimport Plan

cdef enum:
    NOT_TEXT = 2


cdef int put_string(Plan* p, Cells* c, int64_t row, const uint8_t* source, int64_t n) except -1

# Used in strings.py alone. `code` is p.code, or p.inner of a column whose value was compressed.
cdef int put_plain(Plan* p, Cells* c, int64_t row, const uint8_t* source, int64_t n, int code) except -1
cdef int put_single_byte(Plan* p, Cells* c, int64_t row, const uint8_t* source, int64_t n, int code) except -1
cdef int put_pairs(Plan* p, Cells* c, int64_t row, const uint8_t* source, int64_t n) except -1
cdef int put_wide(Cells* c, int64_t row, const uint8_t* source, int64_t n, int code) except -1
cdef int put_fixed(Plan* p, Cells* c, int64_t row, const uint8_t* source, int64_t n, int code) except -1
cdef int put_compressed(Plan* p, Cells* c, int64_t row, const uint8_t* source, int64_t n) except -1
