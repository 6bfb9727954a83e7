# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204  (names and signatures of reader.pxd)
"""Packets of the MySQL protocol out of the bytes of a connection, in pieces of any size.

A packet that lies whole in what was fed is given without a copy. The reader puts any other together in a buffer, also
one of several parts of 16 MB. The buffer never grows beyond the bytes that really came.
"""

import cython
from cython.cimports.catchment.wire.cells.cursor import cursor_over, little
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy

from catchment.model.errors import WireError

PART_MAX = cython.declare(int64_t, 0xFFFFFF)
KEEP_MAX = cython.declare(int64_t, 1 << 22)


class PacketReader:
    """Cuts a stream of bytes into packets; used by the decoders only (see reader.pxd)."""

    def __cinit__(self):
        self.sequence = -1

    def __dealloc__(self):
        free(self.held)

    def start(self, data, size):
        """Take bytes to read from; the ones fed before must have been read up (`next` returned 0)."""
        self.fed = data
        self.fed_end = data + size

    def next(self, packet):
        """Point `packet` at the next whole packet and return 1, or return 0 when more bytes are needed.

        The packet is valid until the next call. Raises WireError when packets are out of sequence.
        """
        size: int64_t
        available: int64_t = self.fed_end - self.fed
        if self.head_used == 0 and (self.used == 0 or self.given) and not self.more and available >= 4:
            size = little(self.fed, 3)
            if size < PART_MAX and available >= size + 4:
                self.check_sequence(self.fed[3])
                packet[0] = cursor_over(self.fed + 4, size)
                self.fed += size + 4
                return 1
        return self.assemble(packet)

    def check_sequence(self, number):
        """Packets are numbered modulo 256; the first one seen may have any number."""
        if self.sequence >= 0 and number != self.sequence:
            raise WireError(f"packet number {number} came instead of {self.sequence}: bytes were lost")
        self.sequence = (number + 1) & 0xFF
        return 0

    def assemble(self, packet):
        """Continue the packet whose bytes come in several pieces; returns as `next` does."""
        n: int64_t
        if self.given:
            self.given = False
            self.used = 0
            if self.room > KEEP_MAX:
                free(self.held)
                self.held = cython.NULL
                self.room = 0
        while True:
            while self.head_used < 4:
                if self.fed == self.fed_end:
                    return 0
                self.head[self.head_used] = self.fed[0]
                self.head_used += 1
                self.fed += 1
                if self.head_used == 4:
                    self.wanted = little(self.head, 3)
                    self.more = self.wanted == PART_MAX
                    self.check_sequence(self.head[3])
            n = min(self.wanted, self.fed_end - self.fed)
            self.hold(n)
            self.wanted -= n
            if self.wanted:
                return 0
            self.head_used = 0
            if not self.more:
                packet[0] = cursor_over(self.held, self.used)
                self.given = True
                return 1

    def hold(self, n):
        """Move `n` bytes of what was fed to the end of the buffer."""
        room: int64_t
        block: cython.pointer(uint8_t)
        if self.used + n > self.room or self.held == cython.NULL:
            room = max(self.used + n, 2 * self.room, 4096)
            block = cython.cast(cython.pointer(uint8_t), realloc(self.held, room))
            if block == cython.NULL:
                raise MemoryError
            self.held = block
            self.room = room
        memcpy(self.held + self.used, self.fed, n)
        self.used += n
        self.fed += n
        return 0
