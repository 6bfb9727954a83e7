from libc.stdint cimport int64_t

from catchment.wire.cursor cimport Cursor
from catchment.wire.events cimport (
    EVENT_DELETE_ROWS,
    EVENT_DELETE_ROWS_2,
    EVENT_DELETE_ROWS_2_PACKED,
    EVENT_WRITE_ROWS,
    EVENT_WRITE_ROWS_2,
    EVENT_WRITE_ROWS_PACKED,
)
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


cdef inline int row_operation(int kind) noexcept nogil:
    """Operation of a row event type, -1 for other types. The types come in runs of insert, update, delete."""
    if EVENT_WRITE_ROWS <= kind <= EVENT_DELETE_ROWS:
        kind -= EVENT_WRITE_ROWS
    elif EVENT_WRITE_ROWS_2 <= kind <= EVENT_DELETE_ROWS_2:
        kind -= EVENT_WRITE_ROWS_2
    elif EVENT_WRITE_ROWS_PACKED <= kind <= EVENT_DELETE_ROWS_2_PACKED:
        kind = (kind - EVENT_WRITE_ROWS_PACKED) % 3
    else:
        return -1
    return OP_INSERT if kind == 0 else OP_UPDATE if kind == 1 else OP_DELETE
