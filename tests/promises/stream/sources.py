"""What a client gives as its source, and what it pulls from a stream."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import CopyCompleted, Event, Row, VGtid

KEYSPACE = "ks"


def source_of(servers: Mapping[str, PrivateServer], keyspace: str = KEYSPACE) -> dict[str, Any]:
    """The section `source` of a feed file."""
    shards = [
        {"name": name, "host": "127.0.0.1", "port": one.port, "user": "catchment", "password": one.password}
        for name, one in servers.items()
    ]
    return {"keyspace": keyspace, "shards": shards}


def until_copied(stream: Iterator[Event]) -> list[Event]:
    """The events up to the vgtid at which all is copied."""
    return up_to(stream, lambda event: isinstance(event, CopyCompleted) and event.table is None)


def up_to(stream: Iterator[Event], done: Any) -> list[Event]:
    """The events up to the vgtid behind the first one of which `done` holds."""
    found: list[Event] = []
    met = False
    for event in stream:
        found.append(event)
        met = met or done(event)
        if met and isinstance(event, VGtid):
            return found
    raise AssertionError("a stream has no end")


def vgtid_of(event: Event) -> str:
    """The text of an event that must be a vgtid."""
    assert isinstance(event, VGtid)
    return event.text


def copies_done(vgtid: str) -> list[bool]:
    """Whether each table of each shard is copied."""
    states = json.loads(vgtid)["cut"]["shards"].values()
    return [copy.get("done", False) for state in states for copy in state["copies"]]


def rows(events: list[Event], shard: str = "") -> list[tuple[str, Any, Any]]:
    return [
        (
            event.table.name,
            event.before and tuple(event.before.values()),
            event.after and tuple(event.after.values()),
        )
        for event in events
        if isinstance(event, Row) and shard in ("", event.shard)
    ]


def has(value: object, count: int = 1) -> Callable[[Event], bool]:
    """Whether so many rows have come with a value."""
    seen: list[Event] = []

    def met(event: Event) -> bool:
        if isinstance(event, Row) and event.after is not None and value in event.after.values():
            seen.append(event)
        return len(seen) >= count

    return met
