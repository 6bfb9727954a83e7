"""A dump that stands: its parts together are the log, and whatever ends it is no part of that."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CatchmentError, ConnectionLost, Diverged
from catchment.model.position import LastEvent, LogOffset, Position
from catchment.model.source import Endpoint
from catchment.source import standing
from catchment.source.log import read_facts, read_log
from catchment.source.session import connect
from catchment.source.standing import StandingDump, come
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from tests.world.servers.chosen import chosen_server

PATIENCE_SECONDS = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    with chosen_server(server_id=181) as made:
        made.sql("CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY, c LONGTEXT)")
        yield made


@pytest.fixture
def endpoint(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


@pytest.fixture
def begins(server: PrivateServer) -> LogOffset:
    server.sql("TRUNCATE TABLE s.t")
    return LogOffset(*server.log_end())


@pytest.fixture
def dump(endpoint: Endpoint, begins: LogOffset) -> Iterator[StandingDump]:
    with connect(endpoint) as session:
        known = session.server
    dump = StandingDump(endpoint, known, begins)
    yield dump
    dump.close()


def inserted(server: PrivateServer, *keys: int, text: str = "x") -> LogOffset:
    """Where the log ends behind a transaction for each key."""
    server.sql(*(f"INSERT INTO s.t VALUES ({key}, '{text}')" for key in keys))
    return LogOffset(*server.log_end())


def part(dump: StandingDump, endpoint: Endpoint, stop: LogOffset | None = None) -> Stretch:
    """What comes next of it."""
    assert dump.at is not None
    assert come([dump], PATIENCE_SECONDS)
    with read_log(endpoint, None, dump.at, stop, Wanted()).along(dump) as log:
        return log.to_the_end()


def all_parts(dump: StandingDump, endpoint: Endpoint, end: LogOffset) -> list[Stretch]:
    """Its parts up to where the log ends."""
    found = [part(dump, endpoint)]
    while found[-1].at != end:
        found.append(part(dump, endpoint))
    return found


def killed(server: PrivateServer, how: str) -> None:
    """End the dump that stands."""
    rows = server.sql("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
    for (number,) in rows:
        server.sql(f"{how} {number}")


def test_its_parts_are_the_log(server: PrivateServer, dump: StandingDump, endpoint: Endpoint) -> None:
    assert dump.at is not None
    start = dump.at
    found = all_parts(dump, endpoint, inserted(server, 1))
    found += all_parts(dump, endpoint, inserted(server, 2, 3))
    whole = read_facts(endpoint, None, start, found[-1].at)
    assert sum(one.groups for one in found) == whole.groups == 3
    assert (found[-1].newest, found[-1].last, found[-1].last_event) == (
        whole.newest,
        whole.last,
        whole.last_event,
    )
    assert [one.files[0].born for one in found] == [whole.files[0].born] * len(found)


def test_a_part_ends_at_its_stop_and_the_rest_is_the_next_one(
    server: PrivateServer, dump: StandingDump, endpoint: Endpoint
) -> None:
    stop, end = inserted(server, 1), inserted(server, 2)
    first = part(dump, endpoint, stop)
    assert (first.at, first.reached_stop, first.groups) == (stop, True, 1)
    (second,) = all_parts(dump, endpoint, end)
    assert (second.at, second.groups) == (end, 1)


def test_a_transaction_comes_whole(server: PrivateServer, dump: StandingDump, endpoint: Endpoint) -> None:
    rows = ", ".join(f"({key}, REPEAT('x', 1000000))" for key in range(1, 9))
    server.sql(f"INSERT INTO s.t VALUES {rows}")
    (found,) = all_parts(dump, endpoint, LogOffset(*server.log_end()))
    assert found.groups == 1
    assert found.group_bytes > 8_000_000


@pytest.mark.parametrize("other", [0, 1])
def test_the_event_in_front_of_the_first_part_is_compared(
    server: PrivateServer, endpoint: Endpoint, begins: LogOffset, other: int
) -> None:
    end = inserted(server, 1)
    before = read_facts(endpoint, None, begins, end)
    assert before.last_event is not None
    with connect(endpoint) as session:
        known = session.server
    event = LastEvent(before.last_event.size, before.last_event.crc ^ other)
    dump = StandingDump(endpoint, known, LogOffset(end.file, end.offset - event.size))
    position = Position(end, before.files[0].born, known, known.gtids(""), event=event)
    stop = inserted(server, 2)
    with read_log(endpoint, None, position, stop, Wanted()).along(dump) as log:
        if other:
            with pytest.raises(Diverged):
                log.to_the_end()
        else:
            assert log.to_the_end().groups == 1
    assert dump.begun is not bool(other)
    dump.close()


@pytest.mark.parametrize("how", ["KILL", "KILL QUERY"])
def test_one_that_is_killed_is_over(
    server: PrivateServer, dump: StandingDump, endpoint: Endpoint, how: str
) -> None:
    killed(server, how)
    with pytest.raises(CatchmentError):
        part(dump, endpoint)
    assert dump.at is None


def test_another_file_ends_it(server: PrivateServer, dump: StandingDump, endpoint: Endpoint) -> None:
    end = inserted(server, 1)
    server.sql("FLUSH BINARY LOGS")
    inserted(server, 2)
    found = all_parts(dump, endpoint, end)
    assert sum(one.groups for one in found) == 1
    with pytest.raises(ConnectionLost, match="is over"):
        part(dump, endpoint)
    assert dump.at is None


def test_a_part_that_is_left_has_no_next_one(
    server: PrivateServer, dump: StandingDump, endpoint: Endpoint
) -> None:
    inserted(server, 1, 2)
    assert come([dump], PATIENCE_SECONDS)
    assert dump.at is not None
    with read_log(endpoint, None, dump.at, None, Wanted(), budget=1).along(dump) as log:
        assert log.to_the_end().groups == 1
    assert dump.at is None


def test_a_log_that_rests_brings_nothing_but_heartbeats(
    dump: StandingDump, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not come([dump], 2.5 * standing._HEARTBEAT_SECONDS)


def test_a_dump_that_falls_silent_is_dead(
    server: PrivateServer, dump: StandingDump, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats come, and not the log that a tick has shown."""
    monkeypatch.setattr(standing, "_SILENT_SECONDS", 1.5 * standing._HEARTBEAT_SECONDS)
    end = inserted(server, 1)
    assert part(dump, endpoint, end).at == end
    with (
        pytest.raises(ConnectionLost, match="though it went on"),
        read_log(endpoint, None, end, LogOffset(end.file, end.offset + 100), Wanted()).along(dump) as log,
    ):
        log.to_the_end()
