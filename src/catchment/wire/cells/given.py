"""Values of key columns as people give them, brought to the types in which rows have them.

A value is Python's own, or its text as the server shows it; bytes may be hexadecimal digits. Keys may be personal data,
so no error repeats one: it names the key by its place.
"""

import datetime as dt
import ipaddress
import re
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from catchment.model.errors import ConfigError
from catchment.model.table import INTEGERS, Column, Kind
from catchment.wire.cells.types import arrow_type

_DIGITS = re.compile(r"[+-]?[0-9]+")
_TIME = re.compile(r"(-?)([0-9]{1,3}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")


def keys_of(columns: Sequence[Column], given: Sequence[object]) -> pa.Table:
    """Keys as rows, in their order. `given`: a value each, or a list of one value for each of the columns.

    Raises ConfigError, which names the first key that is none.
    """
    rows = [_parts(columns, key, place) for place, key in enumerate(given, 1)]
    arrays = []
    for number, column in enumerate(columns):
        values = [_typed(column, row[number], place) for place, row in enumerate(rows, 1)]
        arrays.append(pa.array(values, arrow_type(column.type)))
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def _parts(columns: Sequence[Column], key: object, place: int) -> Sequence[object]:
    parts = key if isinstance(key, list | tuple) else [key]
    if len(parts) != len(columns):
        names = ", ".join(column.name for column in columns)
        raise ConfigError(
            f"key {place} has {len(parts)} values, and the table's key has {len(columns)}: {names}; "
            "give a list of as many"
        )
    return parts


def _typed(column: Column, value: object, place: int) -> object:
    kind = column.type.kind
    convert = _CONVERSIONS.get(kind)
    if convert is None:
        raise ConfigError(f"key column {column.name} is {kind.value}: rows of such keys cannot be named here")
    try:
        found = convert(column, value)
        pa.array([found], arrow_type(column.type))
    except (ValueError, TypeError, OverflowError, InvalidOperation, pa.ArrowException):
        raise ConfigError(
            f"key {place}: its value for {column.name} is no {kind.value}; give it as the server shows it"
        ) from None
    return found


def _integer(column: Column, value: object) -> object:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return Decimal(value) if pa.types.is_decimal(arrow_type(column.type)) else value


def _decimal(column: Column, value: object) -> object:
    if isinstance(value, float | bool) or not isinstance(value, int | str | Decimal):
        raise TypeError
    if pa.types.is_string(arrow_type(column.type)):
        return str(value)  # one of more digits than decimal128 has
    exact = Decimal(value)
    scaled = exact.quantize(Decimal(1).scaleb(-column.type.scale))
    if scaled != exact:
        raise ValueError
    return scaled


def _float(column: Column, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise TypeError
    return float(value)


def _date(column: Column, value: object) -> object:
    if isinstance(value, str):
        return dt.date.fromisoformat(value)
    if type(value) is not dt.date:
        raise TypeError
    return value


def _moment(column: Column, value: object) -> object:
    """A TIMESTAMP without a zone is in UTC, as the lake has it."""
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, dt.datetime):
        raise TypeError
    if column.type.kind is Kind.TIMESTAMP:
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    if moment.tzinfo is not None:
        raise ValueError
    return moment


def _time(column: Column, value: object) -> object:
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    seconds = (int(found[2]) * 60 + int(found[3])) * 60 + int(found[4])
    micros = seconds * 1_000_000 + int((found[5] or "").ljust(6, "0"))
    return -micros if found[1] else micros


def _text(column: Column, value: object) -> object:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bytes(column: Column, value: object) -> object:
    """BINARY(n) has zeros up to its length."""
    if not isinstance(value, bytes | str):
        raise TypeError
    found = bytes.fromhex(value) if isinstance(value, str) else value
    return found.ljust(column.type.length, b"\0") if column.type.kind is Kind.BINARY else found


def _uuid(column: Column, value: object) -> object:
    return str(value if isinstance(value, uuid.UUID) else uuid.UUID(str(value)))


def _inet4(column: Column, value: object) -> object:
    return str(ipaddress.IPv4Address(str(value)))


_CONVERSIONS: dict[Kind, Callable[[Column, object], object]] = {
    **dict.fromkeys((*INTEGERS, Kind.BIT, Kind.YEAR), _integer),
    Kind.DECIMAL: _decimal,
    **dict.fromkeys((Kind.FLOAT, Kind.DOUBLE), _float),
    Kind.DATE: _date,
    **dict.fromkeys((Kind.DATETIME, Kind.TIMESTAMP), _moment),
    Kind.TIME: _time,
    **dict.fromkeys((Kind.TEXT, Kind.ENUM, Kind.SET, Kind.INET6), _text),
    **dict.fromkeys((Kind.BINARY, Kind.BLOB), _bytes),
    Kind.UUID: _uuid,
    Kind.INET4: _inet4,
}
