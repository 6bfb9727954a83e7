# Values of Arrow columns and encoded keys, one at a time: how they lie, how they are hashed, how they are written.
# Nothing here checks a row number: the loops of keys.py stay inside the chunks they were given.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

cdef extern from *:
    """
    /* How values of a chunk lie (layouts.py). Those from SMALL_BYTES on are strings of bytes. */
    enum { INT = 1, UINT, FLOAT, BOOL, DECIMAL, NOTHING, SMALL_BYTES, LARGE_BYTES, FIXED_BYTES };
    #define SIGN 0x8000000000000000ULL
    #define ROW_BITS 0xFFFFFFFFULL
    #define NULL_WORD 0xC2D05E3A7B1F4869ULL
    /* Primes of xxHash64 (doc/xxhash_spec.md of github.com/Cyan4973/xxHash). */
    #define P1 0x9E3779B185EBCA87ULL
    #define P2 0xC2B2AE3D27D4EB4FULL
    #define P3 0x165667B19E3779F9ULL
    #define P4 0x85EBCA77C2B2AE63ULL
    #define P5 0x27D4EB2F165667C5ULL
    """
    const int INT, UINT, FLOAT, BOOL, DECIMAL, NOTHING, SMALL_BYTES, LARGE_BYTES, FIXED_BYTES
    const uint64_t SIGN, ROW_BITS, NULL_WORD, P1, P2, P3, P4, P5


cdef struct Chunk:  # one chunk of a column; its row i lies at index `first + i` of the buffers
    int kind
    int64_t width
    int64_t rows
    int64_t first
    uint8_t* valid  # NULL when no value is null
    uint8_t* offsets
    uint8_t* values


cdef struct View:  # encoded keys: row i is at i * width, or from offsets[i] to offsets[i + 1] when there are offsets
    uint8_t* data
    int64_t* offsets
    int64_t width
    int64_t rows


cdef struct Span:
    uint8_t* data
    int64_t size


cdef inline Span key_at(View* view, int64_t row) noexcept nogil:
    cdef Span span
    if view.offsets == NULL:
        span.data = view.data + row * view.width
        span.size = view.width
    else:
        span.data = view.data + view.offsets[row]
        span.size = view.offsets[row + 1] - view.offsets[row]
    return span


cdef inline bint is_null(Chunk* chunk, int64_t row) noexcept nogil:
    cdef int64_t i = chunk.first + row
    if chunk.kind == NOTHING:
        return True
    return chunk.valid != NULL and not (chunk.valid[i >> 3] >> (i & 7)) & 1


cdef inline Span bytes_at(Chunk* chunk, int64_t row) noexcept nogil:
    """The bytes of a string or binary value."""
    cdef Span span
    cdef int64_t i = chunk.first + row
    cdef int64_t start
    if chunk.kind == SMALL_BYTES:
        start = (<int32_t*> chunk.offsets)[i]
        span.size = (<int32_t*> chunk.offsets)[i + 1] - start
    elif chunk.kind == LARGE_BYTES:
        start = (<int64_t*> chunk.offsets)[i]
        span.size = (<int64_t*> chunk.offsets)[i + 1] - start
    else:
        start = i * chunk.width
        span.size = chunk.width
    span.data = chunk.values + start
    return span


cdef inline uint64_t word_at(Chunk* chunk, int64_t row) noexcept nogil:
    """A value of fixed width as 64 bits: integers widened, floats as the bits of the double. Not for DECIMAL."""
    cdef int64_t i = chunk.first + row
    cdef uint8_t* at = chunk.values + i * chunk.width
    cdef double wide
    cdef uint64_t word = 0
    if chunk.kind == BOOL:
        return (chunk.values[i >> 3] >> (i & 7)) & 1
    if chunk.width == 8:
        return (<uint64_t*> at)[0]
    if chunk.kind == FLOAT:
        wide = (<float*> at)[0]
        memcpy(&word, &wide, 8)
        return word
    if chunk.kind == UINT:
        memcpy(&word, at, chunk.width)
        return word
    if chunk.width == 4:
        return <uint64_t> <int64_t> (<int32_t*> at)[0]
    if chunk.width == 2:
        return <uint64_t> <int64_t> (<int16_t*> at)[0]
    return <uint64_t> <int64_t> (<int8_t*> at)[0]


cdef inline uint64_t half_at(Chunk* chunk, int64_t row, int half) noexcept nogil:
    """The low (0) or high (1) 64 bits of a decimal128."""
    return (<uint64_t*> chunk.values)[(chunk.first + row) * 2 + half]


# --- hashes ---


cdef inline uint64_t stepped(uint64_t hashed, uint64_t word) noexcept nogil:
    word *= P2
    hashed ^= ((word << 31) | (word >> 33)) * P1
    return ((hashed << 27) | (hashed >> 37)) * P1 + P4


cdef inline uint64_t finished(uint64_t hashed) noexcept nogil:
    hashed = (hashed ^ (hashed >> 33)) * P2
    hashed = (hashed ^ (hashed >> 29)) * P3
    return hashed ^ (hashed >> 32)


cdef inline uint64_t absorbed(uint64_t hashed, Span span) noexcept nogil:
    """Takes in the length and then the bytes, so that the zero padding of the last word leaves no doubt."""
    cdef uint64_t word
    hashed = stepped(hashed, <uint64_t> span.size + P5)
    while span.size >= 8:
        memcpy(&word, span.data, 8)
        hashed = stepped(hashed, word)
        span.data += 8
        span.size -= 8
    if span.size > 0:
        word = 0
        memcpy(&word, span.data, span.size)
        hashed = stepped(hashed, word)
    return hashed


cdef inline uint64_t absorbed_value(uint64_t hashed, Chunk* chunk, int64_t row) noexcept nogil:
    if is_null(chunk, row):
        return stepped(hashed + P3, NULL_WORD)
    if chunk.kind >= SMALL_BYTES:
        return absorbed(hashed, bytes_at(chunk, row))
    if chunk.kind == DECIMAL:
        return stepped(stepped(hashed, half_at(chunk, row, 0)), half_at(chunk, row, 1))
    return stepped(hashed, word_at(chunk, row))


cdef inline uint64_t table_hash(Span key) noexcept nogil:
    """Starts from NULL_WORD, a bucket's from its seed: the keys of one bucket still spread over a table."""
    return finished(absorbed(NULL_WORD, key))


# --- the hash table: slots of 64 bits with the high half of the hash and row + 1; 0 is empty; linear probing ---


cdef inline int64_t slot_row(uint64_t slot) noexcept nogil:
    """The row in a slot, -1 for an empty one."""
    return <int64_t> (slot & ROW_BITS) - 1


cdef inline uint64_t slot_of(uint64_t hashed, int64_t row) noexcept nogil:
    return (hashed & ~ROW_BITS) | <uint64_t> (row + 1)


cdef inline uint64_t located(uint64_t* slots, uint64_t mask, View* held, Span key, uint64_t hashed) noexcept nogil:
    """Index of the slot that holds an equal key, or of the empty one where it belongs."""
    cdef uint64_t at = hashed & mask
    cdef Span other
    while slots[at] != 0:
        if (slots[at] ^ hashed) <= ROW_BITS:
            other = key_at(held, slot_row(slots[at]))
            if other.size == key.size and memcmp(other.data, key.data, key.size) == 0:
                return at
        at = (at + 1) & mask
    return at


# --- the encoding ---


cdef inline void put_word(uint64_t word, uint8_t* out) noexcept nogil:
    """Eight bytes, big-endian; the compiler makes one swap of it."""
    cdef int i
    for i in range(8):
        out[i] = <uint8_t> (word >> (56 - 8 * i))


cdef inline int64_t put_bytes(Span source, uint8_t* out) noexcept nogil:
    """Escapes and ends a string; returns the bytes written."""
    cdef uint8_t* start = out
    cdef uint8_t* zero
    cdef int64_t size
    while source.size > 0:
        zero = <uint8_t*> memchr(source.data, 0, source.size)
        size = source.size if zero == NULL else zero - source.data + 1
        memcpy(out, source.data, size)
        out += size
        if zero != NULL:
            out[0] = 0xFF
            out += 1
        source.data += size
        source.size -= size
    out[0] = 0
    out[1] = 0
    return out + 2 - start


cdef inline int64_t put_value(Chunk* chunk, int64_t row, uint8_t* out) noexcept nogil:
    """Encodes one value; returns the bytes written."""
    cdef uint64_t word
    if chunk.kind >= SMALL_BYTES:
        return put_bytes(bytes_at(chunk, row), out)
    if chunk.kind == DECIMAL:
        put_word(half_at(chunk, row, 1) ^ SIGN, out)
        put_word(half_at(chunk, row, 0), out + 8)
        return 16
    word = word_at(chunk, row)
    if chunk.kind == BOOL:
        out[0] = <uint8_t> word
        return 1
    if chunk.kind == FLOAT and word == SIGN:
        word = 0  # -0.0 equals 0.0 in an index of the server
    word = ~word if chunk.kind == FLOAT and word & SIGN else word ^ SIGN
    put_word(word, out)
    return 8
