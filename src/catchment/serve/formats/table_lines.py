"""Row changes as aligned lines for people."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from catchment.model.table import ColumnType, Kind, TableId
from catchment.serve.formats.columns import Columns, Writer
from catchment.serve.formats.texts import date_text, decimal_text, moment_text, shortest_float
from catchment.serve.stream.events import Begin, Ddl, Event, Field, Restart, Row, Values

_VALUE_CHARACTERS = 60
_STATEMENT_CHARACTERS = 120
_GAP = "  "
_NO_TIME = "-"


class TableLines:
    """A line says when, where, what, which key, and which columns. DDL and copies that begin again have lines, too."""

    def __init__(self) -> None:
        self._columns = Columns(text_writer)
        self._copied, self._time = False, _NO_TIME
        self._widths = [19, 0, 0, 7, 0]

    def lines(self, event: Event) -> Iterator[str]:
        """The lines that an event completes."""
        if isinstance(event, Begin):
            self._copied = event.copied
            self._time = _NO_TIME if event.copied else _time_text(event.time)
        elif isinstance(event, Field):
            self._columns.take(event)
        elif isinstance(event, Ddl):
            said = _name(_cut(event.statement, _STATEMENT_CHARACTERS))
            yield self._line(event, self._time, "ddl", "", said)
        elif isinstance(event, Row):
            yield self._line(event, self._time, *self._row(event, copied=self._copied))
        elif isinstance(event, Restart):
            said = "the table is gone" if event.gone else "its rows are copied again"
            yield self._line(event, _NO_TIME, "restart", "", said)

    def _line(self, event: Row | Ddl | Restart, time: str, *cells: str) -> str:
        return self._aligned([time, *_where(event.keyspace, event.shard, event.table), *cells])

    def _row(self, row: Row, *, copied: bool) -> list[str]:
        """Operation, key and columns."""
        key = self._columns.key_of(row)
        before, after = row.before, row.after
        if before is not None and after is not None:
            changed = [name for name, value in after.items() if value != before.get(name)]
            old, new = self._columns.written(row, before), self._columns.written(row, after)
            texts = [f"{_pair(name, old.get(name))} -> {_shown(new[name])}" for name in changed]
            return ["update", _pairs(old, key), " ".join(texts)]
        whole = self._columns.written(row, before or after or {})
        operation = ("copy" if copied else "insert") if before is None else "delete"
        return [operation, _pairs(whole, key), _pairs(whole, [name for name in whole if name not in key])]

    def _aligned(self, cells: Sequence[str]) -> str:
        """Columns become as wide as the widest cell so far; the last one needs no width."""
        self._widths = [max(w, len(c)) for w, c in zip(self._widths, cells, strict=False)]
        padded = [cell.ljust(width) for cell, width in zip(cells, self._widths, strict=False)]
        return _GAP.join([*padded, cells[-1]]).rstrip()


def _where(keyspace: str, shard: str, table: TableId) -> tuple[str, str]:
    return _name(f"{keyspace}/{shard}"), _name(str(table))


def _pairs(values: Values, names: Sequence[str]) -> str:
    return " ".join(_pair(name, values[name]) for name in names)


def _pair(name: str, value: Any) -> str:
    return f"{_name(name)}={_shown(value)}"


def _shown(text: str | None) -> str:
    return "NULL" if text is None else _cut(text, _VALUE_CHARACTERS)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


def _name(text: str) -> str:
    """As it is, unless a terminal would take parts of it for commands."""
    return text if text.isprintable() else repr(text)


def _time(value: int) -> str:
    seconds, micros = divmod(abs(value), 1_000_000)
    text = f"{'-' * (value < 0)}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{micros:06}" if micros else text


def _bytes(value: bytes) -> str:
    return f"0x{value[:_VALUE_CHARACTERS].hex()}"


def _quoted(value: str) -> str:
    """Python's form shows what a terminal would take for commands."""
    return repr(value[: _VALUE_CHARACTERS + 1])


def text_writer(column: ColumnType) -> Writer:
    """What makes a text for people from a value of this type."""
    by_kind = _BY_KIND.get(column.kind)
    if by_kind is not None:
        return by_kind
    if column.kind in (Kind.DATETIME, Kind.TIMESTAMP):
        return lambda value: moment_text(value, column.scale).replace("T", " ")
    return _plain


def _plain(value: int | Decimal | float | date | str | bytes) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return _bytes(value) if isinstance(value, bytes) else str(value)


_BY_KIND: Final[dict[Kind, Callable[[Any], str]]] = {
    Kind.DECIMAL: decimal_text,
    Kind.FLOAT: lambda value: str(shortest_float(value)),
    Kind.TIME: _time,
    Kind.DATE: date_text,
}


def _time_text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
