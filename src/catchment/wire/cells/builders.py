# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204, F821  (names and signatures of builders.pxd)
"""Arrow columns built on raw memory: cells are written by the inline functions of builders.pxd.

A batch takes the memory over as it is; nothing is copied and no Python object is made per cell.
"""

import cython
import pyarrow as pa
from cython.cimports.libc.stdint import int32_t, int64_t, intptr_t, uint8_t
from cython.cimports.libc.stdlib import calloc, free, realloc
from cython.cimports.libc.string import memset

from catchment.model.errors import Unsupported

FIRST_ROWS = cython.declare(cython.int, 64)
FIRST_BYTES = cython.declare(int64_t, 1024)
# A batch is expected to be as large as the one before and an eighth more; memory not written to costs nothing.
MOST_FIRST_ROWS = cython.declare(int64_t, 1 << 20)
MOST_FIRST_BYTES = cython.declare(int64_t, 1 << 26)
VARIABLE = (pa.string().id, pa.binary().id)
OFFSET_MAX = cython.declare(int64_t, 0x7FFFFFFF)


@cython.final
@cython.cclass
class Memory:
    """Owns one malloc'd block for as long as an Arrow buffer refers to it."""

    start: cython.p_void

    def __dealloc__(self):
        free(self.start)


@cython.cfunc
def as_buffer(start: cython.p_void, size: int64_t) -> object:
    """Hand the block over to an Arrow buffer of `size` bytes."""
    memory: Memory = Memory.__new__(Memory)
    shrunk: cython.p_void = realloc(start, max(size, 1))
    memory.start = shrunk if shrunk != cython.NULL else start
    return pa.foreign_buffer(cython.cast(intptr_t, memory.start), size, memory)


@cython.cfunc
@cython.exceptval(check=True)
def resized(start: cython.p_void, size: int64_t) -> cython.p_void:
    """`realloc` that raises MemoryError and leaves the old block in place."""
    block: cython.p_void = realloc(start, size)
    if block == cython.NULL:
        raise MemoryError
    return block


def grow_bytes(c, n):
    """Make room for `n` more bytes in a column of variable width."""
    need: int64_t = c.used + n
    if need > OFFSET_MAX:
        raise Unsupported("values of one column exceed 2 GiB in one batch: take batches more often")
    room: int64_t = max(need, 2 * c.room, c.hint, FIRST_BYTES)
    c.values = cython.cast(cython.pointer(uint8_t), resized(c.values, room))
    c.room = room
    return 0


class ColumnBuilders:
    """The columns of one schema, filled row by row, all of the same length.

    A decoder calls `start_row`, one put function per column, then `end_row` (builders.pxd). Fixed-width
    types, decimal128, string and binary are carried.
    """

    def __cinit__(self, schema: pa.Schema):
        self.schema = schema
        self.count = len(schema)
        self.cells = cython.cast(cython.pointer(Cells), calloc(max(self.count, 1), cython.sizeof(Cells)))
        if self.cells == cython.NULL:
            raise MemoryError
        i: cython.int
        for i in range(self.count):
            t = schema.field(i).type
            variable = t.id in VARIABLE
            self.cells[i].width = 0 if variable else t.bit_width // 8
        self.hint = FIRST_ROWS

    def __dealloc__(self):
        i: cython.int
        if self.cells == cython.NULL:
            return
        for i in range(self.count):
            free(self.cells[i].values)
            free(self.cells[i].offsets)
            free(self.cells[i].valid)
        free(self.cells)

    def grow(self):
        """Double the rows that fit; on MemoryError the builders stay as they were."""
        i: cython.int
        room: int64_t = max(self.hint, 2 * self.room)
        c: cython.pointer(Cells)
        for i in range(self.count):
            c = cython.address(self.cells[i])
            c.valid = cython.cast(cython.pointer(uint8_t), resized(c.valid, (room + 7) // 8))
            memset(c.valid + (self.room + 7) // 8, 0xFF, (room + 7) // 8 - (self.room + 7) // 8)
            if c.width:
                c.values = cython.cast(cython.pointer(uint8_t), resized(c.values, room * c.width))
                continue
            c.offsets = cython.cast(cython.pointer(int32_t), resized(c.offsets, (room + 1) * 4))
            c.offsets[0] = 0
            if c.values == cython.NULL:
                grow_bytes(c, 0)
        self.room = room
        return 0

    def undo(self):
        """Forget whatever was put into the row under construction."""
        i: cython.int
        row: int64_t = self.rows
        c: cython.pointer(Cells)
        if row >= self.room:
            return
        for i in range(self.count):
            c = cython.address(self.cells[i])
            if not (c.valid[row >> 3] >> (row & 7)) & 1:
                c.valid[row >> 3] |= cython.cast(uint8_t, 1 << (row & 7))
                c.nulls -= 1
            if c.width == 0:
                c.used = c.offsets[row]

    def size(self):
        """Bytes that the finished rows take in a batch, about."""
        i: cython.int
        total: int64_t = 0
        for i in range(self.count):
            total += self.cells[i].used + self.rows * (self.cells[i].width or 4)
        return total

    def take(self):
        """All finished rows as a `pa.RecordBatch` of the schema; the builders start anew."""
        i: cython.int
        arrays = []
        rows: int64_t = self.rows
        if rows == 0:
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        for i in range(self.count):
            arrays.append(self.column(i))
        self.rows = 0
        self.room = 0
        self.hint = max(min(rows + rows // 8, MOST_FIRST_ROWS), FIRST_ROWS)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def column(self, i):
        """Move one column's memory into an Arrow array."""
        c: cython.pointer(Cells) = cython.address(self.cells[i])
        rows: int64_t = self.rows
        valid = as_buffer(c.valid, (rows + 7) // 8)
        c.valid = cython.NULL
        buffers = [valid if c.nulls else None]
        if c.width == 0:
            buffers.append(as_buffer(c.offsets, (rows + 1) * 4))
            c.offsets = cython.NULL
        buffers.append(as_buffer(c.values, rows * c.width if c.width else c.used))
        c.values = cython.NULL
        c.hint = min(c.used + c.used // 8, MOST_FIRST_BYTES)
        nulls = c.nulls
        c.nulls = 0
        c.used = 0
        c.room = 0
        return pa.Array.from_buffers(self.schema.field(i).type, rows, buffers, nulls)
