"""Rows as the published protobuf has them: those of one table that follow one another are one event."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from catchment.model.table import Table, TableId
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.server.events import table_of
from catchment.serve.server.values import sides_of
from catchment.serve.server.varints import varint
from catchment.serve.stream.source import ShardName

# An event has no more bytes than these, unless it is one row.
EVENT_BYTES: Final = 1 << 16
_KEY_CHARACTERS: Final = 100
# Fields with a length: `before` and `after` of Row, `rows` of Rows and of Event.
_BEFORE, _AFTER, _ROW, _ROWS = b"\x0a", b"\x12", b"\x22", b"\x1a"
_SHORT: Final = [varint(size) for size in range(1 << 14)]

Place = tuple[ShardName, TableId]


@dataclass(frozen=True, slots=True)
class SerializedRow:
    """A row of a table of a shard; its sides as `values.sides_of` gives them."""

    place: Place
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class SerializedRun:
    """Rows of a table of a shard that came, as many as an event holds; of each its side `after`."""

    place: Place
    sides: Sequence[bytes]

    def serialized(self) -> bytes:
        """As an Event."""
        parts = [_head(self.place)]
        for side in self.sides:
            size = _varint(len(side))
            parts += (_ROW, _varint(len(_AFTER) + len(size) + len(side)), _AFTER, size, side)
        return _event(parts)


class SerializedRows:
    """Makes rows for a teller."""

    def sides(self, table: Table, rows: pa.Table) -> Iterable[bytes]:
        """Each as a serialized Side."""
        return sides_of(table.columns, rows)

    def row(self, name: ShardName, table: TableId, before: Any, after: Any) -> SerializedRow:
        """A SerializedRow."""
        return SerializedRow((name, table), before, after)

    def came(self, name: ShardName, table: Table, rows: pa.Table) -> Iterator[SerializedRun | SerializedRow]:
        """As runs; a row that is longer than an event is meant to be stands alone."""
        place, run, length = (name, table.id), list[bytes](), 0
        for side in self.sides(table, rows):
            if run and length + len(side) > EVENT_BYTES:
                yield SerializedRun(place, run)
                run, length = [], 0
            if len(side) > EVENT_BYTES:
                yield SerializedRow(place, None, side)
                continue
            run.append(side)
            length += len(side)
        if run:
            yield SerializedRun(place, run)


class OpenRows:
    """An event of rows to which more are added. `place`: of all of them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._parts = [_head(place)]
        self._length = 0
        self._last: bytes = b""

    def takes(self, row: SerializedRow) -> bool:
        """Whether one more row fits."""
        return row.place == self.place and self._length + _size(row) <= EVENT_BYTES

    def add(self, row: SerializedRow) -> None:
        """It comes behind the others."""
        sides = b""
        if row.before is not None:
            sides = _BEFORE + _varint(len(row.before)) + row.before
            self._last = row.before
        if row.after is not None:
            sides += _AFTER + _varint(len(row.after)) + row.after
            self._last = row.after
        self._parts += (_ROW, _varint(len(sides)), sides)
        self._length += len(sides)

    @property
    def long(self) -> bool:
        """Whether it is one row with more bytes than others have together."""
        return self._length > EVENT_BYTES

    def serialized(self) -> bytes:
        """As an Event."""
        return _event(self._parts)

    def named(self, columns: Sequence[str], key: Sequence[str]) -> str:
        """Which row it is, by its last version, with the beginning of its key."""
        name, table = self.place
        values = dict(zip(columns, pb.Side.FromString(self._last).values, strict=True))
        told = [f"{column}={_shown(values[column])}" for column in key]
        return f"a row of {table} on shard {name}, {', '.join(told)[:_KEY_CHARACTERS] or 'which has no key'}"


@lru_cache(maxsize=4096)
def _head(place: Place) -> bytes:
    """What stands in front of the rows of a table: of short transactions it takes longer than the rows."""
    name, table = place
    return pb.Rows(keyspace=name.keyspace, shard=name.shard, table=table_of(table)).SerializeToString()


def _event(parts: Sequence[bytes]) -> bytes:
    rows = b"".join(parts)
    return _ROWS + varint(len(rows)) + rows


def _size(row: SerializedRow) -> int:
    return len(row.before or b"") + len(row.after or b"")


def _varint(size: int) -> bytes:
    return _SHORT[size] if size < len(_SHORT) else varint(size)


def _shown(value: pb.Value) -> str:
    kind = value.WhichOneof("kind")
    return "NULL" if kind is None else repr(getattr(value, kind))
