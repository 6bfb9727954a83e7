from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

from catchment.wire.cells.builders cimport ColumnBuilders

# How a cell is decoded, chosen once per column. Up to LAST_FIXED a cell has `size` bytes, behind it `size`
# is that of the length in front of the cell. Those behind CELL_BYTES are read by wire/log/strings.py.
cdef enum:
    CELL_I8, CELL_U8, CELL_I16, CELL_U16, CELL_I24, CELL_U24, CELL_I32, CELL_U32, CELL_I64, CELL_U64
    CELL_RAW, CELL_DECIMAL, CELL_LONG_DECIMAL, CELL_BIT, CELL_BIT64, CELL_YEAR, CELL_DATE
    CELL_TIME, CELL_DATETIME, CELL_TIMESTAMP, CELL_ENUM, CELL_SET
    LAST_FIXED
    CELL_UTF8, CELL_BYTES, CELL_JSON
    CELL_SINGLE, CELL_SWE7, CELL_PAIRS, CELL_UCS2, CELL_UTF16, CELL_UTF16LE, CELL_UTF32
    CELL_PADDED, CELL_UUID, CELL_INET4, CELL_INET6, CELL_COMPRESSED


cdef struct Plan:
    int code
    int size
    int digits           # DECIMAL: before the point. BINARY: its length. ENUM and SET: number of labels
    int scale            # DECIMAL: after the point. TIME, DATETIME, TIMESTAMP: fractional digits
    bint key
    uint8_t* table       # single-byte character set: 256 entries of length and 3 bytes; labels: their bytes
    int inner            # of a compressed column: how its bytes are read once they are inflated
    const uint16_t* grid # code points of a character set of several bytes (charsets.grid); not owned
    bint triples         # whether `grid` has codes of three bytes
    bint fours           # whether `grid` has codes of four bytes, as GB 18030
    int32_t* ends        # where each label ends in `table`; the first one, of index 0, is empty


cdef struct Span:
    const uint8_t* at    # NULL for a null cell
    int64_t size


cdef class TableMap:
    cdef readonly uint64_t number
    cdef public bint wanted
    cdef readonly object table
    cdef bytes body
    cdef int count
    cdef int null_bytes
    cdef int keys
    cdef bytes hidden    # one byte for each column: whether it is one that images may lack (model.definition.HIDDEN)
    cdef list grids      # keeps the memory of `Plan.grid` alive
    cdef Plan* plans
    cdef Span* spans     # two sets of `keys`: the key in the before and in the after image
    cdef ColumnBuilders images
    cdef int plan_column(self, int i, object column, int code, int meta) except -1
    cdef int plan_string(self, Plan* p, object column) except -1
    cdef int plan_text(self, Plan* p, object charset) except -1
    cdef int plan_labels(self, Plan* p, object labels) except -1
