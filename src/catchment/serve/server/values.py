"""Values as the published protobuf has them: each exact, in the field of its kind. Rows are written by columns.

The bytes are those that generated code would write for a Side; tests read them with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.table import INTEGERS, Column, ColumnType, Kind
from catchment.serve.formats.texts import decimal_text
from catchment.serve.server.stream_pb2 import Value
from catchment.serve.server.varints import Bytes, Numbers, Places, lengths, put, zigzag

_DAY_OF_1970: Final = date(1970, 1, 1).toordinal()
_DAY_US: Final = 86_400_000_000
_INT64_MAX: Final = (1 << 63) - 1
# Arrow's arrays of bytes have 2 GiB at most.
_BYTES_MAX: Final = 64 << 20
# The tag of a value in a Side, and of a field of a Value by its type on the wire.
_VALUE: Final = 0x0A
_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5


def sides_of(columns: Sequence[Column], rows: pa.Table) -> list[bytes]:
    """Each row as a serialized Side. Raises KeyError where a column is not there."""
    if rows.nbytes > _BYTES_MAX and rows.num_rows > 1:
        half = rows.num_rows // 2
        return sides_of(columns, rows[:half]) + sides_of(columns, rows[half:])
    parts: list[pa.Array] = []
    for column in columns:
        values = rows.column(column.name).combine_chunks()
        parts += _writer_of(column.type)(values)
    found: list[bytes] = pc.binary_join_element_wise(*parts, b"").to_pylist()
    return found


def untyped(value: Any) -> Value:
    """A value without the type of its column, as in a Ddl and in a bound of a copy."""
    if value is None:
        return Value()
    if isinstance(value, int):
        return Value(uint_value=value) if value > _INT64_MAX else Value(int_value=value)
    if isinstance(value, datetime):
        micros = _micros_of(value)
        return Value(timestamp_value=micros) if value.tzinfo else Value(datetime_value=micros)
    return _UNTYPED[type(value)](value)


Writer = Callable[[pa.Array], list[pa.Array]]


def _tag(field: str, wire: int) -> int:
    """Of a field of Value."""
    return Value.DESCRIPTOR.fields_by_name[field].number << 3 | wire


def _writer_of(column: ColumnType) -> Writer:
    if column.kind in INTEGERS and column.unsigned:
        return _unsigned
    if column.kind is Kind.DECIMAL:
        return _decimals
    return _WRITERS[column.kind]


def _numbers(field: str) -> Writer:
    """Integers with a sign, and what Arrow has as such: days and microseconds since 1970."""
    tag = _tag(field, _VARINT)

    def write(values: pa.Array) -> list[pa.Array]:
        whole = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
        signed = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        return [_varints(tag, zigzag(signed), _valid(values))]

    return write


def _unsigned(values: pa.Array) -> list[pa.Array]:
    """Those of 64 bits come as decimals."""
    numbers = pc.fill_null(values.cast(pa.uint64()), 0).to_numpy(zero_copy_only=False)
    return [_varints(_tag("uint_value", _VARINT), numbers, _valid(values))]


def _floats(field: str, wire: int, kind: str) -> Writer:
    tag = _tag(field, wire)

    def write(values: pa.Array) -> list[pa.Array]:
        plain = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False).astype(kind)
        width = plain.itemsize
        octets, valid = plain.view(np.uint8).reshape(len(plain), width), _valid(values)
        into, starts = _begun(tag, np.full(len(plain), width, np.int64), valid)
        at = starts[valid]
        for index in range(width):
            into.octets[at + 3 + index] = octets[valid, index]
        return [into.array()]

    return write


def _texts(field: str) -> Writer:
    """Texts and bytes: in front of each what says how long it is."""
    tag = _tag(field, _BYTES)

    def write(values: pa.Array) -> list[pa.Array]:
        octets = pc.fill_null(values.cast(pa.binary()), b"")
        size = pc.binary_length(octets).to_numpy(zero_copy_only=False).astype(np.uint64)
        return [_prefixes(tag, size, _valid(values)), octets]

    return write


def _decimals(values: pa.Array) -> list[pa.Array]:
    """A DECIMAL that is too long for a lake is text already. Arrow writes some with an exponent."""
    texts = values.cast(pa.string())
    if not pa.types.is_string(values.type) and pc.any(pc.match_substring(texts, "E")).as_py():
        texts = pa.array(
            [None if one is None else decimal_text(one) for one in values.to_pylist()], pa.string()
        )
    return _texts("decimal_value")(texts)


@dataclass(frozen=True, slots=True)
class _Written:
    octets: Bytes
    ends: Places

    def array(self) -> pa.Array:
        offsets = np.zeros(len(self.ends) + 1, np.int32)
        offsets[1:] = self.ends
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.octets)]
        return pa.Array.from_buffers(pa.binary(), len(self.ends), buffers)


def _begun(tag: int, payload: Places, valid: npt.NDArray[np.bool_]) -> tuple[_Written, Places]:
    """Values whose payload has so many bytes, less than 126: all but the payload, and where each begins. NULL is a
    Value without a field."""
    sizes = np.where(valid, payload + 3, 2)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    octets = np.empty(int(sizes.sum()), np.uint8)
    octets[starts] = _VALUE
    octets[starts + 1] = sizes - 2
    octets[starts[valid] + 2] = tag
    return _Written(octets, ends), starts


def _varints(tag: int, numbers: Numbers, valid: npt.NDArray[np.bool_]) -> pa.Array:
    length = lengths(numbers)
    into, starts = _begun(tag, length, valid)
    put(into.octets, starts[valid] + 3, numbers[valid], length[valid])
    return into.array()


def _prefixes(tag: int, size: Numbers, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """What stands in front of a text of so many bytes: twice a tag and a length."""
    inner = lengths(size)
    whole = size + inner.astype(np.uint64) + np.uint64(1)
    outer = lengths(whole)
    sizes = np.where(valid, 2 + outer + inner, 2)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    octets = np.zeros(int(sizes.sum()), np.uint8)
    octets[starts] = _VALUE
    starts, inner, outer = starts[valid], inner[valid], outer[valid]
    put(octets, starts + 1, whole[valid], outer)
    octets[starts + 1 + outer] = tag
    put(octets, starts + 2 + outer, size[valid], inner)
    return _Written(octets, ends).array()


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _days_of(value: date) -> int:
    return value.toordinal() - _DAY_OF_1970


def _micros_of(value: datetime) -> int:
    """Since 1970, by the calendar that it has."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _days_of(value) * _DAY_US + seconds * 1_000_000 + value.microsecond


_WRITERS: Final[dict[Kind, Writer]] = {
    **dict.fromkeys((*INTEGERS, Kind.YEAR), _numbers("int_value")),
    Kind.BIT: _unsigned,
    Kind.FLOAT: _floats("float_value", _SHORT, "<f4"),
    Kind.DOUBLE: _floats("double_value", _LONG, "<f8"),
    Kind.DATE: _numbers("date_value"),
    Kind.TIME: _numbers("time_value"),
    Kind.DATETIME: _numbers("datetime_value"),
    Kind.TIMESTAMP: _numbers("timestamp_value"),
    **dict.fromkeys(
        (Kind.TEXT, Kind.ENUM, Kind.SET, Kind.JSON, Kind.UUID, Kind.INET4, Kind.INET6), _texts("text_value")
    ),
    **dict.fromkeys((Kind.BINARY, Kind.BLOB, Kind.GEOMETRY), _texts("bytes_value")),
}
_UNTYPED: Final[dict[type, Callable[[Any], Value]]] = {
    float: lambda value: Value(double_value=value),
    Decimal: lambda value: Value(decimal_value=decimal_text(value)),
    str: lambda value: Value(text_value=value),
    bytes: lambda value: Value(bytes_value=value),
    date: lambda value: Value(date_value=_days_of(value)),
}
