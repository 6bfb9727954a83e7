# CRC32 of an event (zlib's polynomial), called from C: small events make it a large part of the work.
#
# zlib takes short inputs byte by byte, which was half the cost of transactions of one row. Where the processor
# multiplies without carries, sixteen bytes are folded at a time (V. Gopal and others, "Fast CRC Computation for
# Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009); elsewhere zlib does it. The numbers are x**n modulo
# the polynomial, lowest bit first. Here n is 544 and 480 (64 bytes on), 160 and 96 (16 bytes on), and 64. The
# polynomial itself and x**64 divided by it follow.

from libc.stdint cimport uint8_t, uint32_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <zlib.h>

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>

    #define LOAD(p) _mm_loadu_si128((const __m128i *) (p))
    #define TIMES(x, k, which) _mm_clmulepi64_si128(x, k, which)
    #define FOLD(x, k, y) _mm_xor_si128(_mm_xor_si128(TIMES(x, k, 0x00), TIMES(x, k, 0x11)), y)

    /* Of at least 16 bytes; it reads those and no others. */
    __attribute__((target("pclmul,sse4.1")))
    static uint32_t folded_crc32(const uint8_t *p, size_t size)
    {
        /* Loaded `n` bytes on, it moves bytes up by 16 - n; loaded 16 + n bytes on, down by n. */
        static const int8_t moves[48] = {
            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
        };
        const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
        const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
        const __m128i by_8 = _mm_set_epi64x(0, 0x163cd6124);
        const __m128i last = _mm_set_epi64x(0x1f7011641, 0x1db710641);
        const __m128i low = _mm_set_epi32(0, 0, 0, -1);
        const uint8_t *end = p + size;
        __m128i x = _mm_xor_si128(LOAD(p), low), a, b, c, up, rest;

        p += 16;
        if (end - p >= 112) {
            a = LOAD(p), b = LOAD(p + 16), c = LOAD(p + 32);
            for (p += 48; end - p >= 64; p += 64) {
                x = FOLD(x, by_64, LOAD(p));
                a = FOLD(a, by_64, LOAD(p + 16));
                b = FOLD(b, by_64, LOAD(p + 32));
                c = FOLD(c, by_64, LOAD(p + 48));
            }
            x = FOLD(FOLD(FOLD(x, by_16, a), by_16, b), by_16, c);
        }
        for (; end - p >= 16; p += 16)
            x = FOLD(x, by_16, LOAD(p));
        if (p != end) {
            up = LOAD(moves + (end - p));
            rest = _mm_and_si128(LOAD(end - 16), _mm_cmpgt_epi8(up, _mm_set1_epi8(-1)));
            rest = _mm_or_si128(rest, _mm_shuffle_epi8(x, LOAD(moves + 16 + (end - p))));
            x = FOLD(_mm_shuffle_epi8(x, up), by_16, rest);
        }
        x = _mm_xor_si128(TIMES(x, by_16, 0x10), _mm_srli_si128(x, 8));
        x = _mm_xor_si128(TIMES(_mm_and_si128(x, low), by_8, 0x00), _mm_srli_si128(x, 4));
        a = _mm_and_si128(TIMES(_mm_and_si128(x, low), last, 0x10), low);
        return ~ (uint32_t) _mm_extract_epi32(_mm_xor_si128(x, TIMES(a, last, 0x00)), 1);
    }

    static uint32_t event_crc32(const uint8_t *p, size_t size)
    {
        if (size >= 16 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))
            return folded_crc32(p, size);
        return crc32_z(0, p, size);
    }
    #else
    static uint32_t event_crc32(const uint8_t *p, size_t size)
    {
        return crc32_z(0, p, size);
    }
    #endif
    """
    uint32_t event_crc32(const uint8_t* data, size_t size) nogil
    uint32_t more_crc32 "crc32_z" (unsigned long crc, const uint8_t* data, size_t size) nogil
