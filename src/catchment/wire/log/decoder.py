# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204, F821, PLR0911  (names and signatures of decoder.pxd, types in decoder.pyi)
"""The log decoder: bytes of a dump (COM_BINLOG_DUMP) of MariaDB or MySQL in, Arrow batches out.

It opens no socket and decides nothing: it says which groups the log holds, what rows they carry, and where it
stands. Source: MariaDB manual, "1-Binlog Events"; MySQL, mysql/binlog/event; DESIGN sections 3, 4 and 8.
"""

import cython
import msgspec
from cython.cimports.catchment.wire.cells.cursor import Cursor, claim, cursor_over, left, read_little
from cython.cimports.catchment.wire.log.contents import as_bytes, read_text
from cython.cimports.catchment.wire.log.events import (
    EVENT_ANNOTATE_ROWS,
    EVENT_ANONYMOUS_GTID,
    EVENT_APPEND_BLOCK,
    EVENT_BEGIN_LOAD_QUERY,
    EVENT_CHECKPOINT,
    EVENT_DELETE_FILE,
    EVENT_EXECUTE_LOAD_QUERY,
    EVENT_FORMAT,
    EVENT_GTID,
    EVENT_GTID_LIST,
    EVENT_GTID_LOG,
    EVENT_GTID_TAGGED,
    EVENT_HEARTBEAT,
    EVENT_HEARTBEAT_2,
    EVENT_IGNORABLE,
    EVENT_INCIDENT,
    EVENT_INTVAR,
    EVENT_PREVIOUS_GTIDS,
    EVENT_QUERY,
    EVENT_QUERY_PACKED,
    EVENT_RAND,
    EVENT_ROTATE,
    EVENT_ROWS_QUERY,
    EVENT_START_ENCRYPTION,
    EVENT_STOP,
    EVENT_TABLE_MAP,
    EVENT_TRANSACTION_CONTEXT,
    EVENT_TRANSACTION_PAYLOAD,
    EVENT_USER_VAR,
    EVENT_VIEW_CHANGE,
    EVENT_XA_PREPARE,
    EVENT_XID,
    FLAG_IGNORABLE,
    Event,
)
from cython.cimports.catchment.wire.log.met_tables import Tables
from cython.cimports.catchment.wire.log.rows import row_operation
from cython.cimports.catchment.wire.log.transactions import Transactions
from cython.cimports.catchment.wire.packets.reader import PacketReader
from cython.cimports.cpython.buffer import PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t

from catchment.model.errors import CorruptLog, CutMissed, Diverged, ServerSaid, Unsupported, WireError
from catchment.model.position import GroupKind, Gtid, LastEvent, LastGroup, LogOffset
from catchment.wire.log import facts, metadata, savepoint_names
from catchment.wire.log.groups import NO_GROUPS
from catchment.wire.packets.gtidsets import previous_gtids

NOWHERE = cython.declare(int64_t, 0x7FFFFFFFFFFFFFFF)
KINDS = tuple(GroupKind)
BETWEEN = (EVENT_FORMAT, EVENT_GTID_LIST, EVENT_PREVIOUS_GTIDS, EVENT_CHECKPOINT, EVENT_STOP)


class LogDecoder(Transactions):
    """Decodes one dump, from the first byte behind the command; see decoder.pyi."""

    def __init__(
        self,
        start,
        wanted=None,
        stop=None,
        *,
        keys=None,
        kinds=None,
        definitions=None,
        on_ddl=None,
        before="full",
        sparse=False,
        verify_checksum=True,
        behind=None,
    ):
        if before not in ("full", "key"):
            raise ValueError(f"before must be 'full' or 'key', not {before!r}")
        self.begins = start if behind is None else LogOffset(start.file, start.offset - behind.size)
        Transactions.__init__(self, self.begins, before == "key", sparse, verify_checksum)
        self.known = behind
        self.awaited = start.offset if behind is not None else 0
        self.tables = Tables(wanted, keys, kinds, definitions)
        self.follow = on_ddl
        self.start = start
        self.stop = stop
        self.packets = PacketReader()
        self.place = start.offset
        self.stop_offset = NOWHERE

    def feed(self, data):
        """Consume bytes; see decoder.pyi."""
        view: Py_buffer
        packet: Cursor
        if self.error is not None:
            raise self.error
        PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
        try:
            self.packets.start(cython.cast(cython.pointer(uint8_t), view.buf), view.len)
            while not (self.ended or self.reached_stop) and self.packets.next(cython.address(packet)):
                self.on_packet(cython.address(packet))
        except CorruptLog as error:
            self.error = error
            raise
        except WireError as error:
            self.error = CorruptLog(f"log {self.reader.file}:{self.reader.offset}: {error}")
            raise self.error from None
        except BaseException as error:
            self.error = error
            raise
        finally:
            PyBuffer_Release(cython.address(view))

    def resume(self):
        """Take bytes of a new dump; see decoder.pyi."""
        if self.error is not None and not isinstance(self.error, ServerSaid):
            raise self.error
        self.error = None
        self.ended = False
        self.packets = PacketReader()

    def take_images(self):
        """All image rows decoded so far; see decoder.pyi."""
        return self.tables.take()

    def take_groups(self):
        """All groups finished so far; see decoder.pyi."""
        return self.groups.rows.take() if self.groups.rows.rows else NO_GROUPS

    @property
    def pending_bytes(self):
        return self.tables.size() + self.groups.rows.size()

    @property
    def voids(self):
        return list(self.groups.voids)

    @property
    def files(self):
        return list(self.met)

    @property
    def at(self):
        return LogOffset(self.reader.file, self.place)

    @property
    def last_event(self):
        return LastEvent(self.reader.marked, self.reader.crc) if self.reader.marked else None

    @property
    def in_group(self):
        return self.groups.open

    @property
    def last_group(self):
        if not self.groups.any:
            return None
        name = self.met[self.groups.last.file].name
        return LastGroup(
            LogOffset(name, self.groups.last.start),
            LogOffset(name, self.groups.last.end),
            KINDS[self.groups.last.kind],
            Gtid(self.groups.last.domain, self.groups.last.server_id, self.groups.last.sequence),
        )

    def on_packet(self, packet):
        """An event, the server's error, or the end of the log (MySQL protocol: ERR and EOF packets)."""
        first: cython.int = read_little(packet, 1)
        if packet.missing:
            self.reader.corrupt("an empty packet came")
        if first == 0:
            return self.on_event(packet)
        if first == 0xFE and left(packet) < 8:
            if self.awaited:
                raise CutMissed(
                    f"log {self.start.file}: the dump ended before {self.start}; it is read again"
                )
            self.ended = True
            return 0
        if first != 0xFF:
            self.reader.corrupt(f"a packet of unknown kind {first} came")
        code = read_little(packet, 2)
        message = read_text(packet)
        raise ServerSaid(code, message[6:] if message.startswith("#") else message)

    def on_event(self, packet):
        """One event, and what it means for the place where the reader stands."""
        e: Event
        self.reader.open(packet, cython.address(e))
        if not self.started and (e.type != EVENT_ROTATE or not e.artificial):
            self.reader.corrupt("the dump does not begin with the name of its file")
        self.reader.advance(cython.address(e), self.groups.open)
        if self.awaited and not e.artificial:
            self.reader.mark(packet, cython.address(e))
            return self.on_known()
        self.dispatch(cython.address(e))
        if self.groups.open:
            if self.reader.offset >= self.stop_offset:
                raise CutMissed(
                    f"log {self.reader.file}: the group that begins at {self.groups.open_group.start} "
                    f"does not end at the cut {self.stop} or before it; plan the epoch again"
                )
        elif not (e.artificial or self.reached_stop):
            self.reader.mark(packet, cython.address(e))
            self.arrive(self.reader.offset)
        return 0

    def on_known(self):
        """The event in front of the start must be the one that was read there before. Raises Diverged."""
        if self.reader.offset != self.awaited or self.last_event != self.known:
            raise Diverged(f"the event that ends at {self.start} is not the one that was read there before")
        self.awaited = 0
        return self.arrive(self.reader.offset)

    def arrive(self, offset):
        """Stand between groups at `offset`. Raises CutMissed behind the stop."""
        if offset < self.awaited:
            return 0
        self.place = offset
        if offset >= self.stop_offset:
            if offset > self.stop_offset:
                raise CutMissed(
                    f"log {self.reader.file}: no group ends at the cut {self.stop}, "
                    f"the reader stands at {offset}; plan the epoch again"
                )
            self.reached_stop = True
        return 0

    def dispatch(self, e):
        """The frequent events; the others go to `dispatch_rare`."""
        if row_operation(e.type) >= 0:
            return self.on_rows(e)
        if e.type == EVENT_TABLE_MAP:
            return self.on_table_map(e)
        if e.type == EVENT_XID:
            return self.end_group(e, self.kind)
        if e.type == EVENT_GTID:
            return self.on_gtid(e)
        if e.type in (EVENT_GTID_LOG, EVENT_ANONYMOUS_GTID):
            return self.on_gtid_log(e)
        return self.dispatch_rare(e)

    def dispatch_rare(self, e):
        """Statements, and events that say nothing to us; the others lie between groups."""
        kind: cython.int = e.type
        if kind in (EVENT_QUERY, EVENT_QUERY_PACKED, EVENT_EXECUTE_LOAD_QUERY):
            return self.on_query(e)
        if kind == EVENT_XA_PREPARE:
            return self.on_xa_prepare(e)
        if kind == EVENT_TRANSACTION_PAYLOAD:
            return self.on_payload(e)
        if kind == EVENT_GTID_TAGGED:
            return self.on_gtid_tagged(e)
        if kind in (EVENT_HEARTBEAT, EVENT_HEARTBEAT_2, EVENT_START_ENCRYPTION):
            return 0
        if kind in (EVENT_ANNOTATE_ROWS, EVENT_ROWS_QUERY, EVENT_IGNORABLE, EVENT_TRANSACTION_CONTEXT):
            return 0
        if kind in (EVENT_INTVAR, EVENT_RAND, EVENT_USER_VAR):
            return 0
        if kind in (EVENT_APPEND_BLOCK, EVENT_DELETE_FILE, EVENT_BEGIN_LOAD_QUERY):
            return 0
        if kind == EVENT_ROTATE:
            return self.on_rotate(e)
        return self.between_groups(e)

    def between_groups(self, e):
        """The format of a file, what is said about files, and events of types not known."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        kind: cython.int = e.type
        if self.groups.open and kind in BETWEEN:
            self.reader.corrupt(f"an event of type {kind} stands inside a group")
        if kind == EVENT_FORMAT:
            return self.on_format(e)
        if kind == EVENT_GTID_LIST:
            return self.on_gtid_list(e)
        if kind == EVENT_PREVIOUS_GTIDS:
            return self.on_previous_gtids(e)
        if kind == EVENT_CHECKPOINT:
            size = read_little(b, 4)
            if size > left(b):
                self.reader.corrupt("the checkpoint event ends too early")
            self.facts.append(facts.Checkpoint(read_text(b)[:size], self.here(e)))
        elif kind == EVENT_STOP:
            self.complete_file()
            self.facts.append(facts.ServerStop(self.here(e)))
        elif kind == EVENT_INCIDENT:
            number = read_little(b, 2)
            claim(b, 1)
            self.facts.append(facts.Incident(number, read_text(b), self.here(e)))
            if self.groups.open and self.reader.mysql and not self.begun:
                self.end_group(e, self.kind)
        elif kind == EVENT_VIEW_CHANGE:
            return 0
        elif not e.flags & FLAG_IGNORABLE:
            raise Unsupported(
                f"log {self.here(e)}: event type {kind} is not known; read a log of MariaDB 10.5 "
                "to 11, or MySQL 8.0 to 8.4"
            )
        return 0

    def complete_file(self):
        """The file that is read ended in order."""
        if not self.met:
            self.reader.corrupt("a file ends before its format event")
        self.met.append(msgspec.structs.replace(self.met.pop(), complete=True))
        return 0

    def on_rotate(self, e):
        """The end of a file; or, made by the server, the name of the file whose events come next."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        offset: uint64_t = read_little(b, 8)
        name = read_text(b)
        if not e.artificial:
            if self.groups.open or not self.met:
                self.reader.corrupt("a rotation stands inside a group or before the format event")
            self.complete_file()
            self.facts.append(facts.RotateTo(name, self.here(e)))
            return 0
        if not self.started:
            if name != self.start.file or offset != cython.cast(uint64_t, self.reader.offset):
                self.reader.corrupt(f"the dump begins at {name}:{offset}")
            self.started = True
        elif name == self.reader.file:
            return 0
        if self.groups.open:
            at = LogOffset(self.reader.file, self.reader.offset)
            begins = LogOffset(self.reader.file, self.groups.open_group.start)
            self.facts.append(facts.CutOff(self.groups.ordinal, begins, at))
            self.groups.drop(self.order.sequence)
        if offset > cython.cast(uint64_t, NOWHERE) // 2:
            self.reader.corrupt(f"a file cannot begin at {offset}")
        return self.enter_file(name, offset)

    def enter_file(self, name, offset):
        """Stand in another file. Raises CutMissed when the stop lies in an earlier one."""
        self.reader.enter(name, offset)
        if not self.awaited:
            self.place = offset
            self.reader.marked = 0
        self.stop_offset = NOWHERE
        if self.stop is not None and self.stop.file == name:
            self.stop_offset = self.stop.offset
            # A file that another one leads to: nothing of it is read.
            self.reached_stop = bool(self.files) and self.stop_offset == offset and not self.awaited
        elif self.stop is not None and self.stop.base == self.at.base and self.stop.number < self.at.number:
            raise CutMissed(f"log {name}: the reader has passed the cut {self.stop}; plan the epoch again")
        return 0

    def on_format(self, e):
        """A file begins; in a dump from the middle the server sends a copy of its format event."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        version = read_little(b, 2)
        name: Cursor = cursor_over(b.at, min(left(b), 50))
        claim(b, 50)
        created = read_little(b, 4)
        header = read_little(b, 1)
        if version != 4 or header != 19:
            self.reader.corrupt(f"log format {version} with headers of {header} bytes is not known")
        self.reader.on_format(b)
        known = self.reader.mysql
        wrote = as_bytes(cython.address(name))
        self.tables.written_by(metadata.mysql_version(wrote) if known else 0)
        self.same_savepoint = savepoint_names.names_of(wrote, mysql=bool(known))
        if not self.met or self.met[len(self.met) - 1].name != self.reader.file:
            self.met.append(facts.LogFile(self.reader.file, e.timestamp, e.server_id, None, False, created))
        return self.arrive(e.start)

    def on_gtid_list(self, e):
        """The newest GTIDs before this file: a count (28 bits), then domain, server and sequence of each."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        count = read_little(b, 4) & 0xFFFFFFF
        if count * 16 > left(b) or not self.met:
            self.reader.corrupt("the GTID list event is malformed")
        gtids = []
        for _ in range(count):
            domain, server_id = read_little(b, 4), read_little(b, 4)
            gtids.append(f"{domain}-{server_id}-{read_little(b, 8)}")
        if not e.artificial:
            known = self.met.pop()
            self.met.append(msgspec.structs.replace(known, gtid_list=",".join(gtids)))
        return 0

    def on_previous_gtids(self, e):
        """MySQL: the GTIDs of all groups before this file."""
        try:
            gtids = previous_gtids(as_bytes(cython.address(e.body)))
        except CorruptLog as error:
            self.reader.corrupt(str(error))
        if not self.met:
            self.reader.corrupt("GTIDs come before the format event")
        known = self.met.pop()
        self.met.append(msgspec.structs.replace(known, gtid_list=gtids))
        return 0
