# Inflating zlib's streams into memory of known size, called from C: once for each value of a COMPRESSED column.

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset


cdef extern from "zlib.h" nogil:
    ctypedef struct z_stream:
        uint8_t* next_in
        unsigned int avail_in
        uint8_t* next_out
        unsigned int avail_out

    int inflateInit2(z_stream* stream, int window_bits)
    int inflate_to "inflate" (z_stream* stream, int flush)
    int inflateEnd(z_stream* stream)
    const int Z_FINISH, Z_STREAM_END, MAX_WBITS

cdef enum:
    # A byte of deflate stands for at most 258 bytes of text in 2 bits (RFC 1951).
    INFLATED_MOST = 1040


cdef inline bint inflated(const uint8_t* source, int64_t n, uint8_t* out, int64_t size, bint raw) noexcept nogil:
    """Inflate `n` bytes to exactly `size` bytes; False when they do not give as many. `raw`: without zlib's frame."""
    cdef z_stream stream
    cdef int state
    memset(&stream, 0, sizeof(z_stream))
    if inflateInit2(&stream, -MAX_WBITS if raw else MAX_WBITS) != 0:
        return False
    stream.next_in = <uint8_t*> source
    stream.avail_in = <unsigned int> n
    stream.next_out = out
    stream.avail_out = <unsigned int> size
    state = inflate_to(&stream, Z_FINISH)
    inflateEnd(&stream)
    return state == Z_STREAM_END and stream.avail_out == 0
