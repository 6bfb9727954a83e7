# CRC32 of an event (zlib's polynomial), called from C: small events make it a large part of the work.

from libc.stdint cimport uint8_t, uint32_t


cdef extern from "zlib.h" nogil:
    uint32_t crc32 "crc32_z" (unsigned long crc, const uint8_t* data, size_t size)
