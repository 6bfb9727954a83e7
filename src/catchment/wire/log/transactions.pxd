from catchment.wire.log.contents cimport Contents
from catchment.wire.cells.cursor cimport Cursor
from catchment.wire.log.events cimport Event


cdef class Transactions(Contents):
    cdef int on_gtid_log(self, Event* e) except -1
    cdef int on_gtid_tagged(self, Event* e) except -1
    cdef int begin_group(self, Event* e) except -1
    cdef int on_payload(self, Event* e) except -1
    cdef int unpack(self, object payload, Event* e) except -1
    cdef int on_inner(self, Event* e) except -1
