from libc.stdint cimport int64_t

from catchment.wire.cells.cursor cimport Cursor
from catchment.wire.log.events cimport Event
from catchment.wire.packets.reader cimport PacketReader
from catchment.wire.log.transactions cimport Transactions


cdef class LogDecoder(Transactions):
    cdef PacketReader packets
    cdef object start
    cdef object stop
    cdef object error             # what broke the decoder
    cdef readonly object begins   # where the dump has to begin
    cdef object known             # the event in front of the start as it was read before; None: not to be compared
    cdef int64_t awaited          # where that event ends; 0 once it has come
    cdef int64_t place            # end of the last event between groups
    cdef int64_t stop_offset      # of the stop in this file; beyond all offsets in another one
    cdef bint started             # the first event, an artificial rotation, has come
    cdef readonly bint ended
    cdef readonly bint reached_stop
    cdef int on_packet(self, Cursor* packet) except -1
    cdef int on_event(self, Cursor* packet) except -1
    cdef int on_known(self) except -1
    cdef int arrive(self, int64_t offset) except -1
    cdef int dispatch(self, Event* e) except -1
    cdef int dispatch_rare(self, Event* e) except -1
    cdef int between_groups(self, Event* e) except -1
    cdef int complete_file(self) except -1
    cdef int on_rotate(self, Event* e) except -1
    cdef int enter_file(self, str name, int64_t offset) except -1
    cdef int on_format(self, Event* e) except -1
    cdef int on_gtid_list(self, Event* e) except -1
    cdef int on_previous_gtids(self, Event* e) except -1
