from libc.stdint cimport int64_t, uint8_t

from catchment.wire.cells.cursor cimport Cursor


cdef class PacketReader:
    cdef const uint8_t* fed       # what is left of the bytes of this feed
    cdef const uint8_t* fed_end
    cdef uint8_t* held            # payload of a packet that one feed did not hold whole
    cdef int64_t used
    cdef int64_t room
    cdef int64_t wanted           # payload bytes of the current part still to come
    cdef uint8_t[4] head
    cdef int head_used
    cdef bint more                # the current part is full (16 MB): another one follows
    cdef bint given               # the held packet was given out
    cdef int sequence             # of the next packet; -1 before the first
    cdef void start(self, const uint8_t* data, int64_t size) noexcept
    cdef int next(self, Cursor* packet) except -1
    cdef int check_sequence(self, int number) except -1
    cdef int assemble(self, Cursor* packet) except -1
    cdef int hold(self, int64_t n) except -1
