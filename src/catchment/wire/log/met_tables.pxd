from libc.stdint cimport int64_t, uint64_t

from catchment.wire.cells.cursor cimport Cursor
from catchment.wire.cells.plans cimport TableMap


cdef class Tables:
    cdef object wanted         # collection of TableId; None: all
    cdef object keys           # TableId -> names of its key columns
    cdef object kinds          # TableId -> kinds of columns that the log declares as BINARY
    cdef object definitions    # TableId -> Definition as of the start, for table maps that lack metadata
    cdef dict redefined        # those that DDL has changed since
    cdef set gone              # TableId of tables whose rows are not decoded any more
    cdef int mysql             # version of the MySQL that writes, as 80015; 0: MariaDB
    cdef dict maps             # number -> TableMap
    cdef bint between_statements  # the last row event ended its statement
    cdef dict builders         # Table -> ColumnBuilders
    cdef list full             # Images taken early, since their builders were large
    cdef TableMap last
    cdef int redefine(self, object changes) except -1
    cdef int declare(self, uint64_t number, Cursor* body) except -1
    cdef TableMap find(self, uint64_t number)
    cdef int bound(self, TableMap m) except -1
    cdef int written_by(self, int mysql) except -1
    cdef int64_t size(self) except -1
    cpdef list take(self)
