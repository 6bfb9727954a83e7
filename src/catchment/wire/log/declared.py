"""Definitions from the catalog beside table maps: what the log must say of a column declared so."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from catchment.model.definition import DefinedColumn, Definition
from catchment.model.table import INTEGERS, Column, Kind, Table
from catchment.wire.cells import charsets, types

# Bytes of the longest character, of the sets that have several.
_WIDTHS: Final = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8", "utf8mb3", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "big5", "cp932", "euckr", "gb2312", "gbk", "sjis"), 2),
}
_CODES: Final = {
    **{name: (types.BLOB, types.BLOB_COMPRESSED) for name in ("text", "blob")},
    **dict.fromkeys(("tinytext", "tinyblob"), (types.BLOB, types.BLOB_COMPRESSED)),
    **dict.fromkeys(("mediumtext", "mediumblob"), (types.BLOB, types.BLOB_COMPRESSED)),
    **dict.fromkeys(("longtext", "longblob"), (types.BLOB, types.BLOB_COMPRESSED)),
    **dict.fromkeys(("varchar", "varbinary"), (types.VARCHAR, types.VAR_STRING, types.VARCHAR_COMPRESSED)),
    **dict.fromkeys(("char", "binary", "uuid", "inet4", "inet6"), (types.STRING,)),
    "tinyint": (types.TINY,),
    "smallint": (types.SHORT,),
    "mediumint": (types.INT24,),
    "int": (types.LONG,),
    "bigint": (types.LONGLONG,),
    "float": (types.FLOAT,),
    "double": (types.DOUBLE,),
    "decimal": (types.NEWDECIMAL,),
    "bit": (types.BIT,),
    "year": (types.YEAR,),
    "date": (types.DATE, types.NEWDATE),
    "time": (types.TIME2,),
    "datetime": (types.DATETIME2,),
    "timestamp": (types.TIMESTAMP2,),
    "enum": (types.ENUM,),
    "set": (types.SET,),
    "json": (types.JSON,),
    "vector": (types.VECTOR, types.VARCHAR, types.BLOB),
}
_LENGTH_BYTES: Final = {"tiny": 1, "medium": 3, "long": 4}
_FIXED_BYTES: Final = {"uuid": 16, "inet4": 4, "inet6": 16}
# Kinds that have no sign in the log, whatever the catalog says.
_SIGNED: Final = (*INTEGERS, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)


def data_type(declared: str) -> str:
    """DATA_TYPE of a COLUMN_TYPE: its first word."""
    found = re.match(r"\w+", declared)
    return found[0].lower() if found else ""


def table_of(definition: Definition) -> Table:
    """The table that a definition describes; raises Unsupported for a type that is not carried."""
    columns = tuple(
        Column(c.name, types.from_catalog(data_type(c.declared), c.declared, c.charset or None))
        for c in definition.columns
    )
    return Table(definition.table, columns, definition.key)


def misfit(
    definition: Definition, cells: Sequence[tuple[int, int]], nullable: bytes, unsigned: Iterable[int] | None
) -> str:
    """How a table map contradicts the definition, empty when it does not.

    `cells` are real type code and metadata of each column, `nullable` the map's bits. `unsigned` are the
    columns that it says are unsigned (None: it does not say).
    """
    if len(cells) != len(definition.columns):
        return f"it has {len(cells)} columns, not {len(definition.columns)}"
    signs = None if unsigned is None else set(unsigned)
    types_of = table_of(definition).columns
    for i, (column, (code, meta)) in enumerate(zip(definition.columns, cells, strict=True)):
        can_be_null = bool(nullable[i >> 3] >> (i & 7) & 1)
        if not _logged_so(column, code, meta):
            return f"column {i + 1} has type code {code} ({meta}), {column.name} is {column.declared}"
        if can_be_null != column.nullable and not column.hidden:
            return f"column {i + 1} is {'' if can_be_null else 'not '}nullable, unlike {column.name}"
        kind = types_of[i].type
        if signs is not None and kind.kind in _SIGNED and (i in signs) != kind.unsigned:
            return f"column {i + 1} is {'un' if i in signs else ''}signed, {column.name} is {column.declared}"
    return ""


def charset_misfit(definition: Definition, collations: dict[int, int]) -> str:
    """How the character sets that a table map tells (collation number by column) contradict the definition."""
    for i, collation in collations.items():
        told, column = charsets.of_collation(collation), definition.columns[i]
        if told != ("utf8mb3" if column.charset == "utf8" else column.charset or "binary"):
            return f"column {i + 1} is of character set {told}, {column.name} of {column.charset or 'binary'}"
    return ""


def expected_of(column: DefinedColumn) -> tuple[tuple[int, ...], int]:
    """The type codes that a table map may give to a column declared so, and the size that it tells with the
    first. The size is 0 where the map tells none."""
    codes = _CODES.get(data_type(column.declared), (types.GEOMETRY,))
    return codes, _expected(column, codes[0])


def _logged_so(column: DefinedColumn, code: int, meta: int) -> bool:
    """Whether a table map says `code` and `meta` (first byte lowest) of a column declared so."""
    codes, size = expected_of(column)
    measured = None if codes[0] == types.VECTOR else _measure(code, meta)
    return code in codes and (measured is None or measured == size)


def _measure(code: int, meta: int) -> int | None:
    """What a table map tells of a column's size; None: nothing that the catalog tells as well."""
    if code == types.STRING:
        return types.string_meta(meta)[1]
    if code == types.BIT:
        return (meta & 0xFF) + 8 * (meta >> 8)
    if code in (types.TIME2, types.DATETIME2, types.TIMESTAMP2):
        return meta & 0xFF
    sized = (types.VARCHAR, types.BLOB, types.NEWDECIMAL, types.ENUM, types.SET)
    return meta if code in sized else None


def _expected(column: DefinedColumn, code: int) -> int:
    """The same of a column declared so."""
    name = data_type(column.declared)
    if code in (types.STRING, types.VARCHAR):
        return _FIXED_BYTES.get(name, _size(column))
    if code == types.BLOB:
        return _LENGTH_BYTES.get(name.removesuffix("text").removesuffix("blob"), 2)
    known = types.from_catalog(name, column.declared, column.charset or None)
    if code in (types.ENUM, types.SET):
        return _label_bytes(code, len(known.labels))
    if code == types.NEWDECIMAL:
        return known.length | known.scale << 8
    return known.length if code == types.BIT else known.scale


def _label_bytes(code: int, labels: int) -> int:
    """Bytes of an ENUM's number, or of a SET's bits: 1 to 4 or 8."""
    if code == types.ENUM:
        return 1 if labels < 256 else 2
    size = (labels + 7) // 8
    return size if size <= 4 else 8


def _size(column: DefinedColumn) -> int:
    """Bytes that a CHAR, VARCHAR, BINARY or VARBINARY may take."""
    found = re.match(r"\w+\((\d+)\)", column.declared)
    return (int(found[1]) if found else 1) * _WIDTHS.get(column.charset, 1)
