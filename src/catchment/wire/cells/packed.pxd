# Each puts one cell and returns 0, or 1 when its bytes are malformed. `source` has as many bytes as the plan says.

from libc.stdint cimport int64_t, uint8_t

from catchment.wire.cells.builders cimport Cells
from catchment.wire.cells.plans cimport Plan


cdef int put_decimal(Plan* p, Cells* c, int64_t row, uint8_t* source) noexcept
cdef int put_time(Plan* p, Cells* c, int64_t row, uint8_t* source) noexcept
cdef int put_datetime(Plan* p, Cells* c, int64_t row, uint8_t* source) noexcept
cdef int put_timestamp(Plan* p, Cells* c, int64_t row, uint8_t* source) noexcept
cdef int put_long_decimal(Plan* p, Cells* c, int64_t row, uint8_t* source) except -1
cdef int put_label(Plan* p, Cells* c, int64_t row, uint8_t* source) except -1
cdef int put_labels(Plan* p, Cells* c, int64_t row, uint8_t* source) except -1

cdef int decimal_text(Plan* p, uint8_t* source, uint8_t* text, int* first) noexcept
cdef int decimal_size(int digits) noexcept
