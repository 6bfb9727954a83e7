"""Events of a real server, for formats."""

from collections.abc import Callable, Sequence
from typing import Any

import catchment
from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import Event, Row
from tests.promises.stream.sources import source_of, until_copied, up_to

SHARD = "-80"


def told(server: PrivateServer, schema: str, *statements: str, done: Callable[[Event], bool]) -> list[Event]:
    """The events of a stream that copies a schema's tables; then the statements are run, and it goes on until `done`
    holds of one."""
    with catchment.stream(source_of({SHARD: server}), rules=[f"{schema}.*"]) as stream:
        events = until_copied(stream)
        server.sql(*statements, database=schema)
        return events + up_to(stream, done)


def is_row(**values: Any) -> Callable[[Event], bool]:
    """Whether an event is a row that has these values now."""
    return lambda event: (
        isinstance(event, Row)
        and event.after is not None
        and all(event.after.get(name) == value for name, value in values.items())
    )


def lines_of(format_: Any, events: Sequence[Event]) -> list[str]:
    """All lines that a format makes of these events."""
    return [line for event in events for line in format_.lines(event)]
