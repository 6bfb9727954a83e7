"""Debezium's messages as JSON without schemas."""

from collections.abc import Callable, Iterator

import msgspec

from catchment.serve.formats.columns import Columns
from catchment.serve.formats.debezium_values import debezium_writer
from catchment.serve.formats.envelopes import Messages
from catchment.serve.stream.events import Event


class DebeziumLines:
    """Each line is a message. `now_ms` gives the time of the envelopes. `tombstones`: one follows each delete."""

    def __init__(self, now_ms: Callable[[], int], *, tombstones: bool = False) -> None:
        self._messages = Messages(now_ms, Columns(debezium_writer), tombstones=tombstones)

    def lines(self, event: Event) -> Iterator[str]:
        """The lines that an event completes."""
        yield from (msgspec.json.encode(message).decode() for message in self._messages.of(event))
