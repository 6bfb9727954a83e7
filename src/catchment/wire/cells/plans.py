# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN204, F821  (names and signatures of plans.pxd)
"""A table map made ready for decoding: per column the way its cells are read, chosen once."""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint16_t
from cython.cimports.libc.stdlib import calloc, free, malloc
from cython.cimports.libc.string import memcpy

from catchment.model.definition import is_hidden
from catchment.model.table import DECIMAL_DIGITS_MAX, Kind
from catchment.wire.cells import charsets, types

# Decoding code, bytes in the log: signed, then unsigned.
_INTEGERS = {
    Kind.TINYINT: ((CELL_I8, 1), (CELL_U8, 1)),
    Kind.SMALLINT: ((CELL_I16, 2), (CELL_U16, 2)),
    Kind.MEDIUMINT: ((CELL_I24, 3), (CELL_U24, 3)),
    Kind.INT: ((CELL_I32, 4), (CELL_U32, 4)),
    Kind.BIGINT: ((CELL_I64, 8), (CELL_U64, 8)),
}
_PLAIN = {
    Kind.FLOAT: (CELL_RAW, 4),
    Kind.DOUBLE: (CELL_RAW, 8),
    Kind.YEAR: (CELL_YEAR, 1),
    Kind.DATE: (CELL_DATE, 3),
}
# Bytes without the fraction, which takes one byte for two digits.
_FRACTIONAL = {
    Kind.TIME: (CELL_TIME, 3),
    Kind.DATETIME: (CELL_DATETIME, 5),
    Kind.TIMESTAMP: (CELL_TIMESTAMP, 4),
}
_STRINGS = {
    Kind.BINARY: CELL_PADDED,
    Kind.UUID: CELL_UUID,
    Kind.INET4: CELL_INET4,
    Kind.INET6: CELL_INET6,
    Kind.JSON: CELL_JSON,
}
_WIDE = {"ucs2": CELL_UCS2, "utf16": CELL_UTF16, "utf16le": CELL_UTF16LE, "utf32": CELL_UTF32}
# Bytes of a packed DECIMAL for 0 to 9 digits; further groups of nine take four bytes each.
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal_bytes(digits: int) -> int:
    """Bytes of that many packed decimal digits on one side of the point."""
    return digits // 9 * 4 + _DIGIT_BYTES[digits % 9]


@cython.cfunc
@cython.exceptval(check=True)
def copied(data: bytes) -> cython.pointer(uint8_t):
    """A malloc'd copy, to be freed by the owner."""
    size: int64_t = len(data)
    source: cython.pointer(cython.uchar) = data
    copy: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), malloc(max(size, 1)))
    if copy == cython.NULL:
        raise MemoryError
    memcpy(copy, source, size)
    return copy


class TableMap:
    """One table number of the log. `described` (metadata.Described) is None for a table not wanted."""

    def __cinit__(self, number, body, described, images):
        i: cython.int
        self.number = number
        self.grids = []
        self.body = body
        self.wanted = described is not None
        if not self.wanted:
            return
        self.table = described.table
        self.images = images
        columns = self.table.columns
        count: cython.int = len(columns)
        self.null_bytes = (count + 7) // 8
        self.plans = cython.cast(cython.pointer(Plan), calloc(count, cython.sizeof(Plan)))
        if self.plans == cython.NULL:
            raise MemoryError
        self.count = count
        self.hidden = bytes([is_hidden(column.name) for column in columns])
        # Without a key the whole row is one.
        key = self.table.key or tuple(c.name for c in columns)
        for i in range(count):
            code, meta = described.cells[i]
            self.plan_column(i, columns[i].type, code, meta)
            self.plans[i].key = columns[i].name in key
            self.keys += self.plans[i].key
        self.spans = cython.cast(cython.pointer(Span), calloc(2 * self.keys + 1, cython.sizeof(Span)))
        if self.spans == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        i: cython.int
        for i in range(self.count):
            free(self.plans[i].table)
            free(self.plans[i].ends)
        free(self.plans)
        free(self.spans)

    def plan_column(self, i, column, code, meta):
        """Choose how column `i` is decoded; `code` and `meta` are those of the table map."""
        p: cython.pointer(Plan) = cython.address(self.plans[i])
        kind = column.kind
        if kind in _INTEGERS:
            p.code, p.size = _INTEGERS[kind][column.unsigned]
        elif kind in _PLAIN:
            p.code, p.size = _PLAIN[kind]
        elif kind in _FRACTIONAL:
            p.code, p.size = _FRACTIONAL[kind]
            p.scale = column.scale
            p.size += (p.scale + 1) // 2
        elif kind is Kind.DECIMAL:
            p.code = CELL_LONG_DECIMAL if column.length > DECIMAL_DIGITS_MAX else CELL_DECIMAL
            p.digits = column.length - column.scale
            p.scale = column.scale
            p.size = decimal_bytes(p.digits) + decimal_bytes(p.scale)
        elif kind is Kind.BIT:
            p.code = CELL_BIT if column.length < 64 else CELL_BIT64
            p.size = (column.length + 7) // 8
        elif kind in (Kind.ENUM, Kind.SET):
            p.code = CELL_ENUM if kind is Kind.ENUM else CELL_SET
            p.size = meta & 0xFF
            self.plan_labels(p, column.labels)
        else:
            p.size = length_bytes(code, meta)
            self.plan_string(p, column)
            if code in (types.BLOB_COMPRESSED, types.VARCHAR_COMPRESSED):
                p.inner = p.code
                p.code = CELL_COMPRESSED
        return 0

    def plan_string(self, p, column):
        """Text and bytes, with a length in front; the log keeps UUID, INET4 and INET6 as BINARY."""
        if column.kind is Kind.TEXT:
            return self.plan_text(p, column.charset)
        p.code = _STRINGS.get(column.kind, CELL_BYTES)
        p.digits = types.LOGGED_AS_BINARY.get(column.kind, column.length)
        return 0

    def plan_text(self, p, charset):
        """UTF-8 as it is, other sets through their table or by their rule."""
        if charset in charsets.UTF8:
            p.code = CELL_UTF8
        elif charset in charsets.WIDE:
            p.code = _WIDE[charset]
        elif charset in charsets.PAIRS:
            grid: bytes = charsets.grid(charset)
            self.grids.append(grid)
            p.code = CELL_PAIRS
            p.grid = cython.cast(cython.pointer(cython.const[uint16_t]), PyBytes_AS_STRING(grid))
            p.triples = charsets.PAIRS[charset].triples
            p.fours = charsets.PAIRS[charset].fours
        else:
            p.code = CELL_SWE7 if charset == "swe7" else CELL_SINGLE
            entries = charsets.table(charset)
            p.table = copied(b"".join(bytes((len(e),)) + e.ljust(3, b"\0") for e in entries))
        return 0

    def plan_labels(self, p, labels):
        """Labels one behind the other; index 0 is the empty string of an invalid ENUM value."""
        i: cython.int
        encoded = [label.encode() for label in labels]
        p.digits = len(encoded)
        p.table = copied(b"".join(encoded))
        p.ends = cython.cast(cython.pointer(int32_t), calloc(p.digits + 1, cython.sizeof(int32_t)))
        if p.ends == cython.NULL:
            raise MemoryError
        for i in range(p.digits):
            p.ends[i + 1] = p.ends[i] + len(encoded[i])
        return 0


def length_bytes(code: int, meta: int) -> int:
    """Bytes of the length in front of a string cell."""
    if code in (types.BLOB, types.BLOB_COMPRESSED, types.GEOMETRY, types.VECTOR, types.JSON):
        return meta & 0xFF
    longest = types.string_meta(meta)[1] if code == types.STRING else meta
    return 1 if longest < 256 else 2
