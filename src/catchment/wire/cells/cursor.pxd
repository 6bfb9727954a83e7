# A bounds-checked reader over bytes of someone else: the only way to touch the bytes of an event.
# `claim` gives a pointer to the next n bytes or NULL. The number readers return 0 past the end and set
# `missing`, so that a fixed header is read as a whole and checked once.
#
# In the loops over rows and events `cursor_over` makes a Cursor; nothing copies one. A copy is one wide load, which
# waits for the narrow stores just before it. It cost a third of the time of a narrow row.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end
    bint missing


cdef inline Cursor cursor_over(const uint8_t* start, int64_t size) noexcept nogil:
    cdef Cursor c
    c.at = start
    c.end = start + size
    c.missing = False
    return c


cdef inline int64_t left(Cursor* c) noexcept nogil:
    return c.end - c.at


cdef inline const uint8_t* claim(Cursor* c, uint64_t n) noexcept nogil:
    cdef const uint8_t* start = c.at
    if n > <uint64_t> (c.end - start):
        c.missing = True
        return NULL
    c.at = start + n
    return start


cdef inline uint64_t little(const uint8_t* p, int n) noexcept nogil:
    """Unsigned integer of `n` <= 8 bytes, lowest first; four and eight as this machine's own (Arrow asks for that)."""
    cdef uint64_t value = 0
    cdef uint32_t half
    cdef int i
    if n == 8:
        memcpy(&value, p, 8)
        return value
    if n == 4:
        memcpy(&half, p, 4)
        return half
    for i in range(n):
        value |= (<uint64_t> p[i]) << (8 * i)
    return value


cdef inline uint64_t big(const uint8_t* p, int n) noexcept nogil:
    """Unsigned integer of `n` <= 8 bytes, highest first."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(n):
        value = value << 8 | p[i]
    return value


cdef inline uint64_t read_little(Cursor* c, int n) noexcept nogil:
    cdef const uint8_t* p = claim(c, n)
    return 0 if p == NULL else little(p, n)


cdef inline uint64_t read_lenenc(Cursor* c) noexcept nogil:
    """Length-encoded integer (MySQL protocol); 0xFB and 0xFF are no lengths and count as missing."""
    cdef uint64_t first = read_little(c, 1)
    if first < 0xFB:
        return first
    if first == 0xFC:
        return read_little(c, 2)
    if first == 0xFD:
        return read_little(c, 3)
    if first == 0xFE:
        return read_little(c, 8)
    c.missing = True
    return 0
