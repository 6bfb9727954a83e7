"""Clients that share a reader on real servers. The simulator of streams (tests/world/sim/serve) has the breadth."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import pytest

from catchment.config import CopyConfig
from catchment.demo.server import PrivateServer
from catchment.model.errors import TooSlow
from catchment.model.slow import Slow
from catchment.serve.hub import turnstile
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.client import Client, Reading
from catchment.serve.hub.hub import Hub, Limits
from catchment.serve.stream.events import Event, Gap, Row, VGtid
from catchment.serve.stream.source import source_of as stream_source
from tests.promises.serve.told_events import EVENT_BYTES, ToldEvents
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of
from tests.world.patience import PATIENCE_SECONDS, until

COPY = CopyConfig(chunk_rows_max=20)
TABLES = ("CREATE TABLE t (id INT PRIMARY KEY, val VARCHAR(2000))", "INSERT INTO t VALUES (1, 'a')")


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """One table with a row on every shard."""
    name = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(*TABLES, database=name)
    return name


@contextmanager
def hub_of(servers: Servers, limits: Limits | None = None) -> Iterator[Hub]:
    hub = Hub(stream_source(source_of(servers)), COPY, limits)
    try:
        yield hub
    finally:
        hub.stop()


@contextmanager
def opened(hub: Hub, ask: Ask) -> Iterator[Client[Event]]:
    client = hub.open(ask, ToldEvents)
    try:
        yield client
    finally:
        hub.close(client)


def pulled(
    client: Client[Event], done: Callable[[list[Event]], bool], seconds: float = PATIENCE_SECONDS
) -> list[Event]:
    """What comes until `done` holds of it."""
    found: list[Event] = []
    ends = time.monotonic() + seconds
    while not done(found):
        assert time.monotonic() < ends, f"it did not come: {found[-3:]} {client.standing}"
        found += client.pull()
    return found


def shared(client: Client[Event]) -> list[Event]:
    return pulled(client, lambda found: client.standing.reading is Reading.SHARED)


def values(events: list[Event]) -> list[str]:
    return [event.after["val"] for event in events if isinstance(event, Row) and event.after is not None]


def write(servers: Servers, schema: str, value: str) -> None:
    for server in servers.values():
        server.sql(f"UPDATE t SET val = '{value}' WHERE id = 1", database=schema)


def came(servers: Servers, value: str, events: list[Event]) -> bool:
    return values(events).count(value) == len(servers)


def _read_twice(server: PrivateServer) -> bool:
    """Whether no more than two sessions read the log."""
    sessions = "FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
    return bool(server.sql(f"SELECT COUNT(*) <= 2 {sessions}")[0][0])


@pytest.mark.promise("clients of the same tables share one reader")
def test_one_reader_for_all(servers: Servers, schema: str) -> None:
    """Clients of the same tables hear one reader, a late one too; others have their own."""
    same = Ask(rules=(f"{schema}.*",))
    with hub_of(servers) as hub, ExitStack() as stack:
        first, second = (stack.enter_context(opened(hub, same)) for _ in range(2))
        for client in (first, second):
            assert sorted(values(shared(client))) == ["a", "a", "a"]
        write(servers, schema, "b")
        late = stack.enter_context(opened(hub, Ask(vgtid="current", rules=same.rules)))
        shared(late)
        assert hub.readers == 1
        other = stack.enter_context(opened(hub, Ask(rules=(f"{schema}.t",))))
        shared(other)
        assert hub.readers == 2
        write(servers, schema, "c")
        for client, due in ((first, ["b", "c"]), (second, ["b", "c"]), (late, ["c"]), (other, ["c"])):
            found = pulled(client, partial(came, servers, "c"))
            assert sorted(set(values(found))) == due
        assert [standing.reading for standing in hub.standings()] == [Reading.SHARED] * 4
        for server in servers.values():
            until("no more than two read", partial(_read_twice, server))
    assert hub.readers == 0


@pytest.mark.promise("a slow client reads again, ends, or gets a gap, as it asked, and holds up nobody")
@pytest.mark.parametrize("slow", list(Slow))
def test_a_slow_client(servers: Servers, schema: str, slow: Slow) -> None:
    """It is never given less in silence, and nobody waits for it."""
    ask = Ask(rules=(f"{schema}.*",), slow=slow)
    with hub_of(servers, Limits(buffer=10 * EVENT_BYTES)) as hub, ExitStack() as stack:
        slow_one, other = (stack.enter_context(opened(hub, ask)) for _ in range(2))
        begun, _ = shared(slow_one), shared(other)
        for number in range(8):
            write(servers, schema, f"v{number}")
            pulled(other, partial(came, servers, f"v{number}"))
        if slow is Slow.END:
            with pytest.raises(TooSlow, match="begin again with the last vgtid"):
                pulled(slow_one, lambda found: False)
            last = [event.text for event in begun if isinstance(event, VGtid)][-1]
            again = stack.enter_context(opened(hub, replace(ask, vgtid=last)))
            found = pulled(again, partial(came, servers, "v7"))
            assert Counter(values(found)) == {f"v{number}": len(servers) for number in range(8)}
            return
        if slow is Slow.GAP:
            (*before, gap) = pulled(slow_one, lambda found: any(isinstance(event, Gap) for event in found))
            assert isinstance(gap, Gap)
            assert "v0" not in values(before)
        write(servers, schema, "last")
        found = pulled(slow_one, partial(came, servers, "last"))
        assert not any(isinstance(event, Gap) for event in found)
        missed = [f"v{number}" for number in range(8)] if slow is Slow.REREAD else []
        assert sorted(set(values(found))) == ["last", *missed]
        if slow is Slow.REREAD:
            shared(slow_one)
        assert hub.readers == 1


@pytest.mark.promise("few clients copy at a time, and the others wait in line")
def test_few_read_by_themselves_at_a_time(
    servers: Servers, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One waits while another one reads, before its first cut where it copies; but for no client that takes nothing."""
    for most in ("COPYING", "CATCHING_UP"):
        monkeypatch.setattr(turnstile, most, 1)
    monkeypatch.setattr(turnstile, "_PATIENCE_SECONDS", 1000.0)
    ask = Ask(rules=(f"{schema}.*",))
    with hub_of(servers) as hub, ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        first = stack.enter_context(opened(hub, ask))
        begun = [*first.pull()]
        opening = pool.submit(hub.open, ask, ToldEvents)
        with pytest.raises(TimeoutError):
            opening.result(2)
        monkeypatch.setattr(turnstile, "_PATIENCE_SECONDS", 0.0)
        second = opening.result(PATIENCE_SECONDS)
        stack.callback(hub.close, second)
        monkeypatch.setattr(turnstile, "_PATIENCE_SECONDS", 1000.0)
        assert sorted(values(shared(second))) == ["a", "a", "a"]
        assert sorted(values([*begun, *shared(first)])) == ["a", "a", "a"]
        assert hub.readers == 1
