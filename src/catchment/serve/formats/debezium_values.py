"""Values as Debezium's MySQL connector writes them to JSON without schemas.

Its modes: `time.precision.mode=adaptive_time_microseconds`, `decimal.handling.mode=string`,
`binary.handling.mode=bytes`.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from catchment.model.table import ColumnType, Kind
from catchment.serve.formats.columns import Writer
from catchment.serve.formats.json_lines import json_writer
from catchment.serve.formats.texts import base64_text

_DAY, _MOMENT = date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _MILLISECOND = timedelta(microseconds=1), timedelta(milliseconds=1)
# More digits of a second than these do not fit milliseconds.
_MILLI_DIGITS = 3
_SRID_BYTES = 4


def debezium_writer(column: ColumnType) -> Writer:
    """What makes a value of JSON from a value of this type."""
    own = _OWN.get(column.kind)
    return json_writer(column) if own is None else own(column)


def _bits(column: ColumnType) -> Writer:
    if column.length == 1:
        return bool
    size = (column.length + 7) // 8
    return lambda value: base64_text(int(value).to_bytes(size, "little"))


def _days(column: ColumnType) -> Writer:
    return lambda value: (value - _DAY).days


def _since_1970(column: ColumnType) -> Writer:
    unit = _MICROSECOND if column.scale > _MILLI_DIGITS else _MILLISECOND
    return lambda value: (value.replace(tzinfo=UTC) - _MOMENT) // unit


def _geometry(column: ColumnType) -> Writer:
    return _geometry_struct


def _geometry_struct(value: bytes) -> dict[str, Any]:
    srid = int.from_bytes(value[:_SRID_BYTES], "little")
    return {"wkb": base64_text(value[_SRID_BYTES:]), "srid": srid or None}


_OWN: Final[dict[Kind, Callable[[ColumnType], Writer]]] = {
    Kind.BIT: _bits,
    Kind.DATE: _days,
    Kind.DATETIME: _since_1970,
    Kind.GEOMETRY: _geometry,
}
