"""Clients that share a reader: each is exact at every vgtid, however slow it is, and wherever it comes and goes."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from catchment.config import CopyConfig
from catchment.demo.server import PrivateServer
from catchment.demo.workload import KEYS, load
from catchment.model.errors import CatchmentError, TooManyClients, TooSlow
from catchment.model.slow import Slow
from catchment.serve.hub import following, joining, turnstile
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.client import Client, Reading
from catchment.serve.hub.hub import Hub, Limits
from catchment.serve.stream.events import Event, Field, Gap, Heartbeat, Row, VGtid
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.source import source_of as stream_source
from tests.promises.serve.told_events import EVENT_BYTES, ToldEvents
from tests.promises.stream.conftest import Servers
from tests.promises.stream.judged import StreamCourt
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import copies_done, source_of
from tests.promises.stream.test_every_vgtid import Alters, rows_of
from tests.world.judge import source_rows
from tests.world.patience import PATIENCE_SECONDS
from tests.world.workload import create_random_tables, random_writers

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


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for it."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < ends, f"it did not come about: {what}"
        time.sleep(0.1)


def shared(client: Client[Event]) -> list[Event]:
    return pulled(client, lambda found: client.standing.reading is Reading.SHARED)


def values(events: list[Event]) -> list[str]:
    return [event.after["val"] for event in events if isinstance(event, Row) and event.after is not None]


def write(servers: Servers, schema: str, value: str) -> None:
    for server in servers.values():
        server.sql(f"UPDATE t SET val = '{value}' WHERE id = 1", database=schema)


def came(servers: Servers, value: str, events: list[Event]) -> bool:
    return values(events).count(value) == len(servers)


def dumps(server: PrivateServer) -> int:
    """Sessions that read the server's log now."""
    return int(
        server.sql("SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")[
            0
        ][0]
    )


class Reader:
    """A client in a thread: it is judged at every vgtid, and comes again after it went."""

    def __init__(self, hub: Hub, ask: Ask, court: StreamCourt, mirror: Mirror, seed: int) -> None:
        self.hub, self.ask, self.court, self.mirror = hub, ask, court, mirror
        self.rng = random.Random(seed)
        self.readings: set[Reading] = set()
        self.overtaken = self.resumed = 0
        self.stop = threading.Event()
        self.lock = threading.Lock()

    def __str__(self) -> str:
        readings = sorted(reading.value for reading in self.readings)
        return f"{readings}, overtaken {self.overtaken}, resumed {self.resumed}, judged {self.court.judged}"

    def run(self, *, slow: float, leaves: float) -> None:
        ask = self.ask
        while not self.stop.is_set():
            kept = self.mirror.copy()
            with opened(self.hub, ask) as client:
                kept = self._session(client, kept, slow=slow, leaves=leaves)
            with self.lock:
                self.mirror = kept
            ask = Ask(vgtid=kept.text or None, rules=ask.rules, slow=ask.slow)
            self.resumed += 1

    def _session(self, client: Client[Event], kept: Mirror, *, slow: float, leaves: float) -> Mirror:
        before = Reading.OWN
        while not self.stop.is_set():
            for event in client.pull():
                with self.lock:
                    self.mirror.take(event)
                if isinstance(event, VGtid):
                    self.court.judge(self.mirror)
                    kept = self.mirror.copy()
            reading = client.standing.reading
            self.readings.add(reading)
            self.overtaken += before is Reading.SHARED and reading is Reading.OWN
            before = reading
            if self.rng.random() < leaves:
                break
            if self.rng.random() < slow:
                time.sleep(self.rng.random() * 3)
        return kept


def _read_once(server: PrivateServer) -> bool:
    return dumps(server) <= 1


@pytest.mark.wide
@pytest.mark.minutes
def test_exact_for_each_client(servers: Servers, fresh_schema: Callable[..., str]) -> None:
    """Fast ones, slow ones that are overtaken, and such that leave and come again, beside writers and ALTERs."""
    schema = fresh_schema(*servers.values())
    keys = {f"{schema}.{table}": key for table, key in KEYS.items()}
    create_random_tables(list(servers.values()), schema)
    for index, server in enumerate(servers.values()):
        load(server, schema, 100, index=index, count=len(servers))
    court = StreamCourt.of(servers, keys)
    courts = [court, court.beside(), court.beside()]
    ask = Ask(rules=(f"{schema}.*",))
    alters = Alters(servers, schema, random.Random(5))
    with ExitStack() as stack:
        writers = stack.enter_context(
            random_writers(list(servers.values()), schema, seed=9, rate=2.0, keys=100)
        )
        time.sleep(1)  # the first cut lies behind where the judges began
        # What the writers do in some seconds: a client that is judged at each vgtid keeps up, one that sleeps does not.
        hub = stack.enter_context(hub_of(servers, Limits(buffer=120 * EVENT_BYTES)))
        readers = [Reader(hub, ask, court, Mirror(keys), number) for number, court in enumerate(courts)]
        pool = stack.enter_context(ThreadPoolExecutor())
        for reader in readers:
            stack.callback(reader.stop.set)
        running = [
            pool.submit(reader.run, slow=slow, leaves=leaves)
            for reader, (slow, leaves) in zip(readers, ((0, 0), (0.3, 0), (0, 0.05)), strict=True)
        ]

        def seen() -> bool:
            assert not any(future.done() for future in running), [future.exception() for future in running]
            return bool(
                all(Reading.SHARED in reader.readings for reader in readers)
                and readers[1].overtaken
                and readers[2].resumed > 2
                and all(court.judged > 12 for court in courts)
            )

        ends, pause = time.monotonic() + PATIENCE_SECONDS, 8.0
        while not seen():
            assert time.monotonic() < ends, "; ".join(map(str, readers))
            time.sleep(pause)
            alters()  # an ALTER in the midst of a copy begins it again, and on a busy machine a copy takes longer
            with (
                writers.paused()
            ):  # whoever judges more slowly than is written comes to the end of the log here
                time.sleep(pause)
            pause *= 1.5
        with writers.paused():
            want = {table: source_rows(servers, table, key) for table, key in keys.items()}
            for reader in readers:
                until(partial(_rests, reader, keys, want), "a client comes to what SELECT shows")
        for reader in readers:
            reader.stop.set()
        for future in running:
            future.result(60)


def _rests(reader: Reader, keys: Mapping[str, tuple[str, ...]], want: object) -> bool:
    with reader.lock:
        text = reader.mirror.text
        return bool(text) and all(copies_done(text)) and rows_of(reader.mirror, keys) == want


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
    assert hub.readers == 0


def test_columns_are_told_to_whoever_joins(servers: Servers, schema: str) -> None:
    ask = Ask(vgtid="current", rules=(f"{schema}.*",))
    with hub_of(servers) as hub, opened(hub, ask) as first:
        shared(first)
        write(servers, schema, "b")
        pulled(first, partial(came, servers, "b"))
        with opened(hub, ask) as late:
            joined = shared(late)
            write(servers, schema, "c")
            for client, before, times in ((first, [], 0), (late, joined, len(servers))):
                found = [*before, *pulled(client, partial(came, servers, "c"))]
                assert sum(isinstance(event, Field) for event in found) == times


@pytest.mark.parametrize("lagging", [False, True])
def test_clients_that_begin_now_join_at_once(
    servers: Servers, schema: str, monkeypatch: pytest.MonkeyPatch, lagging: bool
) -> None:
    """None of them reads by itself, and none is told what was visible before it asked, however late the reader is."""
    ask = Ask(vgtid="current", rules=(f"{schema}.*",))
    with (
        hub_of(servers) as hub,
        opened(hub, ask) as first,
        ThreadPoolExecutor(24) as pool,
        ExitStack() as stack,
    ):
        shared(first)
        # On a busy machine they would read by themselves after the usual wait, as they should.
        monkeypatch.setattr(joining, "_WAIT_SECONDS", 60.0)
        if lagging:
            monkeypatch.setattr(following, "_CLIENT_SECONDS", 0.2)
        for number in range(4):
            write(servers, schema, f"before{number}")
        clients = list(pool.map(lambda _: hub.open(ask, ToldEvents), range(24)))
        for client in clients:
            stack.callback(hub.close, client)
        assert [standing.reading for standing in hub.standings()] == [Reading.SHARED] * 25
        monkeypatch.undo()
        write(servers, schema, "after")
        for client in clients:
            found = pulled(client, partial(came, servers, "after"))
            assert isinstance(found[0], VGtid)
            assert values(found) == ["after"] * len(servers)
            assert sum(isinstance(event, Field) for event in found) == len(servers)
        assert "before3" in values(pulled(first, partial(came, servers, "after")))


def test_a_client_that_begins_now_reads_by_itself_where_the_reader_is_too_late(
    servers: Servers, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Ask(vgtid="current", rules=(f"{schema}.*",))
    with hub_of(servers) as hub, opened(hub, ask) as first:
        shared(first)
        monkeypatch.setattr(following, "_CLIENT_SECONDS", 2.0)
        monkeypatch.setattr(joining, "_WAIT_SECONDS", 0.5)
        write(servers, schema, "before")
        pulled(first, lambda found: "before" in values(found))
        write(servers, schema, "again")
        with opened(hub, ask) as client:
            assert client.standing.reading is Reading.OWN
            monkeypatch.undo()
            write(servers, schema, "after")
            assert values(pulled(client, partial(came, servers, "after"))) == ["after"] * len(servers)


@pytest.mark.promise("a slow client reads again, ends, or gets a gap, as it asked, and holds up nobody")
@pytest.mark.parametrize("slow", list(Slow))
def test_a_slow_client(servers: Servers, schema: str, slow: Slow) -> None:
    """It is never given less in silence, and nobody waits for it."""
    ask = Ask(rules=(f"{schema}.*",), slow=slow)
    with hub_of(servers, Limits(buffer=10 * EVENT_BYTES)) as hub, ExitStack() as stack:
        slow_one, other = (stack.enter_context(opened(hub, ask)) for _ in range(2))
        for client in (slow_one, other):
            shared(client)
        for number in range(8):
            write(servers, schema, f"v{number}")
            pulled(other, partial(came, servers, f"v{number}"))
        write(servers, schema, "last")
        if slow is Slow.END:
            with pytest.raises(TooSlow, match="begin again with the last vgtid"):
                pulled(slow_one, lambda found: False)
            return
        found = pulled(slow_one, partial(came, servers, "last"))
        gaps = [event for event in found if isinstance(event, Gap)]
        if slow is Slow.REREAD:
            assert not gaps
            assert sorted(set(values(found))) == ["last", *(f"v{number}" for number in range(8))]
            shared(slow_one)
        else:
            assert len(gaps) == 1
            assert "v0" not in values(found)
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


def test_heartbeats_come_while_it_is_quiet(servers: Servers, schema: str) -> None:
    ask = Ask(vgtid="current", rules=(f"{schema}.*",), flags=Flags(heartbeat_interval=0.2))
    with hub_of(servers) as hub, opened(hub, ask) as client:
        shared(client)
        found = pulled(client, lambda found: sum(isinstance(event, Heartbeat) for event in found) > 2)
        assert not values(found)


def test_too_many_clients(servers: Servers, schema: str) -> None:
    ask = Ask(rules=(f"{schema}.*",))
    with hub_of(servers, Limits(clients=1)) as hub:
        with opened(hub, ask), pytest.raises(TooManyClients, match="clients_max"):
            hub.open(ask, ToldEvents)
        with opened(hub, ask) as client:
            shared(client)


def test_a_hub_that_stops_ends_its_clients(servers: Servers, schema: str) -> None:
    ask = Ask(rules=(f"{schema}.*",))
    with hub_of(servers) as hub, opened(hub, ask) as client:
        shared(client)
        hub.stop()
        with pytest.raises(CatchmentError, match="begin again with the last vgtid"):
            pulled(client, lambda found: False)


def test_sessions_are_given_back(servers: Servers, schema: str) -> None:
    ask = Ask(rules=(f"{schema}.*",))
    with hub_of(servers) as hub:
        with ExitStack() as stack:
            for client in [stack.enter_context(opened(hub, ask)) for _ in range(5)]:
                shared(client)
            for server in servers.values():
                until(partial(_read_once, server), "one reader is left")
        assert hub.readers == 0
