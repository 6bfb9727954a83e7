# One cell of a row in the binary protocol (MariaDB manual: Result Set Row, "Binary ResultSet row"), read into a
# column builder. Nothing here raises but for memory: a cell that cannot be read gives a Fault.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from catchment.wire.cells.builders cimport (
    Cells, ColumnBuilders, put_bytes, put_i16, put_i32, put_i64, put_i128, put_null, put_raw,
)
from catchment.wire.cells.cursor cimport Cursor, big, claim, little, read_lenenc
from catchment.wire.packets.reader cimport PacketReader
from catchment.wire.cells.values cimport DAY_US, NO_DATE, date_days, put_utf8, uint128

cdef enum Reader:
    READ_RAW        # the wire's bytes are Arrow's: signed integers, FLOAT, DOUBLE, YEAR
    READ_UINT8
    READ_UINT16
    READ_UINT24
    READ_UINT32
    READ_UINT64
    READ_DECIMAL
    READ_LONG_DECIMAL
    READ_BIT
    READ_DATE
    READ_TIME
    READ_DATETIME
    READ_TEXT
    READ_BYTES

cdef enum Fault:
    FINE
    TOO_SHORT
    BAD_LENGTH
    BAD_TIME
    BAD_NUMBER
    BAD_TEXT

cdef enum Stage:
    AT_COUNT
    AT_DEFINITIONS
    AT_DEFINITIONS_END
    AT_ROWS
    AT_END
    BROKEN

cdef struct Field:
    Reader reader
    int digits  # of a DECIMAL; bits of a BIT
    int scale


cdef class ResultDecoder:
    cdef readonly int64_t rows
    cdef readonly bint ended
    cdef readonly int warning_count
    cdef readonly int status
    cdef tuple columns
    cdef ColumnBuilders builders
    cdef PacketReader packets
    cdef Field* fields
    cdef int count
    cdef Stage stage
    cdef int defined
    cdef bint without_eof  # EOF packets are deprecated: an OK packet ends the rows
    cdef int on_packet(self, Cursor* packet) except -1
    cdef int on_header(self, Cursor* packet) except -1
    cdef int on_end(self, Cursor* packet) except -1
    cdef int on_row(self, Cursor* packet) except -1
    cdef object fault(self, int column, int fault)


cdef inline int unsigned_cell(Field* f, Cells* c, int64_t row, const uint8_t* p) noexcept nogil:
    if f.reader == READ_UINT8:
        put_i16(c, row, p[0])
    elif f.reader == READ_UINT16:
        put_i32(c, row, <int64_t> little(p, 2))
    elif f.reader == READ_UINT24:
        put_i32(c, row, <int64_t> little(p, 4))
    elif f.reader == READ_UINT32:
        put_i64(c, row, <int64_t> little(p, 4))
    else:
        put_i128(c, row, little(p, 8), 0)
    return FINE


cdef inline int unsigned_width(Field* f) noexcept nogil:
    if f.reader == READ_UINT8:
        return 1
    if f.reader == READ_UINT16:
        return 2
    return 8 if f.reader == READ_UINT64 else 4


cdef inline int decimal_cell(Field* f, Cells* c, int64_t row, const uint8_t* p, int64_t n) noexcept nogil:
    """A DECIMAL comes as text, with ZEROFILL after zeros; at most f.digits, and f.scale after the point."""
    cdef uint128 value = 0
    cdef int digits = 0
    cdef int after = -1
    cdef bint negative = n > 0 and p[0] == b"-"
    cdef int64_t i = 1 if negative else 0
    if i == n:
        return BAD_NUMBER
    while i < n:
        if p[i] == b"." and after < 0:
            after = 0
        elif p[i] < b"0" or p[i] > b"9" or digits >= f.digits or after >= f.scale:
            return BAD_NUMBER
        else:
            value = value * 10 + (p[i] - 48)
            if value != 0:
                digits += 1
            if after >= 0:
                after += 1
        i += 1
    for i in range(f.scale - (after if after > 0 else 0)):
        value = value * 10
        if value != 0:
            digits += 1
        if digits > f.digits:
            return BAD_NUMBER
    if negative:
        value = 0 - value
    put_i128(c, row, <uint64_t> value, <int64_t> (value >> 64))
    return FINE


cdef inline int long_decimal_cell(Field* f, Cells* c, int64_t row, const uint8_t* p, int64_t n) except -1:
    """The text itself, without the zeros that ZEROFILL puts before it (the log has none)."""
    cdef int64_t point = n - f.scale - 1 if f.scale else n
    cdef int64_t i
    while n > 1 and p[0] == b"0" and p[1] != b".":
        p += 1
        n -= 1
        point -= 1
    cdef int64_t first = 1 if n and p[0] == b"-" else 0
    if point <= first or point - first > max(f.digits - f.scale, 1):
        return BAD_NUMBER
    for i in range(first, n):
        if p[i] != b"." if i == point else p[i] < b"0" or p[i] > b"9":
            return BAD_NUMBER
    put_bytes(c, row, p, n)
    return FINE


cdef inline int bit_cell(Field* f, Cells* c, int64_t row, const uint8_t* p, int64_t n) noexcept nogil:
    if n != (f.digits + 7) // 8:
        return BAD_LENGTH
    if f.digits == 64:
        put_i128(c, row, big(p, 8), 0)
    else:
        put_i64(c, row, <int64_t> big(p, <int> n))
    return FINE


cdef inline int64_t time_of_day(const uint8_t* p, int size) noexcept nogil:
    """Microseconds of hour, minute, second and, with 7 bytes, microsecond; -1 when there is no such time."""
    cdef uint64_t micro = little(p + 3, 4) if size == 7 else 0
    if p[0] > 23 or p[1] > 59 or p[2] > 59 or micro > 999999:
        return -1
    return ((p[0] * 60 + p[1]) * 60 + p[2]) * <int64_t> 1000000 + <int64_t> micro


cdef inline int date_cell(Field* f, Cells* c, int64_t row, const uint8_t* p, int n) noexcept nogil:
    """DATE, DATETIME or TIMESTAMP in 0, 4, 7 or 11 bytes: what is left out is zero. Zero dates become null."""
    cdef int32_t days = NO_DATE
    cdef int64_t time = 0
    if n != 0 and n != 4 and (f.reader == READ_DATE or (n != 7 and n != 11)):
        return BAD_LENGTH
    if n:
        if p[2] > 12 or p[3] > 31:
            return BAD_TIME
        days = date_days(<int> little(p, 2), p[2], p[3])
    if n > 4:
        time = time_of_day(p + 4, n - 4)
        if time < 0:
            return BAD_TIME
    if days == NO_DATE:
        put_null(c, row)
    elif f.reader == READ_DATE:
        put_i32(c, row, days)
    else:
        put_i64(c, row, days * <int64_t> DAY_US + time)
    return FINE


cdef inline int time_cell(Cells* c, int64_t row, const uint8_t* p, int n) noexcept nogil:
    """TIME in 0, 8 or 12 bytes: sign, days, hours, minutes, seconds, microseconds."""
    cdef int64_t time = 0
    if n != 0 and n != 8 and n != 12:
        return BAD_LENGTH
    if n:
        time = time_of_day(p + 5, n - 5)
        if time < 0 or p[0] > 1 or little(p + 1, 4) > 34:  # 838 hours are 34 days and 22 hours
            return BAD_TIME
        time += <int64_t> little(p + 1, 4) * DAY_US
    put_i64(c, row, -time if n and p[0] else time)
    return FINE


cdef inline int read_cell(Field* f, Cells* c, int64_t row, Cursor* packet) except -1:
    """Reads one value that is not NULL; returns a Fault."""
    cdef const uint8_t* p
    cdef uint64_t n
    if f.reader <= READ_UINT64:
        n = c.width if f.reader == READ_RAW else unsigned_width(f)
    elif READ_DATE <= f.reader <= READ_DATETIME:
        p = claim(packet, 1)
        if p == NULL:
            return TOO_SHORT
        n = p[0]
    else:
        n = read_lenenc(packet)
        if packet.missing:
            return TOO_SHORT
    p = claim(packet, n)
    if p == NULL:
        return TOO_SHORT
    if f.reader == READ_RAW:
        put_raw(c, row, p)
        return FINE
    if f.reader == READ_TEXT:
        return BAD_TEXT if put_utf8(c, row, p, <int64_t> n) else FINE
    if f.reader == READ_BYTES:
        return put_bytes(c, row, p, <int64_t> n)
    if f.reader <= READ_UINT64:
        return unsigned_cell(f, c, row, p)
    if f.reader == READ_DECIMAL:
        return decimal_cell(f, c, row, p, <int64_t> n)
    if f.reader == READ_LONG_DECIMAL:
        return long_decimal_cell(f, c, row, p, <int64_t> n)
    if f.reader == READ_BIT:
        return bit_cell(f, c, row, p, <int64_t> n)
    if f.reader == READ_TIME:
        return time_cell(c, row, p, <int> n)
    return date_cell(f, c, row, p, <int> n)
