# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204  (names and signatures of groups.pxd)
"""Groups of the log: one row each, and which image rows were undone inside them."""

import cython
import pyarrow as pa
from cython.cimports.catchment.wire.cells.builders import (
    Cells,
    end_row,
    put_bytes,
    put_i8,
    put_i32,
    put_i64,
    put_null,
    put_raw,
    start_row,
)
from cython.cimports.libc.stdint import int64_t

from catchment.wire.cells.builders import ColumnBuilders

SCHEMA = pa.schema(
    [
        ("ordinal", pa.int64()),
        ("file", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("domain", pa.int64()),
        ("server_id", pa.int64()),
        ("sequence", pa.int64()),
        ("timestamp", pa.int64()),
        ("kind", pa.uint8()),
        ("uuid", pa.binary(16)),
        ("tag", pa.string()),
    ]
)
NO_GROUPS = pa.RecordBatch.from_pylist([], SCHEMA)


class Groups:
    """Which group is open, its savepoints, and a row per finished group; see groups.pxd."""

    def __cinit__(self):
        self.rows = ColumnBuilders(SCHEMA)
        self.savepoints = []
        self.voids = []

    def begin(self, image):
        """The group described by `open_group` begins; `image` is the sequence of the next image row."""
        self.open = True
        self.first_image = image

    def end(self, kind, at, timestamp):
        """The open group ends at offset `at`."""
        row: int64_t
        c: cython.pointer(Cells)
        start_row(self.rows)
        row = self.rows.rows
        c = self.rows.cells
        put_i64(c, row, self.ordinal)
        put_i32(c + 1, row, self.open_group.file)
        put_i64(c + 2, row, self.open_group.start)
        put_i64(c + 3, row, at)
        put_i64(c + 4, row, self.open_group.domain)
        put_i64(c + 5, row, self.open_group.server_id)
        put_i64(c + 6, row, self.open_group.sequence)
        put_i64(c + 7, row, timestamp)
        put_i8(c + 8, row, kind)
        if self.open_group.named:
            put_raw(c + 9, row, self.open_group.uuid)
            put_bytes(c + 10, row, self.open_group.tag, self.open_group.tag_size)
        else:
            put_null(c + 9, row)
            put_null(c + 10, row)
        end_row(self.rows)
        self.last = self.open_group
        self.last.end = at
        self.last.kind = kind
        self.any = True
        self.open = False
        self.ordinal += 1
        if self.savepoints:
            self.savepoints.clear()
        return 0

    def drop(self, image):
        """The open group was cut off: its rows, up to image row `image`, count for nothing."""
        self.undo(self.first_image, image)
        self.open = False
        self.ordinal += 1
        self.savepoints.clear()
        return 0

    def undo(self, first, image):
        """Image rows from `first` to before `image` are undone; ranges are kept apart and in order."""
        if first == image:
            return 0
        while self.voids and self.voids[len(self.voids) - 1][0] >= first:
            self.voids.pop()
        if self.voids and self.voids[len(self.voids) - 1][1] >= first:
            first = self.voids.pop()[0]
        self.voids.append((first, image))
        return 0

    def set_savepoint(self, name, image):
        """A savepoint of a name used before in the group replaces that one (MariaDB manual: SAVEPOINT)."""
        self.savepoints = [point for point in self.savepoints if point[0] != name]
        self.savepoints.append((name, image))
        return 0

    def release(self, name):
        """Forget a savepoint and those set after it; 0 when there is none of that name."""
        i: cython.int
        for i in range(len(self.savepoints)):
            if self.savepoints[i][0] == name:
                del self.savepoints[i:]
                return 1
        return 0

    def roll_back_to(self, name, image):
        """Undo everything since the savepoint, which stays; 0 when there is none of that name."""
        i: cython.int
        for i in range(len(self.savepoints)):
            if self.savepoints[i][0] == name:
                self.undo(self.savepoints[i][1], image)
                del self.savepoints[i + 1 :]
                return 1
        return 0
