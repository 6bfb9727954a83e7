"""The event in front of a position is read again, on real servers, and tells a log from one that is otherwise alike."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from catchment.demo.server import PrivateServer
from catchment.model.errors import CatchmentError, Diverged, LogLost
from catchment.model.gtidset import GtidSet
from catchment.model.position import GtidList, LastEvent, LogOffset, Position, Resets, Server, reaches
from catchment.model.source import Endpoint
from catchment.source.identity import must_be_unbroken
from catchment.source.log import read_facts
from catchment.source.offsets import ask_resets
from catchment.source.session import connect
from catchment.source.stretch import Stretch
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMariaDB, PrivateMySQL

WRITES = (
    ["CREATE DATABASE d"],
    ["CREATE TABLE d.t (id INT PRIMARY KEY, v TEXT)"],
    ["INSERT INTO d.t VALUES (1, 'a')"],
    ["BEGIN", "INSERT INTO d.t VALUES (2, 'b')", "DELETE FROM d.t WHERE id = 1", "COMMIT"],
    ["XA START 'x'", "INSERT INTO d.t VALUES (3, 'c')", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"],
    ["FLUSH BINARY LOGS"],
    ["INSERT INTO d.t VALUES (4, 'd')"],
    ["SET GLOBAL binlog_checksum = NONE"],
    ["INSERT INTO d.t VALUES (5, 'e')"],
    ["SET GLOBAL binlog_checksum = CRC32"],
    ["INSERT INTO d.t VALUES (6, 'f')"],
)


_SERVERS = ["mariadb", "mysql_97_build"]
_WIDE_SERVERS = ["mariadb_11_build", "mysql_80_build"]


@pytest.fixture(
    scope="module",
    params=[*_SERVERS, *(pytest.param(name, marks=pytest.mark.wide) for name in _WIDE_SERVERS)],
)
def running(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server of each kind."""
    if request.param == "mariadb":
        with PrivateServer(server_id=151) as mariadb:
            yield mariadb
        return
    build: Build = request.getfixturevalue(request.param)
    if request.param == "mariadb_11_build":
        with PrivateMariaDB(build, server_id=152) as newer:
            yield newer
        return
    packed = {"binlog_transaction_compression": "ON"} if build.version >= (8, 0, 20) else {}
    with PrivateMySQL(build, settings=packed) as mysql:
        yield mysql


@pytest.fixture
def server(running: PrivateServer) -> PrivateServer:
    """Its log has just been reset."""
    reset(running)
    return running


def endpoint_of(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


def who(server: PrivateServer) -> Server:
    session = connect(endpoint_of(server))
    try:
        return session.server
    finally:
        session.close()


def position(server: PrivateServer, at: LogOffset, event: LastEvent | None) -> Position:
    found = who(server)
    return Position(at, 0, found, GtidSet() if found.mysql else GtidList(), event=event)


def read(server: PrivateServer, start: LogOffset | Position, stop: LogOffset | None) -> Stretch:
    return read_facts(endpoint_of(server), None, start, stop)


def reset(server: PrivateServer) -> None:
    """Begin the log anew."""
    newer = isinstance(server, PrivateMySQL) and server.build.version >= (8, 4)
    server.sql("DROP DATABASE IF EXISTS d", "RESET BINARY LOGS AND GTIDS" if newer else "RESET MASTER")


def test_reading_goes_on_behind_every_kind_of_event(server: PrivateServer) -> None:
    ends = []
    for statements in WRITES:
        server.sql(*statements)
        ends.append(LogOffset(*server.log_end()))
    whole = read(server, LogOffset(ends[0].file, 4), None)
    known = 0
    for end in ends:
        stretch = read(server, LogOffset(end.file, 4), end)
        known += stretch.last_event is not None
        behind = read(server, position(server, end, stretch.last_event), None)
        before = read(server, LogOffset(ends[0].file, 4), end)
        assert before.groups + behind.groups == whole.groups
        assert reaches(behind.at, whole.at)  # a checkpoint may have been logged since
        assert behind.at != whole.at or behind.last_event == whole.last_event
        nothing = read(server, position(server, end, stretch.last_event), end)
        assert nothing.reached_stop
        assert nothing.groups == 0
        assert nothing.last_event == stretch.last_event
    assert known == len(ends)


def test_another_log_of_the_same_shape_is_told_by_its_last_event(server: PrivateServer) -> None:
    met: dict[LogOffset, LastEvent | None] = {}
    for _ in range(
        20
    ):  # a compressed transaction is a byte longer now and then: its times are another number
        reset(server)
        server.sql(*WRITES[0], *WRITES[1], *WRITES[2])
        end = LogOffset(*server.log_end())
        event = read(server, LogOffset(end.file, 4), end).last_event
        if end in met:
            break
        met[end] = event
    with pytest.raises(Diverged, match=r"shard a: .*the event that ends at .* is not the one"):
        read(server, position(server, end, met[end]), None)
    assert read(server, position(server, end, event), None).groups == 0


def test_a_log_in_which_no_event_ends_there_is_told(server: PrivateServer) -> None:
    server.sql(*WRITES[0], *WRITES[1], *WRITES[2])
    end = LogOffset(*server.log_end())
    event = read(server, LogOffset(end.file, 4), end).last_event
    for shifted in (-7, -1, 1):
        with pytest.raises(CatchmentError) as raised:
            read(server, position(server, LogOffset(end.file, end.offset + shifted), event), None)
        assert raised.value.exit_code in (3, 4)


def test_a_place_inside_a_group_is_of_a_log_that_was_reset_also_behind_a_restart(
    server: PrivateServer,
) -> None:
    server.sql(*WRITES[0], *WRITES[1], *WRITES[3])
    end = LogOffset(*server.log_end())
    whole = read(server, LogOffset(end.file, 4), end)
    born = whole.files[0].born
    assert whole.last is not None
    with connect(endpoint_of(server)) as session:
        now = ask_resets(session)
    before = Resets(now.count, now.started - 3600, born)
    for event in (None, whole.last_event):
        for offset in (
            whole.last.start.offset + 1,
            (whole.last.start.offset + end.offset) // 2,
            end.offset - 1,
        ):
            stood = replace(position(server, LogOffset(end.file, offset), event), born=born, resets=before)
            with pytest.raises(
                LogLost
            ):  # MariaDB may say that a file is missing, where it reads a part of an event
                must_be_unbroken(endpoint_of(server), stood, now)
