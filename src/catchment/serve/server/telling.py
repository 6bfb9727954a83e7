"""Turns as messages of gRPC: serialized EventBatches of about 1 MiB, which clients share as they are.

An EventBatch is nothing but its events, one behind the other. So each is serialized once, and its length is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from catchment.serve.hub.telling import Known
from catchment.serve.server.events import serialized
from catchment.serve.server.rows import OpenRows, Place, SerializedRow, SerializedRows, SerializedRun
from catchment.serve.server.varints import varint
from catchment.serve.stream.events import Event, Field, Gap, Heartbeat
from catchment.serve.stream.events_of import RowTeller
from catchment.serve.stream.source import ShardName
from catchment.serve.stream.turn import Turn

MESSAGE_BYTES: Final = 1 << 20
# Field 1 of EventBatch, with a length.
_EVENT: Final = b"\x0a"

Told = Event | SerializedRow | SerializedRun


@dataclass(frozen=True, slots=True)
class Message:
    """A serialized EventBatch. `holds`: what makes it long, where it is one long event."""

    data: bytes
    holds: str = ""


class ProtoTelling:
    """Makes messages of turns."""

    def __init__(self) -> None:
        self._teller = RowTeller(SerializedRows())
        self._fields: dict[Place, Field] = {}

    @property
    def known(self) -> Known:
        """Which columns it has told."""
        return self._teller.told

    def messages(self, turn: Turn | Heartbeat | Gap) -> Iterator[Message]:
        """The events of a turn; its vgtid is last."""
        return self.encoded(self._teller.events(turn) if isinstance(turn, Turn) else iter([turn]))

    def encoded(self, events: Iterator[Told]) -> Iterator[Message]:
        """The same of events in order."""
        return _batched(self._serialized(events))

    def size(self, message: Message) -> int:
        """Bytes."""
        return len(message.data)

    def catch_up(self, known: Known) -> Iterator[Message]:
        """What a client lacks to understand one that has told these columns."""
        return self.encoded(self._teller.catch_up(known))

    def _serialized(self, events: Iterator[Told]) -> Iterator[Message]:
        rows: OpenRows | None = None
        for event in events:
            if rows is not None and not (isinstance(event, SerializedRow) and rows.takes(event)):
                yield self._ended(rows)
                rows = None
            if isinstance(event, SerializedRow):
                rows = rows or OpenRows(event.place)
                rows.add(event)
            elif isinstance(event, SerializedRun):
                yield Message(event.serialized())
            else:
                yield self._other(event)
        if rows is not None:
            yield self._ended(rows)

    def _ended(self, rows: OpenRows) -> Message:
        if not rows.long:
            return Message(rows.serialized())
        field = self._fields[rows.place]
        return Message(rows.serialized(), rows.named([column.name for column in field.columns], field.key))

    def _other(self, event: Event) -> Message:
        if isinstance(event, Field):
            self._fields[ShardName(event.keyspace, event.shard), event.table] = event
        data = serialized(event)
        return Message(data, f"a {type(event).__name__}" if len(data) > MESSAGE_BYTES else "")


def _batched(parts: Iterator[Message]) -> Iterator[Message]:
    """Events as EventBatches; one that is longer than they are meant to be stands alone."""
    batch: list[bytes] = []
    size = 0
    for part in parts:
        if batch and size + len(part.data) > MESSAGE_BYTES:
            yield Message(b"".join(batch))
            batch, size = [], 0
        framed = (_EVENT, varint(len(part.data)), part.data)
        if len(part.data) > MESSAGE_BYTES:
            yield Message(b"".join(framed), part.holds)
            continue
        batch += framed
        size += len(part.data)
    if batch:
        yield Message(b"".join(batch))
