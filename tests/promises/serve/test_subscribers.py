"""Subscribers: what one has not acknowledged is told again, by another server too, and up to a limit."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from catchment.model.errors import ConfigError
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.hub import Hub
from catchment.serve.hub.subscribed import Subscribed
from catchment.serve.hub.subscribers import Subscribers
from catchment.serve.stream.events import Event, VGtid
from catchment.serve.stream.source import source_of as stream_source
from catchment.state.store import Store
from tests.promises.serve.test_shared import COPY, TABLES, came, values, write
from tests.promises.serve.told_events import EVENT_BYTES, ToldEvents
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of
from tests.world.patience import PATIENCE_SECONDS

BYTES_MAX = 1000 * EVENT_BYTES


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """One table with a row on every shard."""
    name = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(*TABLES, database=name)
    return name


@contextmanager
def served(servers: Servers, state: Path, bytes_max: int = BYTES_MAX) -> Iterator[Subscribers]:
    """A server; those with the same state store stand for one another."""
    source = stream_source(source_of(servers))
    hub = Hub(source, COPY)
    store = Store.open(f"sqlite:///{state}", "shop")
    try:
        yield Subscribers(hub, source, store, bytes_max)
    finally:
        hub.stop()
        store.close()


@contextmanager
def opened(server: Subscribers, ask: Ask, name: str = "search") -> Iterator[Subscribed[Event]]:
    subscribed = server.open(name, ask, ToldEvents)
    try:
        yield subscribed
    finally:
        server.close(subscribed)


def pulled(client: Subscribed[Event], done: Callable[[list[Event]], bool]) -> list[Event]:
    found: list[Event] = []
    ends = time.monotonic() + PATIENCE_SECONDS
    while not (done(found) and found and isinstance(found[-1], VGtid)):
        assert time.monotonic() < ends, f"it did not come: {found[-3:]}"
        found += client.pull()
    return found


def last_vgtid(events: list[Event]) -> str:
    return [event.text for event in events if isinstance(event, VGtid)][-1]


@pytest.mark.promise("what a subscriber has not acknowledged comes again")
def test_what_is_not_acknowledged_comes_again(servers: Servers, schema: str, tmp_path: Path) -> None:
    """A server is gone, and another one goes on: with the copy, and with changes, nothing twice behind an answer."""
    ask = Ask(rules=(f"{schema}.*",))
    state = tmp_path / "state.db"
    with served(servers, state) as first, opened(first, ask) as client:
        found = pulled(client, partial(came, servers, "a"))
    with served(servers, state) as second:
        with opened(second, ask) as client:
            found = pulled(client, partial(came, servers, "a"))
            assert second.acknowledge("search", last_vgtid(found))
            assert not second.acknowledge("search", last_vgtid(found))
            write(servers, schema, "b")
            assert set(values(pulled(client, partial(came, servers, "b")))) == {"b"}
        with served(servers, state) as third, opened(third, ask) as client:
            write(servers, schema, "c")
            found = pulled(client, partial(came, servers, "c"))
            assert sorted(values(found)) == ["b"] * 3 + ["c"] * 3
            # An answer may reach another server than the one that tells.
            assert second.acknowledge("search", last_vgtid(found))
        with served(servers, state) as fourth, opened(fourth, ask) as client:
            write(servers, schema, "d")
            assert set(values(pulled(client, partial(came, servers, "d")))) == {"d"}
            (kept,) = fourth.listed()
            assert kept.vgtid == last_vgtid(found)


def test_what_is_refused(servers: Servers, schema: str, tmp_path: Path) -> None:
    ask = Ask(rules=(f"{schema}.*",))
    with served(servers, tmp_path / "state.db") as server:
        for name in ("", "a b", "x" * 65, "../x", "'; DROP"):
            with pytest.raises(ConfigError, match="subscriber"):
                server.open(name, ask, ToldEvents)
        with pytest.raises(ConfigError, match="there is none"):
            server.acknowledge("search", last_of(server, ask, servers))
        with opened(server, ask) as client:
            text = last_vgtid(pulled(client, partial(came, servers, "a")))
            for wrong in ("", "current", "{}", "[]", "0-1-5"):
                with pytest.raises(ConfigError):
                    server.acknowledge("search", wrong)
            assert server.acknowledge("search", text)
        with pytest.raises(ConfigError, match="it began with the rules"):
            server.open("search", Ask(rules=(f"{schema}.t",)), ToldEvents)
        assert server.remove("search")
        assert not server.remove("search")
        with opened(server, Ask(rules=(f"{schema}.t",))) as client:
            pulled(client, partial(came, servers, "a"))


def last_of(server: Subscribers, ask: Ask, servers: Servers) -> str:
    """A vgtid that another subscriber was given."""
    with opened(server, ask, "other") as client:
        return last_vgtid(pulled(client, partial(came, servers, "a")))
