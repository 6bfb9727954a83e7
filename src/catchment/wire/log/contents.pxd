from catchment.wire.cells.cursor cimport Cursor
from catchment.wire.log.events cimport Event, EventReader
from catchment.wire.log.groups cimport Groups
from catchment.wire.log.rows cimport Order
from catchment.wire.cells.plans cimport TableMap
from catchment.wire.log.met_tables cimport Tables


cdef bytes as_bytes(Cursor* c)
cdef str read_text(Cursor* c)


cdef class Contents:
    cdef EventReader reader
    cdef Tables tables
    cdef Groups groups
    cdef Order order
    cdef list met                 # facts.LogFile in order
    cdef readonly list facts
    cdef object xid               # of the open group
    cdef int flags                # of the open group's GTID event
    cdef int extra                # further flags of that event: parts of a two-phase ALTER
    cdef object follow            # callable, Ddl -> definitions that it changes; None: there is none
    cdef int kind                 # of the open group so far
    cdef public bint folds        # the server has names of tables in lower case
    cdef object same_savepoint    # makes two names of savepoints the same text where the server takes them for one
    cdef bint begun               # MySQL: the open group began with BEGIN or XA START
    cdef object here(self, Event* e)
    cdef int on_gtid(self, Event* e) except -1
    cdef int on_table_map(self, Event* e) except -1
    cdef int leave(self, Event* e, object table, object why) except -1
    cdef int on_rows(self, Event* e) except -1
    cdef bytes unpacked(self, bytes body, bint update)
    cdef int read_images(self, Event* e, TableMap table, Cursor* body, int op) except -1
    cdef int on_query(self, Event* e) except -1
    cdef int on_statement(self, Event* e, object query) except -1
    cdef int on_ddl(self, Event* e, object query, bint flagged) except -1
    cdef int on_first_statement(self, Event* e, object verb, object query) except -1
    cdef int on_savepoint(self, object verb, object name) except -1
    cdef int on_xa_prepare(self, Event* e) except -1
    cdef int end_group(self, Event* e, int kind) except -1
