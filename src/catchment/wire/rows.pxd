from libc.stdint cimport int64_t

from catchment.wire.cursor cimport Cursor
from catchment.wire.tablemap cimport TableMap

cdef enum:
    OP_INSERT, OP_DELETE, OP_UPDATE

cdef enum:
    ROWS_READ, ROWS_MALFORMED, ROWS_INCOMPLETE


cdef struct Order:
    int64_t sequence     # of the next image row
    int64_t group        # ordinal of the group the rows stand in
    bint key_only        # BEFORE images hold the key only and are left out when the key stays


cdef int read_rows(TableMap m, Cursor* body, int op, Order* order) except -1
