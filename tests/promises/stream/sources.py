"""What a client gives as its source, and what it pulls from a stream."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import CopyCompleted, Event, VGtid

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
