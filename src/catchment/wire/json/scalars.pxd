from libc.stdint cimport int64_t, uint8_t

from catchment.wire.json.buffer cimport Text

# Each appends one value and returns 0, or 1 when its bytes are malformed.
cdef int write_string(Text* t, const uint8_t* source, int64_t n) except -1
cdef int write_double(Text* t, const uint8_t* source) except -1
cdef int write_opaque(Text* t, int kind, const uint8_t* source, int64_t n) except -1
