from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from catchment.wire.cells.builders cimport ColumnBuilders

# In the order of model.position.GroupKind.
cdef enum:
    KIND_TRANSACTION, KIND_ROLLED_BACK, KIND_DDL, KIND_COMPLETED_DDL, KIND_XA_PREPARE, KIND_XA_END


cdef struct Group:
    int file               # index of its file
    int64_t start
    int64_t end
    uint32_t domain
    uint32_t server_id
    uint64_t sequence
    int kind
    bint named             # by MySQL: `uuid`, `tag` and `sequence` are its GTID
    uint8_t uuid[16]
    uint8_t tag[32]
    int tag_size


cdef class Groups:
    cdef ColumnBuilders rows
    cdef Group open_group
    cdef Group last
    cdef bint open
    cdef bint any
    cdef int64_t ordinal        # of the open group, or of the next one
    cdef int64_t first_image    # sequence of the first image row of the open group
    cdef list savepoints        # (name, sequence) in the order set
    cdef list voids
    cdef void begin(self, int64_t image) noexcept
    cdef int end(self, int kind, int64_t at, int64_t timestamp) except -1
    cdef int drop(self, int64_t image) except -1
    cdef int undo(self, int64_t first, int64_t image) except -1
    cdef int set_savepoint(self, object name, int64_t image) except -1
    cdef int release(self, object name) except -1
    cdef int roll_back_to(self, object name, int64_t image) except -1
