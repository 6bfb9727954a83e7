# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204, PLR1714  (names and signatures of contents.pxd)
"""What stands inside a group of the log: its GTID, table maps, rows, statements, and its end."""

import cython
from cython.cimports.catchment.wire.cells.cursor import Cursor, claim, cursor_over, left, read_little
from cython.cimports.catchment.wire.cells.plans import TableMap
from cython.cimports.catchment.wire.log.events import (
    EVENT_EXECUTE_LOAD_QUERY,
    EVENT_PARTIAL_UPDATE_ROWS,
    EVENT_QUERY_PACKED,
    EVENT_WRITE_ROWS_PACKED,
    FLAG_THREAD_SPECIFIC,
    EventReader,
)
from cython.cimports.catchment.wire.log.groups import (
    KIND_COMPLETED_DDL,
    KIND_DDL,
    KIND_ROLLED_BACK,
    KIND_TRANSACTION,
    KIND_XA_END,
    KIND_XA_PREPARE,
    Groups,
)
from cython.cimports.catchment.wire.log.rows import (
    OP_UPDATE,
    ROWS_INCOMPLETE,
    ROWS_MALFORMED,
    UNCHECKED,
    has_extra,
    read_rows,
    row_operation,
)
from cython.cimports.catchment.wire.log.sparse import columns_present, read_sparse
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t

from catchment.model.errors import AlteredUnseen, CorruptLog, Undescribed, Unsupported
from catchment.model.position import LogOffset
from catchment.wire.log import facts, metadata, queries
from catchment.wire.log.queries import Verb

# Flags of a GTID event (MariaDB manual: GTID_EVENT).
STANDALONE = cython.declare(cython.int, 0x01)
GROUP_COMMIT = cython.declare(cython.int, 0x02)
DDL = cython.declare(cython.int, 0x20)
PREPARED_XA = cython.declare(cython.int, 0x40)
COMPLETED_XA = cython.declare(cython.int, 0x80)
# Further flags, behind the number of a group commit: parts of a two-phase ALTER.
START_ALTER = cython.declare(cython.int, 0x02)
ROLLBACK_ALTER = cython.declare(cython.int, 0x08)

STATEMENT_END = cython.declare(cython.int, 0x01)  # flag of a row event: the last of its statement
NO_FOREIGN_KEYS = cython.declare(cython.int, 0x02)  # the same: its session had foreign_key_checks=0
NO_TABLE = cython.declare(uint64_t, 0xFFFFFF)  # a row event of this table number carries nothing
NO_TABLE_48 = cython.declare(uint64_t, 0xFFFFFFFFFFFF)


def as_bytes(c):
    """What is left of an event."""
    return PyBytes_FromStringAndSize(cython.cast(cython.p_char, c.at), left(c))


def read_text(c):
    """What is left of an event, a name."""
    return as_bytes(c).decode(errors="replace")


class Contents:
    """Decodes the events inside groups; LogDecoder adds what lies between them (see contents.pxd)."""

    def __init__(self, start, key_only, sparse, verify_checksum):
        self.reader = EventReader(start, verify_checksum)
        self.groups = Groups()
        self.order.key_only = key_only
        self.order.sparse = sparse
        self.met = []
        self.facts = []

    def here(self, e):
        """Where the event begins."""
        return LogOffset(self.reader.file, e.start)

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
        self.groups.open_group.named = False
        self.groups.begin(self.order.sequence)
        self.order.group = self.groups.ordinal
        self.kind = KIND_TRANSACTION
        self.extra = 0
        if self.flags & (PREPARED_XA | COMPLETED_XA):
            if self.flags & GROUP_COMMIT:
                claim(b, 8)
            code = read_little(b, 4)
            gtrid = read_little(b, 1)
            name = as_bytes(b)
            self.xid = facts.Xid(
                code, name[1 : 1 + gtrid], name[1 + gtrid : 1 + gtrid + (name[0] if name else 0)]
            )
        elif self.flags & DDL:
            if self.flags & GROUP_COMMIT:
                claim(b, 8)
            if left(b):
                self.extra = read_little(b, 1)
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
        except Undescribed as error:  # the definitions as of here are wrong, not the rows
            raise Undescribed(f"log {self.here(e)}: {error}") from None
        except (AlteredUnseen, Unsupported) as error:
            self.leave(e, metadata.table_id(as_bytes(b)), error)
            self.tables.declare(number, b)
        return 0

    def leave(self, e, table, why):
        """No rows of a table are decoded from here on."""
        self.tables.gone.add(table)
        self.facts.append(facts.Unreadable(self.groups.ordinal, table, self.here(e), str(why)))
        return 0

    def on_rows(self, e):
        """A row event: post header (its second version has a length and as many bytes more), then rows."""
        b: cython.pointer(Cursor) = cython.address(e.body)
        number: uint64_t = read_little(b, 6)
        flags: cython.int = read_little(b, 2)
        op: cython.int = row_operation(e.type)
        state: cython.int = 0
        table: TableMap
        plain: Cursor
        rows: cython.pointer(Cursor) = b
        extra: uint64_t
        if has_extra(e.type):
            extra = read_little(b, 2)
            claim(b, extra - 2)
        if b.missing or not self.groups.open:
            self.reader.corrupt("the row event is too short or outside of a group")
        if flags & STATEMENT_END:
            self.tables.between_statements = True
        table = self.tables.find(number)
        if table is None and number != NO_TABLE and number != NO_TABLE_48:
            self.reader.corrupt(f"no table map has declared table number {number}")
        if table is not None and table.wanted:
            self.tables.bound(table)
            self.order.unchecked = UNCHECKED if flags & NO_FOREIGN_KEYS else 0
            if e.type >= EVENT_WRITE_ROWS_PACKED:
                unpacked = self.unpacked(as_bytes(b), op == OP_UPDATE)
                plain = cursor_over(
                    cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(unpacked)), len(unpacked)
                )
                rows = cython.address(plain)
            try:
                state = self.read_images(e, table, rows, op)
            except Unsupported as error:
                self.leave(e, table.table.id, error)
                table.wanted = False
            if state == ROWS_MALFORMED:
                self.reader.corrupt(f"a row of {table.table.id} is malformed")
        if flags & STATEMENT_END and self.flags & STANDALONE:
            self.end_group(e, self.kind)
        return 0

    def read_images(self, e, table, body, op):
        """The rows of a row event, from the number of columns on; a fact tells when they lack columns."""
        state: cython.int
        start: Cursor = body[0]
        first: int64_t = self.order.sequence
        partial: cython.bint = e.type == EVENT_PARTIAL_UPDATE_ROWS
        if not partial:
            state = read_rows(table, body, op, cython.address(self.order))
            if state != ROWS_INCOMPLETE:
                return state
            body[0] = start
        state = read_sparse(table, body, op, cython.address(self.order), partial)
        if state == ROWS_INCOMPLETE:
            before, after = columns_present(table, start, op)
            rows = (first, self.order.sequence)
            table_id = table.table.id
            self.facts.append(
                facts.PartialImage(self.groups.ordinal, table_id, self.here(e), before, after, rows)
            )
        return state

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
        if self.reader.mysql and not self.begun:
            return self.on_first_statement(e, verb, query)
        if verb is Verb.BEGIN or (verb is Verb.XA and (self.flags & PREPARED_XA or self.reader.mysql)):
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
        same = self.same_savepoint(name)
        if verb is Verb.SAVEPOINT:
            return self.groups.set_savepoint(same, self.order.sequence)
        if verb is Verb.RELEASE:
            found = self.groups.release(same)
        else:
            found = self.groups.roll_back_to(same, self.order.sequence)
        if not found:
            self.reader.corrupt(f"savepoint {name!r} was not set in this group")
        return 0

    def on_statement(self, e, query):
        """Any other statement. One that stands alone is a group by itself."""
        group = self.groups.ordinal
        if self.flags & COMPLETED_XA:
            self.facts.append(facts.XaEnd(group, self.xid, queries.commits_xa(query.sql), self.here(e)))
            return self.end_group(e, KIND_XA_END)
        if self.flags & (STANDALONE | DDL) or query.is_ddl:
            self.on_ddl(e, query, self.flags & DDL or query.is_ddl)
            return self.end_group(e, self.kind_of_statement()) if self.flags & STANDALONE else 0
        self.facts.append(
            facts.Statement(
                group,
                query.schema,
                query.sql,
                self.here(e),
                e.timestamp,
                query.sql_mode,
                self.reader.mysql,
                self.folds,
            )
        )
        return 0

    def kind_of_statement(self):
        """The kind of a group that is one statement: MariaDB logs DDL when it is over, except START ALTER."""
        completed = self.flags & DDL and not self.extra & (START_ALTER | ROLLBACK_ALTER)
        return KIND_COMPLETED_DDL if completed else KIND_DDL

    def on_ddl(self, e, query, flagged):
        """A statement that is a group, or one in a group that the server marked.

        An ALTER in two phases counts at its COMMIT ALTER, whose statement is the same (seen on MariaDB 10.11).
        """
        self.kind = KIND_DDL
        if self.extra & (START_ALTER | ROLLBACK_ALTER):
            return 0
        fact = facts.Ddl(
            self.groups.ordinal,
            query.schema,
            query.sql,
            self.here(e),
            e.timestamp,
            flagged,
            query.sql_mode,
            self.reader.mysql,
            query.failed or (e.flags & FLAG_THREAD_SPECIFIC) != 0,
            self.folds,
        )
        self.facts.append(fact)
        if self.follow is not None:
            self.tables.redefine(self.follow(fact))
        return 0

    def on_first_statement(self, e, verb, query):
        """MySQL: BEGIN or XA START, or a statement that is a group by itself."""
        if verb in (Verb.BEGIN, Verb.XA):
            self.begun = True
            return 0
        xid = queries.ended_xa(query.sql)
        if xid is None:
            self.on_ddl(e, query, query.is_ddl)
            return self.end_group(e, KIND_DDL)
        committed = queries.commits_xa(query.sql)
        self.facts.append(facts.XaEnd(self.groups.ordinal, xid, committed, self.here(e)))
        return self.end_group(e, KIND_XA_END)

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
