# cython: compiled
"""The log decoder: bytes of a dump (COM_BINLOG_DUMP) of MariaDB 10.11 in, Arrow batches out.

It opens no socket and decides nothing: it says which groups the log holds, what rows they carry, and where it
stands. Source: MariaDB manual, "1-Binlog Events"; DESIGN sections 3, 4 and 8.
"""

import cython
from cython.cimports.catchment.wire.cursor import Cursor, claim, cursor_over, left, read_little
from cython.cimports.catchment.wire.events import (
    EVENT_ANNOTATE_ROWS,
    EVENT_APPEND_BLOCK,
    EVENT_BEGIN_LOAD_QUERY,
    EVENT_CHECKPOINT,
    EVENT_DELETE_FILE,
    EVENT_DELETE_ROWS,
    EVENT_DELETE_ROWS_2,
    EVENT_DELETE_ROWS_2_PACKED,
    EVENT_EXECUTE_LOAD_QUERY,
    EVENT_FORMAT,
    EVENT_GTID,
    EVENT_GTID_LIST,
    EVENT_HEARTBEAT,
    EVENT_INCIDENT,
    EVENT_INTVAR,
    EVENT_QUERY,
    EVENT_QUERY_PACKED,
    EVENT_RAND,
    EVENT_ROTATE,
    EVENT_START_ENCRYPTION,
    EVENT_STOP,
    EVENT_TABLE_MAP,
    EVENT_USER_VAR,
    EVENT_WRITE_ROWS,
    EVENT_WRITE_ROWS_2,
    EVENT_WRITE_ROWS_PACKED,
    EVENT_XA_PREPARE,
    EVENT_XID,
    FLAG_IGNORABLE,
    Event,
    EventReader,
)
from cython.cimports.catchment.wire.groups import (
    KIND_DDL,
    KIND_ROLLED_BACK,
    KIND_TRANSACTION,
    KIND_XA_END,
    KIND_XA_PREPARE,
    Groups,
)
from cython.cimports.catchment.wire.packets import PacketReader
from cython.cimports.catchment.wire.rows import (
    OP_DELETE,
    OP_INSERT,
    OP_UPDATE,
    ROWS_INCOMPLETE,
    ROWS_MALFORMED,
    Order,
    read_rows,
)
from cython.cimports.catchment.wire.tablemap import TableMap
from cython.cimports.catchment.wire.tables import Tables
from cython.cimports.cpython.buffer import PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t

from catchment.model.errors import CorruptLog, CutMissed, ServerSaid, Unsupported, WireError
from catchment.model.position import Gtid, GroupKind, LastGroup, LogOffset
from catchment.wire import facts, queries
from catchment.wire.queries import Verb

# Flags of a GTID event (MariaDB manual: GTID_EVENT).
STANDALONE = cython.declare(cython.int, 0x01)
GROUP_COMMIT = cython.declare(cython.int, 0x02)
DDL = cython.declare(cython.int, 0x20)
PREPARED_XA = cython.declare(cython.int, 0x40)
COMPLETED_XA = cython.declare(cython.int, 0x80)

STATEMENT_END = cython.declare(cython.int, 0x01)  # flag of a row event: the last of its statement
NO_TABLE = cython.declare(uint64_t, 0xFFFFFF)  # a row event of this table number carries nothing
NO_TABLE_48 = cython.declare(uint64_t, 0xFFFFFFFFFFFF)
NOWHERE = cython.declare(int64_t, 0x7FFFFFFFFFFFFFFF)
KINDS = tuple(GroupKind)


class _File:
    """A log file as it becomes known; `LogDecoder.files` gives it as facts.LogFile."""

    def __init__(self, name, born, server_id, created):
        self.name = name
        self.born = born
        self.server_id = server_id
        self.created = created
        self.gtid_list = None
        self.complete = False


@cython.cfunc
def as_bytes(c: cython.pointer(Cursor)) -> bytes:
    """What is left of an event."""
    return PyBytes_FromStringAndSize(cython.cast(cython.p_char, c.at), left(c))


@cython.cfunc
def read_text(c: cython.pointer(Cursor)) -> str:
    """What is left of an event, a name."""
    return as_bytes(c).decode(errors="replace")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def row_event(kind: cython.int) -> cython.int:
    """Operation of a row event type, -1 for other types. The types come in runs of three."""
    if EVENT_WRITE_ROWS <= kind <= EVENT_DELETE_ROWS:
        kind -= EVENT_WRITE_ROWS
    elif EVENT_WRITE_ROWS_2 <= kind <= EVENT_DELETE_ROWS_2:
        kind -= EVENT_WRITE_ROWS_2
    elif EVENT_WRITE_ROWS_PACKED <= kind <= EVENT_DELETE_ROWS_2_PACKED:
        kind = (kind - EVENT_WRITE_ROWS_PACKED) % 3
    else:
        return -1
    return OP_INSERT if kind == 0 else OP_UPDATE if kind == 1 else OP_DELETE


class LogDecoder:
    """Decodes one dump, from the first byte behind the command; see log.pyi."""

    def __init__(self, start, wanted=None, stop=None, *, keys=None, before="full", verify_checksum=True):
        if before not in ("full", "key"):
            raise ValueError(f"before must be 'full' or 'key', not {before!r}")
        self.start = start
        self.stop = stop
        self.packets = PacketReader()
        self.reader = EventReader(start, verify_checksum)
        self.tables = Tables(wanted, keys)
        self.groups = Groups()
        self.order.key_only = before == "key"
        self.met = []
        self.facts = []
        self.place = start.offset
        self.stop_offset = NOWHERE

    def feed(self, data):
        """Consume bytes; see log.pyi."""
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

    def take_images(self):
        """All image rows decoded so far; see log.pyi."""
        return self.tables.take()

    def take_groups(self):
        """All groups finished so far; see log.pyi."""
        return self.groups.rows.take()

    @property
    def pending_bytes(self):
        return self.tables.size() + self.groups.rows.size()

    @property
    def voids(self):
        return list(self.groups.voids)

    @property
    def files(self):
        return [
            facts.LogFile(f.name, f.born, f.server_id, f.gtid_list, f.complete, f.created) for f in self.met
        ]

    @property
    def at(self):
        return LogOffset(self.reader.file, self.place)

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

    def here(self, e):
        """Where the event begins."""
        return LogOffset(self.reader.file, e.start)

    def on_packet(self, packet):
        """An event, the server's error, or the end of the log (MySQL protocol: ERR and EOF packets)."""
        first: cython.int = read_little(packet, 1)
        if packet.missing:
            self.reader.corrupt("an empty packet came")
        if first == 0:
            return self.on_event(packet)
        if first == 0xFE and left(packet) < 8:
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
        self.dispatch(cython.address(e))
        if self.groups.open:
            if self.reader.offset >= self.stop_offset:
                raise CutMissed(
                    f"log {self.reader.file}: the group that begins at {self.groups.open_group.start} does not "
                    f"end at the cut {self.stop} or before it; plan the epoch again"
                )
        elif not (e.artificial or self.reached_stop):
            self.arrive(self.reader.offset)
        return 0

    def arrive(self, offset):
        """Stand between groups at `offset`. Raises CutMissed behind the stop."""
        self.place = offset
        if offset >= self.stop_offset:
            if offset > self.stop_offset:
                raise CutMissed(
                    f"log {self.reader.file}: no group ends at the cut {self.stop}, the reader stands at {offset}; "
                    "plan the epoch again"
                )
            self.reached_stop = True
        return 0

    def dispatch(self, e):
        """The frequent events; the others go to `dispatch_rare`."""
        if row_event(e.type) >= 0:
            return self.on_rows(e)
        if e.type == EVENT_TABLE_MAP:
            return self.on_table_map(e)
        if e.type == EVENT_XID:
            return self.end_group(e, self.kind)
        if e.type == EVENT_GTID:
            return self.on_gtid(e)
        return self.dispatch_rare(e)

    def dispatch_rare(self, e):
        """Statements, events between groups, and events that say nothing to us."""
        kind: cython.int = e.type
        if kind in (EVENT_QUERY, EVENT_QUERY_PACKED, EVENT_EXECUTE_LOAD_QUERY):
            return self.on_query(e)
        if kind == EVENT_XA_PREPARE:
            return self.on_xa_prepare(e)
        if kind in (EVENT_HEARTBEAT, EVENT_START_ENCRYPTION):
            return 0
        if kind in (EVENT_INTVAR, EVENT_RAND, EVENT_USER_VAR, EVENT_ANNOTATE_ROWS) or kind in (
            EVENT_APPEND_BLOCK,
            EVENT_DELETE_FILE,
            EVENT_BEGIN_LOAD_QUERY,
        ):
            return 0
        if kind == EVENT_ROTATE:
            return self.on_rotate(e)
        if self.groups.open and kind in (EVENT_FORMAT, EVENT_GTID_LIST, EVENT_CHECKPOINT, EVENT_STOP):
            self.reader.corrupt(f"an event of type {kind} stands inside a group")
        if kind == EVENT_FORMAT:
            return self.on_format(e)
        if kind == EVENT_GTID_LIST:
            return self.on_gtid_list(e)
        if kind == EVENT_CHECKPOINT:
            size = read_little(cython.address(e.body), 4)
            if size > left(cython.address(e.body)):
                self.reader.corrupt("the checkpoint event ends too early")
            self.facts.append(facts.Checkpoint(read_text(cython.address(e.body))[:size], self.here(e)))
        elif kind == EVENT_STOP:
            self.met[len(self.met) - 1].complete = True
            self.facts.append(facts.Stop(self.here(e)))
        elif kind == EVENT_INCIDENT:
            number = read_little(cython.address(e.body), 2)
            claim(cython.address(e.body), 1)
            self.facts.append(facts.Incident(number, read_text(cython.address(e.body)), self.here(e)))
        elif not e.flags & FLAG_IGNORABLE:
            raise Unsupported(f"log {self.here(e)}: event type {kind} is not known; read a MariaDB 10.11 log")
        return 0

    def on_gtid(self, e):
        """A group begins."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        if self.groups.open:
            self.reader.corrupt("a group begins inside a group")
        if not self.met:
            self.reader.corrupt("a group comes before the format event")
        self.groups.open_group.sequence = read_little(b, 8)
        self.groups.open_group.domain = read_little(b, 4)
        self.flags = read_little(b, 1)
        self.groups.open_group.server_id = e.server_id
        self.groups.open_group.file = len(self.met) - 1
        self.groups.open_group.start = e.start
        self.groups.begin(self.order.sequence)
        self.order.group = self.groups.ordinal
        self.kind = KIND_TRANSACTION
        if self.flags & (PREPARED_XA | COMPLETED_XA):
            if self.flags & GROUP_COMMIT:
                claim(b, 8)
            code = read_little(b, 4)
            gtrid = read_little(b, 1)
            name = as_bytes(b)
            self.xid = facts.Xid(code, name[1 : 1 + gtrid], name[1 + gtrid : 1 + gtrid + (name[0] if name else 0)])
        if b.missing:
            self.reader.corrupt("the GTID event ends too early")
        return 0

    def end_group(self, e, kind):
        """The open group ends with this event."""
        if not self.groups.open:
            self.reader.corrupt("a group ends where none has begun")
        return self.groups.end(kind, self.reader.offset, e.timestamp)

    def on_table_map(self, e):
        """A number stands for a table from here on."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        number: uint64_t = read_little(b, 6)
        claim(b, 2)
        if b.missing or not self.groups.open:
            self.reader.corrupt("the table map event is too short or outside of a group")
        try:
            self.tables.declare(number, b)
        except CorruptLog as error:
            self.reader.corrupt(str(error))
        return 0

    def on_rows(self, e):
        """A row event: post header (its second version has a length and as many bytes more), then rows."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        number: uint64_t = read_little(b, 6)
        flags: cython.int = read_little(b, 2)
        op: cython.int = row_event(e.type)
        state: cython.int = 0
        table: TableMap
        plain: Cursor
        extra: uint64_t
        if EVENT_WRITE_ROWS_2 <= e.type <= EVENT_DELETE_ROWS_2 or e.type > EVENT_WRITE_ROWS_PACKED + 2:
            extra = read_little(b, 2)
            claim(b, extra - 2)
        if b.missing or not self.groups.open:
            self.reader.corrupt("the row event is too short or outside of a group")
        table = self.tables.find(number)
        if table is None and number != NO_TABLE and number != NO_TABLE_48:
            self.reader.corrupt(f"no table map has declared table number {number}")
        if table is not None and table.wanted:
            self.tables.bound(table)
            if e.type >= EVENT_WRITE_ROWS_PACKED:
                unpacked = self.unpacked(as_bytes(b), op == OP_UPDATE)
                plain = cursor_over(
                    cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(unpacked)), len(unpacked)
                )
                state = read_rows(table, cython.address(plain), op, cython.address(self.order))
            else:
                state = read_rows(table, b, op, cython.address(self.order))
            if state == ROWS_MALFORMED:
                self.reader.corrupt(f"a row of {table.table.id} is malformed")
            if state == ROWS_INCOMPLETE:
                self.incomplete(e, table.table.id)
        if flags & STATEMENT_END and self.flags & STANDALONE:
            self.end_group(e, self.kind)
        return 0

    def incomplete(self, e, table):
        """The row event lacks columns."""
        self.facts.append(facts.IncompleteImage(self.groups.ordinal, table, self.here(e)))
        return 0

    def unpacked(self, body, update):
        """The body of a compressed row event with its rows unpacked."""
        try:
            return queries.unpacked_rows(body, update)
        except CorruptLog as error:
            self.reader.corrupt(str(error))

    def on_query(self, e):
        """A statement: the end of a group, a savepoint, DDL, or rows changed in STATEMENT format."""
        body = as_bytes(cython.address(e.body))
        if not self.groups.open:
            self.reader.corrupt("a statement stands outside of a group")
        try:
            if e.type == EVENT_EXECUTE_LOAD_QUERY:
                query = queries.loaded(body)
            else:
                query = queries.read(body, e.type == EVENT_QUERY_PACKED)
        except CorruptLog as error:
            self.reader.corrupt(str(error))
        verb, name = queries.classify(query.sql)
        if verb is Verb.BEGIN or (verb is Verb.XA and self.flags & PREPARED_XA):
            return 0
        if verb is Verb.COMMIT:
            return self.end_group(e, self.kind)
        if verb is Verb.ROLLBACK:
            self.groups.undo(self.groups.first_image, self.order.sequence)
            return self.end_group(e, KIND_ROLLED_BACK)
        if name:
            return self.on_savepoint(verb, name)
        return self.on_statement(e, query)

    def on_savepoint(self, verb, name):
        """SAVEPOINT, RELEASE SAVEPOINT and ROLLBACK TO SAVEPOINT."""
        if verb is Verb.SAVEPOINT:
            return self.groups.set_savepoint(name, self.order.sequence)
        if verb is Verb.RELEASE:
            found = self.groups.release(name)
        else:
            found = self.groups.roll_back_to(name, self.order.sequence)
        if not found:
            self.reader.corrupt(f"savepoint {name!r} was not set in this group")
        return 0

    def on_statement(self, e, query):
        """Any other statement. One that stands alone is a group by itself."""
        group = self.groups.ordinal
        if self.flags & COMPLETED_XA:
            self.facts.append(facts.XaEnd(group, self.xid, queries.commits_xa(query.sql), self.here(e)))
            return self.end_group(e, KIND_XA_END)
        if self.flags & (STANDALONE | DDL):
            flagged = self.flags & DDL != 0
            self.facts.append(
                facts.Ddl(group, query.schema, query.sql, self.here(e), e.timestamp, flagged, query.sql_mode)
            )
            self.kind = KIND_DDL
            return self.end_group(e, KIND_DDL) if self.flags & STANDALONE else 0
        self.facts.append(facts.Statement(group, query.schema, query.sql, self.here(e), e.timestamp))
        return 0

    def on_xa_prepare(self, e):
        """An XA transaction is prepared, or committed in one phase and then like any other."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        one_phase = read_little(b, 1)
        code = read_little(b, 4)
        gtrid = read_little(b, 4)
        bqual = read_little(b, 4)
        name = as_bytes(b)
        if b.missing or gtrid + bqual != len(name):
            self.reader.corrupt("the XA prepare event is malformed")
        if one_phase:
            return self.end_group(e, self.kind)
        xid = facts.Xid(code, name[:gtrid], name[gtrid:])
        self.facts.append(facts.XaPrepare(self.groups.ordinal, xid, self.here(e)))
        return self.end_group(e, KIND_XA_PREPARE)

    def on_rotate(self, e):
        """The end of a file; or, made by the server, the name of the file whose events come next."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        offset: uint64_t = read_little(b, 8)
        name = read_text(b)
        if not e.artificial:
            if self.groups.open or not self.met:
                self.reader.corrupt("a rotation stands inside a group or before the format event")
            self.met[len(self.met) - 1].complete = True
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
        self.reader.enter(name, offset)
        self.place = offset
        self.stop_offset = NOWHERE
        if self.stop is not None and self.stop.file == name:
            self.stop_offset = self.stop.offset
        elif self.stop is not None and self.stop.number < self.at.number:
            raise CutMissed(f"log {name}: the reader has passed the cut {self.stop}; plan the epoch again")
        return 0

    def on_format(self, e):
        """A file begins; in a dump from the middle the server sends a copy of its format event."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        version = read_little(b, 2)
        claim(b, 50)
        created = read_little(b, 4)
        header = read_little(b, 1)
        if version != 4 or header != 19:
            self.reader.corrupt(f"log format {version} with headers of {header} bytes is not known")
        if not self.met or self.met[len(self.met) - 1].name != self.reader.file:
            self.met.append(_File(self.reader.file, e.timestamp, e.server_id, created))
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
            self.met[len(self.met) - 1].gtid_list = ",".join(gtids)
        return 0
