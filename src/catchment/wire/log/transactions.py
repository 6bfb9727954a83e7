# cython: compiled
# ruff: noqa: ANN001, ANN201, F821, SIM110  (names and signatures of transactions.pxd)
"""What begins a group in the log of MySQL: its GTID, and the payload that holds a whole transaction packed.

Source: MySQL, mysql/binlog/event/control_events.h (Gtid_event, Transaction_payload_event) and
libs/mysql/serialization (the tagged GTID event).
"""

import cython
from cython.cimports.catchment.wire.cells.cursor import (
    Cursor,
    claim,
    cursor_over,
    left,
    little,
    read_little,
)
from cython.cimports.catchment.wire.log.contents import as_bytes
from cython.cimports.catchment.wire.log.events import (
    EVENT_INTVAR,
    EVENT_QUERY,
    EVENT_RAND,
    EVENT_ROWS_QUERY,
    EVENT_TABLE_MAP,
    EVENT_USER_VAR,
    EVENT_XA_PREPARE,
    EVENT_XID,
    Event,
)
from cython.cimports.catchment.wire.log.groups import KIND_TRANSACTION
from cython.cimports.catchment.wire.log.rows import row_operation
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t
from cython.cimports.libc.string import memcpy

from catchment.model.errors import CorruptLog
from catchment.wire.log.payload import Payload

HEADER = cython.declare(int64_t, 19)
TAG_MAX = cython.declare(uint64_t, 32)


@cython.cfunc
@cython.exceptval(check=False)
def read_varlen(c: cython.pointer(Cursor)) -> uint64_t:
    """An integer of MySQL's serialization. The first byte has as many ones, from the lowest bit on, as bytes
    follow it. Each byte holds 7 bits of the number, nine bytes hold 64."""
    first: uint64_t = read_little(c, 1)
    more: cython.int = 0
    rest: uint64_t
    while more < 8 and (first >> more) & 1:
        more += 1
    rest = read_little(c, more)
    if more == 8:
        return rest
    return (first >> (more + 1)) | (rest << (7 - more))


class Transactions:
    """Decodes what begins a group of MySQL; LogDecoder adds what lies between groups (see transactions.pxd)."""

    def begin_group(self, e):
        """A group begins; MySQL says only by its first statement what it is."""
        if self.groups.open:
            self.reader.corrupt("a group begins inside a group")
        if not self.met:
            self.reader.corrupt("a group comes before the format event")
        self.groups.open_group.domain = 0
        self.groups.open_group.server_id = e.server_id
        self.groups.open_group.file = len(self.met) - 1
        self.groups.open_group.start = e.start
        self.groups.begin(self.order.sequence)
        self.order.group = self.groups.ordinal
        self.kind = KIND_TRANSACTION
        self.flags = 0
        self.extra = 0
        self.begun = False
        return 0

    def on_gtid_log(self, e):
        """GTID, or the same event without one (gtid_mode is OFF): flags, uuid, number, and times."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        claim(b, 1)
        uuid: cython.pointer(cython.const[uint8_t]) = claim(b, 16)
        number: uint64_t = read_little(b, 8)
        if b.missing:
            self.reader.corrupt("the GTID event ends too early")
        self.groups.open_group.named = number != 0
        self.groups.open_group.sequence = number
        self.groups.open_group.tag_size = 0
        memcpy(self.groups.open_group.uuid, uuid, 16)
        return self.begin_group(e)

    def on_gtid_tagged(self, e):
        """GTID of MySQL 8.4, in its serialization: fields by number, of which 0 to 3 are flags, uuid, GTID
        number and tag."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        i: cython.int
        size: uint64_t
        text: cython.pointer(cython.const[uint8_t])
        if read_varlen(b) != 1:
            self.reader.corrupt("the tagged GTID event has an unknown version")
        read_varlen(b)
        read_varlen(b)
        whole: cython.bint = read_varlen(b) == 0
        read_varlen(b)
        whole = read_varlen(b) == 1 and whole
        for i in range(16):
            self.groups.open_group.uuid[i] = cython.cast(uint8_t, read_varlen(b))
        whole = read_varlen(b) == 2 and whole
        self.groups.open_group.sequence = read_varlen(b) >> 1  # the lowest bit is a sign
        whole = read_varlen(b) == 3 and whole
        size = read_varlen(b)
        text = claim(b, size)
        if b.missing or not whole or size > TAG_MAX or self.groups.open_group.sequence == 0:
            self.reader.corrupt("the tagged GTID event is malformed")
        memcpy(self.groups.open_group.tag, text, size)
        self.groups.open_group.tag_size = cython.cast(cython.int, size)
        if not as_plain(self.groups.open_group.tag, size):
            self.reader.corrupt("the tagged GTID event has no such tag")
        self.groups.open_group.named = True
        return self.begin_group(e)

    def on_payload(self, e):
        """The events of a transaction, packed; they are read as they come out."""
        if not self.groups.open or self.begun:
            self.reader.corrupt("a transaction payload does not stand behind a GTID")
        try:
            payload = Payload(as_bytes(cython.address(e.body)))
            return self.unpack(payload, e)
        except CorruptLog as error:
            if error.at_event:
                raise
            self.reader.corrupt(str(error))

    def unpack(self, payload, e):
        """Decode event after event of a payload, holding no more of it than one of them."""
        inner: Event
        c: Cursor
        size: int64_t
        wanted: int64_t = 0
        held = b""
        while True:
            piece = payload.read(wanted - len(held))
            if not piece:
                break
            held = held + piece if held else piece
            c = cursor_over(cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(held)), len(held))
            wanted = 0
            while left(cython.address(c)) >= HEADER:
                size = little(c.at + 9, 4)
                if size < HEADER:
                    self.reader.corrupt("an event of a transaction payload is shorter than its header")
                if size > left(cython.address(c)):
                    wanted = size
                    break
                self.reader.open_inner(cython.address(c), e, cython.address(inner))
                self.on_inner(cython.address(inner))
            held = held[len(held) - left(cython.address(c)) :]
        if held:
            self.reader.corrupt("a transaction payload ends inside an event")
        if self.groups.open:
            self.reader.corrupt("a transaction payload ends before its transaction")
        return 0

    def on_inner(self, e):
        """One event of a payload."""
        kind: cython.int = e.type
        if not self.groups.open:
            self.reader.corrupt("an event stands behind the end of a transaction payload")
        if row_operation(kind) >= 0:
            return self.on_rows(e)
        if kind == EVENT_TABLE_MAP:
            return self.on_table_map(e)
        if kind == EVENT_QUERY:
            return self.on_query(e)
        if kind == EVENT_XID:
            return self.end_group(e, self.kind)
        if kind == EVENT_XA_PREPARE:
            return self.on_xa_prepare(e)
        if kind not in (EVENT_ROWS_QUERY, EVENT_INTVAR, EVENT_RAND, EVENT_USER_VAR):
            self.reader.corrupt(f"an event of type {kind} stands in a transaction payload")
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def as_plain(text: cython.pointer(uint8_t), n: uint64_t) -> cython.bint:
    """Whether it is a tag: letters, digits and underscores."""
    i: uint64_t
    for i in range(n):
        if not (48 <= text[i] <= 57 or 97 <= text[i] <= 122 or text[i] == 95):
            return False
    return True
