# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN202, ANN204, F821  (names and signatures of results.pxd)
"""Result sets in the binary protocol -> Arrow: bytes of the connection in, batches out.

A result set is: column count, column definitions, EOF, rows, EOF (MariaDB manual: Result Set Packets). Only
the server's own last packet ends it. Where EOF packets are deprecated the first is left out and the last is
an OK packet.
"""

import cython
import pyarrow as pa
from cython.cimports.catchment.wire.cells.builders import ColumnBuilders, end_row, put_null, start_row
from cython.cimports.catchment.wire.cells.cursor import Cursor, claim, left
from cython.cimports.catchment.wire.packets.reader import PacketReader
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.libc.stdlib import calloc, free

from catchment.model.errors import CorruptResult, SourceError, Unsupported, WireError
from catchment.model.table import DECIMAL_DIGITS_MAX, Kind
from catchment.wire.cells.types import arrow_type
from catchment.wire.packets.replies import (
    END,
    EOF_SIZE,
    ERROR,
    Fields,
    check_column,
    definition,
    end,
    server_error,
)

END_BYTE = cython.declare(cython.int, END)
ERROR_BYTE = cython.declare(cython.int, ERROR)
END_SIZE = cython.declare(int64_t, EOF_SIZE)
MOST_COLUMNS = cython.declare(cython.int, 4096)  # of a table in MariaDB

_FAULTS = {
    TOO_SHORT: "the packet ends too early",
    BAD_LENGTH: "the value has a length that its type has not",
    BAD_TIME: "there is no such date or time",
    BAD_NUMBER: "this is not a number of the column's digits",
}
_UNSIGNED = {
    Kind.TINYINT: READ_UINT8,
    Kind.SMALLINT: READ_UINT16,
    Kind.MEDIUMINT: READ_UINT24,
    Kind.INT: READ_UINT32,
    Kind.BIGINT: READ_UINT64,
}
_READERS = {
    Kind.BIT: READ_BIT,
    Kind.DATE: READ_DATE,
    Kind.TIME: READ_TIME,
    Kind.DATETIME: READ_DATETIME,
    Kind.TIMESTAMP: READ_DATETIME,
    Kind.TEXT: READ_TEXT,
    Kind.ENUM: READ_TEXT,
    Kind.SET: READ_TEXT,
    Kind.JSON: READ_TEXT,
    Kind.UUID: READ_TEXT,
    Kind.INET4: READ_TEXT,
    Kind.INET6: READ_TEXT,
    Kind.BINARY: READ_BYTES,
    Kind.BLOB: READ_BYTES,
    Kind.GEOMETRY: READ_BYTES,
}


def _reader(kind):
    """Which Reader reads values of a column type."""
    if kind.kind is Kind.DECIMAL:
        return READ_DECIMAL if kind.length <= DECIMAL_DIGITS_MAX else READ_LONG_DECIMAL
    if kind.unsigned and kind.kind in _UNSIGNED:
        return _UNSIGNED[kind.kind]
    return _READERS.get(kind.kind, READ_RAW)


@cython.cfunc
def _fields_of(packet: cython.pointer(Cursor)) -> object:
    """A rare packet as a Python value."""
    start = cython.cast(cython.p_char, packet.at)
    return Fields(PyBytes_FromStringAndSize(start, left(packet)))


class ResultDecoder:
    """Decodes one result set of known columns (see results.pyi)."""

    def __cinit__(self, table_columns):
        self.columns = tuple(table_columns)
        self.count = len(self.columns)
        if not 1 <= self.count <= MOST_COLUMNS:
            raise ValueError(f"a result set has 1 to {MOST_COLUMNS} columns, not {self.count}")
        self.fields = cython.cast(cython.pointer(Field), calloc(self.count, cython.sizeof(Field)))
        if self.fields == cython.NULL:
            raise MemoryError
        i: cython.int
        for i in range(self.count):
            kind = self.columns[i].type
            self.fields[i].reader = _reader(kind)
            self.fields[i].digits = kind.length
            self.fields[i].scale = kind.scale
        schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in self.columns])
        self.builders = ColumnBuilders(schema)
        self.packets = PacketReader()
        self.stage = AT_COUNT

    def __dealloc__(self):
        free(self.fields)

    @property
    def pending_bytes(self):
        return self.builders.size()

    def take_batch(self):
        return self.builders.take()

    def feed(self, data):
        view: cython.const[uint8_t][::1] = data
        packet: Cursor
        if self.stage == BROKEN:
            raise CorruptResult("the answer broke off before; what comes after it cannot be understood")
        if view.shape[0] == 0:
            return
        try:
            self.packets.start(cython.address(view[0]), view.shape[0])
            while self.packets.next(cython.address(packet)):
                self.on_packet(cython.address(packet))
            if self.ended and self.packets.head_used:
                raise CorruptResult("bytes follow the end of the result set")
        except BaseException as error:
            self.stage = BROKEN
            self.ended = False
            self.builders.undo()
            if isinstance(error, WireError) and not isinstance(error, CorruptResult):
                raise CorruptResult(str(error)) from error
            raise

    def on_packet(self, packet):
        """One packet at the current stage."""
        first: cython.int = packet.at[0] if left(packet) > 0 else -1
        if first == 0 and self.stage in (AT_ROWS, AT_DEFINITIONS_END):
            if self.stage == AT_DEFINITIONS_END:
                self.without_eof = True
                self.stage = AT_ROWS
            return self.on_row(packet)
        if first == ERROR_BYTE and self.stage != AT_END:
            raise server_error(_fields_of(packet))
        if first == END_BYTE and self.stage in (AT_ROWS, AT_DEFINITIONS_END):
            return self.on_end(packet)
        return self.on_header(packet)

    def on_header(self, packet):
        """The column count or a column definition; anything else does not belong here."""
        fields = _fields_of(packet)
        if self.stage == AT_COUNT:
            found = fields.length()
            if found == 0:
                raise CorruptResult("the statement gave no result set")
            if found != self.count:
                raise SourceError(
                    f"the result set has {found} columns, expected {self.count}; "
                    "read the table's columns again"
                )
            self.stage = AT_DEFINITIONS
        elif self.stage == AT_DEFINITIONS:
            expected = self.columns[self.defined]
            self.defined += 1
            check_column(self.defined, expected, definition(fields))
            if self.defined == self.count:
                self.stage = AT_DEFINITIONS_END
        elif self.stage == AT_END:
            raise CorruptResult("a packet follows the end of the result set")
        else:
            raise CorruptResult(f"a packet after row {self.rows} is neither a row nor the end nor an error")
        return 0

    def on_end(self, packet):
        """EOF, after the definitions or after the rows, or the OK packet in its place."""
        short: cython.bint = left(packet) == END_SIZE
        found = end(_fields_of(packet))
        if self.stage == AT_DEFINITIONS_END and short:
            self.stage = AT_ROWS
            return 0
        if self.stage == AT_DEFINITIONS_END:
            self.without_eof = True
        if short == self.without_eof:
            raise CorruptResult(f"the packet after row {self.rows} is not the end that this connection uses")
        self.warning_count = found.warnings
        self.status = found.status
        self.stage = AT_END
        self.ended = True
        return 0

    def on_row(self, packet):
        """0x00, a bitmap of NULLs that starts with two unused bits, the other values one after another."""
        i: cython.int
        row: int64_t
        fault: cython.int = FINE
        c: cython.pointer(Cells) = self.builders.cells
        claim(packet, 1)
        nulls: cython.pointer(cython.const[uint8_t]) = claim(packet, (self.count + 9) // 8)
        if nulls == cython.NULL:
            raise CorruptResult(f"row {self.rows + 1}: the packet ends too early")
        start_row(self.builders)
        row = self.builders.rows
        for i in range(self.count):
            if (nulls[(i + 2) >> 3] >> ((i + 2) & 7)) & 1:
                put_null(cython.address(c[i]), row)
                continue
            fault = read_cell(cython.address(self.fields[i]), cython.address(c[i]), row, packet)
            if fault != FINE:
                raise self.fault(i, fault)
        if left(packet) != 0:
            raise CorruptResult(f"row {self.rows + 1}: {left(packet)} bytes follow its last column")
        end_row(self.builders)
        self.rows += 1
        return 0

    def fault(self, column, fault):
        """The error for a cell that cannot be read; of text that is not UTF-8, as the log's reader has it."""
        where = f"row {self.rows + 1}, column {self.columns[column].name!r}"
        if fault == BAD_TEXT:
            return Unsupported(f"{where}: a value is not valid UTF-8; repair it on the server")
        return CorruptResult(f"{where}: {_FAULTS[fault]}")
