from libc.stdint cimport int64_t, uint8_t

from catchment.wire.cells.builders cimport Cells

# Types of values (MySQL: sql-common/json_binary.cc).
cdef enum:
    JSON_SMALL_OBJECT, JSON_LARGE_OBJECT, JSON_SMALL_ARRAY, JSON_LARGE_ARRAY
    JSON_LITERAL, JSON_INT16, JSON_UINT16, JSON_INT32, JSON_UINT32, JSON_INT64, JSON_UINT64
    JSON_DOUBLE, JSON_STRING
    JSON_OPAQUE = 15


# 0, or 1 when the bytes are malformed, and then nothing is put.
cdef int put_json(Cells* c, int64_t row, const uint8_t* source, int64_t n) except -1
