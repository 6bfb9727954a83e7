# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204, F821  (names and signatures of events.pxd)
"""Events of the log: header, checksum, and the place in the file, counted in 64 bits."""

import cython
from cython.cimports.catchment.wire.cells.cursor import Cursor, claim, cursor_over, left, little
from cython.cimports.catchment.wire.log.checksum import event_crc32, more_crc32
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t

from catchment.model.errors import CorruptLog, Unsupported
from catchment.model.position import LogOffset

HEADER = cython.declare(int64_t, 19)
CHECKSUM = cython.declare(int64_t, 4)
FORMAT_LEAST = cython.declare(int64_t, 57 + 5)
MARIADB_TYPES_LEAST = cython.declare(int64_t, 160)
# Types of events and the length of their fixed part, which this reader takes for granted. Servers put 0 for
# types that they do not write.
FIXED_PARTS = cython.declare(
    cython.int[26],
    [2, 13, 4, 8, 18, 26, 19, 8, 23, 8, 24, 8, 25, 8, 30, 10, 31, 10, 32, 10, 26, 2, 16, 0, 17, 4],
)
# A transaction that is one packed event may be large, and it would be read again whenever the log is.
MARKED_MAX = cython.declare(int64_t, 65536)
MARKED = (
    EVENT_QUERY,
    EVENT_QUERY_PACKED,
    EVENT_XA_PREPARE,
    EVENT_TRANSACTION_PAYLOAD,
    EVENT_CHECKPOINT,
    EVENT_GTID_LIST,
    EVENT_PREVIOUS_GTIDS,
)
SKIPPED_MAX = cython.declare(uint32_t, 0x40000000)  # an annotation is shorter than the largest packet


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def read_header(c: cython.pointer(Cursor), e: cython.pointer(Event)) -> cython.bint:
    """The fields of an event's header; False when there are not as many bytes."""
    h: cython.pointer(cython.const[uint8_t]) = claim(c, HEADER)
    if h == cython.NULL:
        return False
    e.timestamp = little(h, 4)
    e.type = h[4]
    e.server_id = little(h + 5, 4)
    e.size = little(h + 9, 4)
    e.next = little(h + 13, 4)
    e.flags = little(h + 17, 2)
    return True


class EventReader:
    """Opens one event after another and knows where the reader stands in its file; see events.pxd."""

    def __cinit__(self, start: LogOffset, verify: bool):
        self.file = start.file
        self.offset = start.offset
        self.verify = verify

    def corrupt(self, what):
        """Raise CorruptLog for the event that was opened last."""
        error = CorruptLog(f"log {self.file}:{self.current}: {what}; read the log again, or check the file")
        error.at_event = True
        raise error

    def open(self, packet, e):
        """Read the header of the event in the packet and verify its checksum. Raises CorruptLog."""
        self.current = self.offset
        if not read_header(packet, e):
            self.corrupt("the event is shorter than its header")
        if e.size != HEADER + left(packet):
            self.corrupt(f"the event says {e.size} bytes and came with {HEADER + left(packet)}")
        e.start = self.offset
        e.artificial = (e.flags & FLAG_ARTIFICIAL) != 0 or e.type in (EVENT_HEARTBEAT, EVENT_HEARTBEAT_2)
        if e.type in (EVENT_FORMAT, EVENT_START_ENCRYPTION):
            # In a dump from the middle of a file these two are copies, whose place in the file is 0.
            e.artificial = e.artificial or e.next == 0
        if e.type == EVENT_FORMAT and left(packet) < FORMAT_LEAST:
            self.corrupt("the format event ends too early")
        e.body = cursor_over(packet.at, left(packet))
        self.find_checksum(cython.address(e.body), e)
        return 0

    def open_inner(self, source, outer, e):
        """Read the next event out of a transaction payload: no checksum, no place of its own in the file."""
        read_header(source, e)
        e.start = outer.start
        e.artificial = False
        e.body = cursor_over(source.at, e.size - HEADER)
        source.at = e.body.end
        return 0

    def on_format(self, body):
        """Whose format it is: MariaDB knows many more types of events. Raises CorruptLog, Unsupported.

        `body` stands behind the length of headers. Each type, from 1 on, has one byte: the length of the
        fixed part of its events. One byte for the checksum algorithm follows.
        """
        lengths: cython.pointer(cython.const[uint8_t]) = body.at
        count: int64_t = left(body) - 1
        i: cython.int
        self.mysql = count < MARIADB_TYPES_LEAST
        for i in range(13):
            kind: cython.int = FIXED_PARTS[2 * i]
            size: cython.int = lengths[kind - 1] if kind <= count else 0
            if size not in (0, FIXED_PARTS[2 * i + 1]):
                raise Unsupported(
                    f"log {self.file}: events of type {kind} have a fixed part of {size} bytes; read a log of "
                    "MySQL 5.7 or MariaDB 10.5, or later"
                )
        return 0

    def find_checksum(self, packet, e):
        """Take the checksum off the end of the body, and verify it."""
        start: cython.pointer(cython.const[uint8_t]) = packet.at - HEADER
        present: cython.bint = self.checksums
        if e.type == EVENT_FORMAT:
            # It carries the algorithm in front of its own checksum, which is there in either case.
            algorithm: cython.int = (packet.end - CHECKSUM - 1)[0]
            if algorithm > 1:
                raise Unsupported(f"log {self.file}: checksum algorithm {algorithm} is not known")
            self.checksums = algorithm == 1
            self.known = True
            packet.end -= CHECKSUM
            if not self.checksums:
                return 0
        elif not self.known:
            # The first event, a rotation, comes before the format event: only trying tells.
            if left(packet) < CHECKSUM or not sealed(start, packet.end - CHECKSUM, e.flags):
                return 0
            packet.end -= CHECKSUM
            return 0
        elif present:
            if left(packet) < CHECKSUM:
                self.corrupt("the event has no room for its checksum")
            packet.end -= CHECKSUM
        else:
            return 0
        if self.verify and not sealed(start, packet.end, e.flags):
            self.corrupt(f"the checksum of the event (type {e.type}, {e.size} bytes) is wrong")
        return 0

    def mark(self, packet, e):
        """Keep what tells the event, opened out of the packet, from others: the CRC32 without its checksum.

        Of some kinds alone, which a server sends as they stand in its file.
        """
        start: cython.pointer(cython.const[uint8_t]) = packet.at - HEADER
        self.marked = 0
        if (e.type == EVENT_XID or e.type in MARKED) and e.size <= MARKED_MAX:
            self.marked = e.size
            self.crc = event_crc32(start, e.body.end - start)
        return 0

    def advance(self, e, within_group):
        """Check that the event begins where the reader stands and move behind it. Raises CorruptLog.

        Its header has the low 32 bits of its end only. In front of a table map the server leaves an
        annotation out when the dump did not ask for it. From MariaDB 11.4 on, only the first and the last event of
        a group say where they end (binlog_legacy_event_pos). Until the last one the reader counts on by itself,
        and stands before the place by the annotations left out.
        """
        begins: uint32_t = e.next - cython.cast(uint32_t, e.size)
        skipped: uint32_t = begins - cython.cast(uint32_t, self.offset)
        if e.artificial:
            return 0
        if skipped and e.next == 0 and within_group and not self.mysql:
            self.adrift = True
            self.offset = e.start + e.size
            return 0
        if skipped:
            if (
                self.mysql
                or not (self.adrift or e.type == EVENT_TABLE_MAP)
                or not within_group
                or skipped < HEADER
                or skipped > SKIPPED_MAX
            ):
                self.corrupt(f"the event ends at {e.next} modulo 2**32, which is not behind its beginning")
            e.start += skipped
            self.current = e.start
        self.adrift = False
        self.offset = e.start + e.size
        return 0

    def enter(self, file, offset):
        """Stand in another file."""
        self.file = file
        self.offset = offset
        self.current = offset
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def sealed(
    start: cython.pointer(cython.const[uint8_t]),
    end: cython.pointer(cython.const[uint8_t]),
    flags: cython.int,
) -> cython.bint:
    """Whether the four bytes at `end` are the CRC32 of the event from `start` to `end`.

    A format event may show that its file is in use; the checksum was made without that flag.
    """
    crc: uint32_t
    header: uint8_t[19]
    i: cython.int
    if not flags & FLAG_IN_USE:
        return event_crc32(start, end - start) == little(end, 4)
    for i in range(19):
        header[i] = start[i]
    header[17] &= 0xFE
    crc = more_crc32(0, header, 19)
    return more_crc32(crc, start + 19, end - start - 19) == little(end, 4)
