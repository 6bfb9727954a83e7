from libc.stdint cimport int64_t

from catchment.wire.cells.cursor cimport Cursor
from catchment.wire.log.events cimport (
    EVENT_DELETE_ROWS,
    EVENT_DELETE_ROWS_2,
    EVENT_DELETE_ROWS_2_PACKED,
    EVENT_PARTIAL_UPDATE_ROWS,
    EVENT_WRITE_ROWS,
    EVENT_WRITE_ROWS_2,
    EVENT_WRITE_ROWS_2_PACKED,
    EVENT_WRITE_ROWS_PACKED,
)
from catchment.wire.cells.plans cimport Plan, Span, TableMap

cdef enum:
    OP_INSERT, OP_DELETE, OP_UPDATE

cdef enum:
    UNCHECKED = 4

cdef enum:
    SIDE_BEFORE, SIDE_AFTER

cdef enum:
    ROWS_READ, ROWS_MALFORMED, ROWS_INCOMPLETE


cdef struct Order:
    int64_t sequence     # of the next image row
    int64_t group        # ordinal of the group the rows stand in
    bint key_only        # BEFORE images hold the key only and are left out when the key stays
    bint sparse          # images that lack columns are read too
    int unchecked        # UNCHECKED where the session checks no foreign keys, else 0; added to the operation


# One cell that is not NULL; 1 when malformed. Raises Unsupported for text that is not of its character set.
cdef int put_cell(TableMap m, int i, int64_t row, Cursor* source) except -1
# Step over one cell that is not NULL: its bytes, those of its length included.
cdef int64_t skip_cell(Plan* p, Cursor* source) noexcept
# Note where the cells of the key of one image lie, and step over it; 1 when malformed.
cdef int find_key(TableMap m, Cursor* source, Span* spans) noexcept
# Whether the keys noted for the image before and the one after are the same bytes.
cdef bint same_key(TableMap m) noexcept
cdef int read_rows(TableMap m, Cursor* body, int op, Order* order) except -1


cdef inline bint has_extra(int kind) noexcept nogil:
    """Whether a row event of this type has a length and extra bytes (partition, NDB) behind its flags."""
    return (
        EVENT_WRITE_ROWS_2 <= kind <= EVENT_DELETE_ROWS_2
        or kind == EVENT_PARTIAL_UPDATE_ROWS
        or kind >= EVENT_WRITE_ROWS_2_PACKED
    )


cdef inline int row_operation(int kind) noexcept nogil:
    """Operation of a row event type, -1 for other types. The types come in runs of insert, update, delete."""
    if EVENT_WRITE_ROWS <= kind <= EVENT_DELETE_ROWS:
        kind -= EVENT_WRITE_ROWS
    elif EVENT_WRITE_ROWS_2 <= kind <= EVENT_DELETE_ROWS_2:
        kind -= EVENT_WRITE_ROWS_2
    elif EVENT_WRITE_ROWS_PACKED <= kind <= EVENT_DELETE_ROWS_2_PACKED:
        kind = (kind - EVENT_WRITE_ROWS_PACKED) % 3
    elif kind == EVENT_PARTIAL_UPDATE_ROWS:
        return OP_UPDATE
    else:
        return -1
    return OP_INSERT if kind == 0 else OP_UPDATE if kind == 1 else OP_DELETE
