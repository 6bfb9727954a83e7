from libc.stdint cimport uint8_t

from catchment.wire.cells.cursor cimport Cursor
from catchment.wire.log.rows cimport Order
from catchment.wire.cells.plans cimport TableMap


# As rows.read_rows. `partial`: the event is a PARTIAL_UPDATE_ROWS.
cdef int read_sparse(TableMap m, Cursor* body, int op, Order* order, bint partial) except -1
# Names of the columns that the images of a row event have: (before, after); `body` is not moved.
cdef tuple columns_present(TableMap m, Cursor body, int op)
