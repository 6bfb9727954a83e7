# Rules for single values that both decoders share (DESIGN section 6): which dates exist, what valid UTF-8 is.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from catchment.wire.cells.builders cimport Cells, keep_bytes, reserve_bytes


cdef extern from *:
    ctypedef unsigned long long uint128 "unsigned __int128"

cdef enum:
    NO_DATE = -2147483648

cdef enum:
    DAY_US = 86400000000


cdef inline int32_t date_days(int year, int month, int day) noexcept nogil:
    """Days since 1970-01-01 in the Gregorian calendar; NO_DATE when year, month or day does not exist."""
    cdef int length, era, of_era
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1 or day > 31:
        return NO_DATE
    if day > 28:
        length = 31
        if month == 2:
            length = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
        elif month == 4 or month == 6 or month == 9 or month == 11:
            length = 30
        if day > length:
            return NO_DATE
    # Years begin in March, so that the leap day is the last of its year; an era is 400 years.
    if month <= 2:
        year -= 1
        month += 12
    era = year // 400
    of_era = year - era * 400
    return (
        era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + (153 * (month - 3) + 2) // 5 + day - 1 - 719468
    )


cdef inline bint is_ascii(const uint8_t* p, int64_t n) noexcept nogil:
    cdef uint64_t seen = 0
    cdef uint64_t word
    cdef int64_t i = 0
    if n >= 8:
        while i + 8 <= n:
            memcpy(&word, p + i, 8)
            seen |= word
            i += 8
        memcpy(&word, p + n - 8, 8)
        return ((seen | word) & <uint64_t> 0x8080808080808080) == 0
    while i < n:
        seen |= p[i]
        i += 1
    return (seen & 0x80) == 0


cdef inline bint is_utf8(const uint8_t* p, int64_t n) noexcept nogil:
    """Whether the bytes are UTF-8 as Arrow wants it: shortest form, no surrogates, up to U+10FFFF."""
    cdef int64_t i = 0
    cdef uint32_t point, c
    cdef int more, k
    if is_ascii(p, n):
        return True
    while i < n:
        c = p[i]
        i += 1
        if c < 0x80:
            continue
        if c < 0xC2 or c > 0xF4:
            return False
        more = 1 if c < 0xE0 else 2 if c < 0xF0 else 3
        if i + more > n:
            return False
        point = c & (0x3F >> more)
        for k in range(more):
            if p[i] & 0xC0 != 0x80:
                return False
            point = point << 6 | (p[i] & 0x3F)
            i += 1
        if more == 2 and (point < 0x800 or (point >= 0xD800 and point < 0xE000)):
            return False
        if more == 3 and (point < 0x10000 or point > 0x10FFFF):
            return False
    return True


cdef inline bint copy_ascii(uint8_t* out, const uint8_t* p, int64_t n) noexcept nogil:
    """Copies `n` bytes; whether all of them are ASCII."""
    cdef uint64_t seen = 0
    cdef uint64_t word
    cdef int64_t i = 0
    if n >= 8:
        while i + 8 <= n:
            memcpy(&word, p + i, 8)
            memcpy(out + i, &word, 8)
            seen |= word
            i += 8
        memcpy(&word, p + n - 8, 8)
        memcpy(out + n - 8, &word, 8)
        return ((seen | word) & <uint64_t> 0x8080808080808080) == 0
    while i < n:
        out[i] = p[i]
        seen |= p[i]
        i += 1
    return (seen & 0x80) == 0


cdef inline int put_utf8(Cells* c, int64_t row, const uint8_t* p, int64_t n) except -1:
    """Copies text that is UTF-8 already; 1 when it is not, with nothing put."""
    if not copy_ascii(reserve_bytes(c, n), p, n) and not is_utf8(p, n):
        return 1
    keep_bytes(c, row, n)
    return 0
