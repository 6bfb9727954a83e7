# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204  (names and signatures of met_tables.pxd)
"""Tables met in the log: their numbers, their definitions, and the builders that hold their rows."""

from functools import lru_cache

import cython
import pyarrow as pa
from cython.cimports.catchment.wire.cells.builders import ColumnBuilders
from cython.cimports.catchment.wire.cells.cursor import left
from cython.cimports.catchment.wire.cells.plans import TableMap
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcmp

from catchment.model.errors import CorruptLog
from catchment.model.image import GROUP, OP, SEQ, SIDE
from catchment.wire.cells import types
from catchment.wire.log import metadata
from catchment.wire.log.facts import Images

IMAGE_FIELDS = (
    pa.field(SIDE, pa.uint8()),
    pa.field(OP, pa.uint8()),
    pa.field(SEQ, pa.int64()),
    pa.field(GROUP, pa.int64()),
)
MAPS_MAX = cython.declare(cython.int, 4096)
STATEMENT_MAPS_MAX = cython.declare(cython.int, 1 << 18)
# Schemas of so many tables are remembered: each dump meets its tables once more.
_SCHEMAS_MAX = 1 << 12
BUILDER_MAX = cython.declare(int64_t, 1 << 28)


@lru_cache(_SCHEMAS_MAX)
def image_schema(table):
    """Arrow schema of a table's image rows: its columns, then SIDE, OP, SEQ, GROUP."""
    return pa.schema([*types.arrow_schema(table), *IMAGE_FIELDS])


class Tables:
    """Table numbers of the log, and one set of builders per version of each wanted table; see met_tables.pxd."""

    def __cinit__(self, wanted, keys, kinds, definitions):
        # Not copied: a feed has thousands of tables, and a log names few.
        self.wanted = wanted
        self.definitions = definitions or {}
        self.redefined = {}
        self.gone = set()
        self.keys = keys or {}
        self.kinds = kinds or {}
        self.maps = {}
        self.between_statements = True
        self.builders = {}
        self.full = []

    def written_by(self, mysql):
        """A file begins. Another server version may mean something else by the same table map."""
        if mysql != self.mysql:
            self.mysql = mysql
            self.maps.clear()
            self.last = None
        return 0

    def redefine(self, changes):
        """Definitions from here on; None: no rows of the table are decoded any more."""
        for table, definition in changes.items():
            if definition is None:
                self.gone.add(table)
            else:
                self.redefined[table] = definition
        if changes:
            self.maps.clear()
            self.last = None
        return 0

    def declare(self, number, body):
        """A table map says what `number` means from now on. Raises CorruptLog, SourceError.

        A statement declares all of its tables before its first row, so old numbers may be forgotten between statements
        only. Within one, the maps declared just before would be lost.
        """
        size: int64_t = left(body)
        if self.between_statements and len(self.maps) >= MAPS_MAX:
            self.maps.clear()
            self.last = None
        self.between_statements = False
        known: TableMap = self.find(number)
        if (
            known is not None
            and PyBytes_GET_SIZE(known.body) == size
            and memcmp(PyBytes_AS_STRING(known.body), body.at, size) == 0
        ):
            return 0
        if len(self.maps) >= STATEMENT_MAPS_MAX:
            raise CorruptLog(f"one statement declares {len(self.maps)} tables or more")
        raw = PyBytes_FromStringAndSize(cython.cast(cython.p_char, body.at), size)
        described = None
        images = None
        table = metadata.table_id(raw)
        if (self.wanted is None or table in self.wanted) and table not in self.gone:
            definition = self.redefined.get(table) or self.definitions.get(table)
            described = metadata.describe(raw, self.keys, self.kinds, self.mysql, definition)
            images = self.builders.get(described.table)
            if images is None:
                images = ColumnBuilders(image_schema(described.table))
                self.builders[described.table] = images
        self.last = TableMap(number, raw, described, images)
        self.maps[number] = self.last
        return 0

    def find(self, number):
        """The table of that number, None when no table map has declared it."""
        if self.last is None or self.last.number != number:
            found = self.maps.get(number)
            if found is None:
                return None
            self.last = found
        return self.last

    def bound(self, m):
        """Set the rows of a builder aside when they are many, so that no column reaches 2 GiB."""
        if m.images.size() > BUILDER_MAX:
            self.full.append(Images(m.table, m.images.take()))
        return 0

    def size(self):
        """Bytes that the rows held take, about."""
        total: int64_t = 0
        builders: ColumnBuilders
        for builders in self.builders.values():
            total += builders.size()
        for images in self.full:
            total += images.batch.nbytes
        return total

    def take(self):
        """All image rows held, as one batch per table version and rarely more."""
        taken, self.full = self.full, []
        builders: ColumnBuilders
        for table, builders in self.builders.items():
            if builders.rows:
                taken.append(Images(table, builders.take()))
        return taken
