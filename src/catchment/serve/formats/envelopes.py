"""Row changes in the envelope of Debezium's MySQL connector.

Each shard is a connector of its own there, so that its logical name, which begins the topics, is KEYSPACE.SHARD.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from catchment.model.table import TableId
from catchment.model.version import __version__
from catchment.serve.stream.events import Begin, CopyCompleted, Ddl, Event, Field, Restart, Row, Values, VGtid

_CONNECTOR = "mysql"
_COPIED, _LAST_COPIED, _LOGGED = "true", "last", "false"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change comes from, with the connector's fields in its order. `row`: its number within its transaction."""

    version: str = __version__
    connector: str = _CONNECTOR
    name: str
    ts_ms: int
    snapshot: str
    db: str
    sequence: None = None
    table: str
    server_id: int = 0
    gtid: str | None = None
    # A stream tells no place in a file. The connector's schema requires both.
    file: str = ""
    pos: int = 0
    row: int = 0
    thread: None = None
    query: None = None


class Envelope(msgspec.Struct, frozen=True):
    """The value of a message."""

    before: Values | None
    after: Values | None
    source: Source
    op: str
    ts_ms: int
    transaction: None = None


class Message(msgspec.Struct, frozen=True):
    """What is told of a row. Without a value it is a tombstone."""

    topic: str
    key: Values | None
    value: Envelope | None


@dataclass(frozen=True, slots=True)
class _Place:
    keyspace: str
    shard: str
    table: TableId

    @property
    def name(self) -> str:
        return f"{self.keyspace}.{self.shard}"

    @property
    def topic(self) -> str:
        return f"{self.name}.{self.table}"

    def source(self, ts_ms: int, snapshot: str = _LOGGED) -> Source:
        return Source(
            name=self.name, ts_ms=ts_ms, snapshot=snapshot, db=self.table.schema, table=self.table.name
        )


@dataclass(frozen=True, slots=True)
class _Sides:
    key: tuple[str, ...]
    before: Values | None
    after: Values | None

    def key_of(self, values: Values) -> Values:
        return {name: values[name] for name in self.key}


class Writers(Protocol):
    """What a format knows of the columns of each shard's tables."""

    def take(self, field: Field) -> None:
        """The columns are these from here on."""
        ...

    def key_of(self, row: Row) -> tuple[str, ...]:
        """The names of the key's columns, as they are written."""
        ...

    def written(self, row: Row, values: Values) -> Values:
        """One side of a row, with the values as they are written."""
        ...


class Messages:
    """`now_ms` gives the time of the envelopes, in milliseconds since 1970. `tombstones`: one follows each delete.

    A copied row is held back until what comes next shows whether it is the last one of the copy.
    """

    def __init__(self, now_ms: Callable[[], int], columns: Writers, *, tombstones: bool = False) -> None:
        self._now_ms = now_ms
        self._tombstones = tombstones
        self._columns = columns
        self._begun = Begin("", "")
        self._rows = 0
        self._held: Message | None = None

    def of(self, event: Event) -> Iterator[Message]:
        """The messages that an event completes. None is left behind a vgtid."""
        if isinstance(event, Begin):
            self._begun, self._rows = event, 0
        elif isinstance(event, Field):
            self._columns.take(event)
        elif isinstance(event, Row):
            yield from self._copied(event) if self._begun.copied else self._logged(event)
        elif isinstance(event, Ddl) and event.emptied:
            yield self._truncate(_place_of(event), self._begun.time * 1000)
        elif isinstance(event, Restart):
            yield self._truncate(_Place(event.keyspace, event.shard, event.table), self._now_ms())
        elif isinstance(event, CopyCompleted) and event.table is None:
            yield from self._let_go(_LAST_COPIED)
        elif isinstance(event, VGtid):
            yield from self._let_go(_COPIED)

    def _let_go(self, snapshot: str) -> Iterator[Message]:
        held, self._held = self._held, None
        if held is None or held.value is None:
            return
        source = msgspec.structs.replace(held.value.source, snapshot=snapshot)
        yield msgspec.structs.replace(held, value=msgspec.structs.replace(held.value, source=source))

    def _copied(self, row: Row) -> Iterator[Message]:
        yield from self._let_go(_COPIED)
        place, now = _place_of(row), self._now_ms()
        self._held = _message(place, self._sides(row), "r", place.source(now, _COPIED), now)

    def _logged(self, row: Row) -> Iterator[Message]:
        place, gtid = _place_of(row), self._begun.gtid
        source = msgspec.structs.replace(
            place.source(self._begun.time * 1000),
            server_id=_server_id(gtid),
            gtid=gtid or None,
            row=self._rows,
        )
        self._rows += 1
        yield from self._changed(place, self._sides(row), source)

    def _changed(self, place: _Place, sides: _Sides, source: Source) -> Iterator[Message]:
        now = self._now_ms()
        before, after = sides.before, sides.after
        if before is None:
            yield _message(place, sides, "c", source, now)
        elif after is not None and sides.key_of(before) == sides.key_of(after):
            yield _message(place, sides, "u", source, now)
        else:
            gone = _message(place, replace(sides, after=None), "d", source, now)
            yield gone
            if self._tombstones:
                yield msgspec.structs.replace(gone, value=None)
            if after is not None:
                yield _message(place, replace(sides, before=None), "c", source, now)

    def _sides(self, row: Row) -> _Sides:
        written = [
            None if side is None else self._columns.written(row, side) for side in (row.before, row.after)
        ]
        return _Sides(self._columns.key_of(row), *written)

    def _truncate(self, place: _Place, ts_ms: int) -> Message:
        """No row is left. Where a copy begins again its consumers are to forget the rows, too."""
        return Message(place.topic, None, Envelope(None, None, place.source(ts_ms), "t", self._now_ms()))


def _message(place: _Place, sides: _Sides, op: str, source: Source, now: int) -> Message:
    values: dict[str, Any] = sides.after if sides.after is not None else sides.before or {}
    return Message(place.topic, sides.key_of(values), Envelope(sides.before, sides.after, source, op, now))


def _place_of(event: Row | Ddl) -> _Place:
    return _Place(event.keyspace, event.shard, event.table)


def _server_id(gtid: str) -> int:
    """MariaDB writes it inside: DOMAIN-SERVER-NUMBER. MySQL has a UUID there."""
    parts = gtid.split("-")
    return int(parts[1]) if ":" not in gtid and len(parts) == 3 else 0
