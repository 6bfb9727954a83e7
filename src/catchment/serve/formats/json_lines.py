"""Events as JSON: each is one object on a line, with its type first."""

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from catchment.model.table import INTEGERS, ColumnType, Kind
from catchment.serve.formats.columns import Columns, Writer
from catchment.serve.formats.texts import (
    base64_text,
    date_text,
    decimal_text,
    moment_text,
    shortest_float,
)
from catchment.serve.stream.events import Ddl, Event, Field, Heartbeat, Row, Values


class JsonLines:
    """All events but heartbeats."""

    def __init__(self) -> None:
        self._columns = Columns(json_writer)

    def lines(self, event: Event) -> Iterator[str]:
        """The line of an event."""
        if isinstance(event, Heartbeat):
            return
        if isinstance(event, Field):
            self._columns.take(event)
        elif isinstance(event, Row):
            event = msgspec.structs.replace(
                event, before=self._side(event, event.before), after=self._side(event, event.after)
            )
        elif isinstance(event, Ddl):
            added = {name: _untyped(value) for name, value in event.added.items()}
            event = msgspec.structs.replace(event, added=added)
        yield msgspec.json.encode(event).decode()

    def _side(self, row: Row, values: Values | None) -> Values | None:
        return None if values is None else self._columns.written(row, values)


def _datetime(column: ColumnType) -> Writer:
    return lambda value: moment_text(value, column.scale)


def _timestamp(column: ColumnType) -> Writer:
    return lambda value: moment_text(value, column.scale) + "Z"


def _same(value: Any) -> Any:
    return value


def _always(writer: Writer) -> Callable[[ColumnType], Writer]:
    return lambda column: writer


_WRITERS: Final[dict[Kind, Callable[[ColumnType], Writer]]] = {
    # Those of 64 bits without a sign come as decimals.
    **dict.fromkeys((*INTEGERS, Kind.BIT, Kind.YEAR, Kind.TIME), _always(int)),
    Kind.FLOAT: _always(shortest_float),
    Kind.DOUBLE: _always(_same),
    Kind.DECIMAL: _always(decimal_text),
    Kind.DATE: _always(date_text),
    Kind.DATETIME: _datetime,
    Kind.TIMESTAMP: _timestamp,
    **dict.fromkeys(
        (Kind.TEXT, Kind.ENUM, Kind.SET, Kind.JSON, Kind.UUID, Kind.INET4, Kind.INET6), _always(_same)
    ),
    **dict.fromkeys((Kind.BINARY, Kind.BLOB, Kind.GEOMETRY), _always(base64_text)),
}


def json_writer(column: ColumnType) -> Writer:
    """What makes a number or a text of JSON from a value of this type."""
    return _WRITERS[column.kind](column)


def _untyped(value: Any) -> Any:
    """A value without the type of its column, as in a Ddl."""
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, bytes):
        return base64_text(value)
    if isinstance(value, datetime):
        return moment_text(value, 6) + ("Z" if value.tzinfo else "")
    return value
