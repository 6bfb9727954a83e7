from libc.stdint cimport int64_t, uint8_t, uint32_t

from catchment.wire.cells.cursor cimport Cursor

# Event types (MariaDB manual: "1-Binlog Events"; MySQL: mysql/binlog/event/binlog_event.h). Those from 28 to 42,
# but for 30 to 32 and 38, are MySQL's alone, those from 160 on MariaDB's.
cdef enum:
    EVENT_QUERY = 2
    EVENT_STOP = 3
    EVENT_ROTATE = 4
    EVENT_INTVAR = 5
    EVENT_APPEND_BLOCK = 9
    EVENT_DELETE_FILE = 11
    EVENT_RAND = 13
    EVENT_USER_VAR = 14
    EVENT_FORMAT = 15
    EVENT_XID = 16
    EVENT_BEGIN_LOAD_QUERY = 17
    EVENT_EXECUTE_LOAD_QUERY = 18
    EVENT_TABLE_MAP = 19
    EVENT_WRITE_ROWS = 23
    EVENT_UPDATE_ROWS = 24
    EVENT_DELETE_ROWS = 25
    EVENT_INCIDENT = 26
    EVENT_HEARTBEAT = 27
    EVENT_IGNORABLE = 28
    EVENT_ROWS_QUERY = 29
    EVENT_WRITE_ROWS_2 = 30
    EVENT_UPDATE_ROWS_2 = 31
    EVENT_DELETE_ROWS_2 = 32
    EVENT_GTID_LOG = 33
    EVENT_ANONYMOUS_GTID = 34
    EVENT_PREVIOUS_GTIDS = 35
    EVENT_TRANSACTION_CONTEXT = 36
    EVENT_VIEW_CHANGE = 37
    EVENT_XA_PREPARE = 38
    EVENT_PARTIAL_UPDATE_ROWS = 39
    EVENT_TRANSACTION_PAYLOAD = 40
    EVENT_HEARTBEAT_2 = 41
    EVENT_GTID_TAGGED = 42
    EVENT_ANNOTATE_ROWS = 160
    EVENT_CHECKPOINT = 161
    EVENT_GTID = 162
    EVENT_GTID_LIST = 163
    EVENT_START_ENCRYPTION = 164
    EVENT_QUERY_PACKED = 165
    EVENT_WRITE_ROWS_PACKED = 166
    EVENT_UPDATE_ROWS_PACKED = 167
    EVENT_DELETE_ROWS_PACKED = 168
    EVENT_WRITE_ROWS_2_PACKED = 169
    EVENT_UPDATE_ROWS_2_PACKED = 170
    EVENT_DELETE_ROWS_2_PACKED = 171

# Flags of an event's header.
cdef enum:
    FLAG_IN_USE = 0x01
    FLAG_THREAD_SPECIFIC = 0x04  # of a statement: it used a temporary table
    FLAG_ARTIFICIAL = 0x20
    FLAG_IGNORABLE = 0x80


cdef struct Event:
    int type
    int flags
    int64_t timestamp
    uint32_t server_id
    uint32_t next        # offset of the next event, modulo 2**32; 0 in some artificial events
    int64_t size         # of the whole event
    int64_t start        # where it begins in its file; of an artificial event: where the reader stands
    bint artificial      # made by the server for this dump; it is not in the file
    Cursor body          # behind the header, without the checksum


cdef class EventReader:
    cdef bint verify
    cdef bint checksums
    cdef bint known            # a format event was read
    cdef bint mysql            # it was written by MySQL
    cdef bint adrift           # the event before, of an open group, did not say where it ends
    cdef readonly str file
    cdef readonly int64_t offset
    cdef int64_t current       # where the event opened last begins
    cdef int64_t marked        # size of the event marked last; 0: it is none by which a log is told
    cdef uint32_t crc          # of that event
    cdef int open(self, Cursor* packet, Event* e) except -1
    cdef int open_inner(self, Cursor* source, Event* outer, Event* e) except -1
    cdef int on_format(self, Cursor* body) except -1
    cdef int find_checksum(self, Cursor* packet, Event* e) except -1
    cdef int mark(self, Cursor* packet, Event* e) except -1
    cdef int advance(self, Event* e, bint within_group) except -1
    cdef int enter(self, str file, int64_t offset) except -1
    cdef int corrupt(self, str what) except -1
