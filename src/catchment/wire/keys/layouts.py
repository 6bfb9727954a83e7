"""How the columns of an Arrow table lie in memory, for the loops of keys.py."""

from typing import Final

import pyarrow as pa

# Kinds of values; the numbers are those of keys.pxd.
INT, UINT, FLOAT, BOOL, DECIMAL, NOTHING, SMALL_BYTES, LARGE_BYTES, FIXED_BYTES = range(1, 10)

_types = pa.types
_FIXED: Final = (
    (_types.is_unsigned_integer, UINT),
    (_types.is_integer, INT),
    (_types.is_interval, 0),
    (_types.is_temporal, INT),
    (_types.is_float32, FLOAT),
    (_types.is_float64, FLOAT),
    (_types.is_decimal128, DECIMAL),
    (_types.is_boolean, BOOL),
)
_OTHERS: Final = (
    (_types.is_null, NOTHING),
    (_types.is_string, SMALL_BYTES),
    (_types.is_binary, SMALL_BYTES),
    (_types.is_large_string, LARGE_BYTES),
    (_types.is_large_binary, LARGE_BYTES),
)


def layout(kind: pa.DataType) -> tuple[int, int]:
    """How values of an Arrow type lie: (kind, bytes of a value or 0); (0, 0) for a type that is not known."""
    if _types.is_fixed_size_binary(kind):
        return FIXED_BYTES, kind.byte_width
    for known, number in _FIXED:
        if known(kind):
            return number, kind.bit_width // 8
    for known, number in _OTHERS:
        if known(kind):
            return number, 0
    return 0, 0


def chunks_of(batch: pa.RecordBatch | pa.Table, name: str) -> list[pa.Array]:
    """The chunks of a column, all of a known layout; raises ValueError for other columns and types."""
    index = batch.schema.get_field_index(name)
    if index < 0:
        raise ValueError(f"rows have no column {name!r}, or several: {batch.schema.names}")
    column = batch.column(index)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [_plain(chunk, name) for chunk in chunks]


def _plain(array: pa.Array, name: str) -> pa.Array:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(array.storage, name)
    if _types.is_dictionary(kind):
        return _plain(array.dictionary_decode(), name)
    if _types.is_string_view(kind) or _types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if layout(kind)[0] == 0:
        raise ValueError(f"column {name!r}: rows cannot be compared by values of type {kind}")
    return array
