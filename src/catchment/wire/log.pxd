from libc.stdint cimport int64_t

from catchment.wire.cursor cimport Cursor
from catchment.wire.events cimport Event, EventReader
from catchment.wire.groups cimport Groups
from catchment.wire.packets cimport PacketReader
from catchment.wire.rows cimport Order
from catchment.wire.tables cimport Tables


cdef class LogDecoder:
    cdef PacketReader packets
    cdef EventReader reader
    cdef Tables tables
    cdef Groups groups
    cdef Order order
    cdef list met                 # _File in order
    cdef readonly list facts
    cdef object start
    cdef object stop
    cdef object error             # what broke the decoder
    cdef object xid               # of the open group
    cdef int flags                # of the open group's GTID event
    cdef int kind                 # of the open group so far
    cdef int64_t place            # end of the last event between groups
    cdef int64_t stop_offset      # of the stop in this file; beyond all offsets in another one
    cdef bint started             # the first event, an artificial rotation, has come
    cdef readonly bint ended
    cdef readonly bint reached_stop
    cdef object here(self, Event* e)
    cdef int on_packet(self, Cursor* packet) except -1
    cdef int on_event(self, Cursor* packet) except -1
    cdef int arrive(self, int64_t offset) except -1
    cdef int dispatch(self, Event* e) except -1
    cdef int dispatch_rare(self, Event* e) except -1
    cdef int on_gtid(self, Event* e) except -1
    cdef int on_table_map(self, Event* e) except -1
    cdef int on_rows(self, Event* e) except -1
    cdef int on_query(self, Event* e) except -1
    cdef int on_statement(self, Event* e, object query) except -1
    cdef int on_savepoint(self, object verb, object name) except -1
    cdef int on_rotate(self, Event* e) except -1
    cdef int on_format(self, Event* e) except -1
    cdef int on_gtid_list(self, Event* e) except -1
    cdef int on_xa_prepare(self, Event* e) except -1
    cdef int end_group(self, Event* e, int kind) except -1
    cdef int incomplete(self, Event* e, object table) except -1
