"""GTIDs are found in the log of a real MySQL and MariaDB, or refused with the reason."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import ConfigError, Diverged, Purged, SourceError
from catchment.model.gtidset import GtidSet
from catchment.model.position import LogOffset, Position
from catchment.model.source import Endpoint
from catchment.source.find_gtids import locate
from catchment.source.log import read_facts
from tests.world.purged import purge
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL


@pytest.fixture(
    params=[pytest.param("mysql_80_build", marks=pytest.mark.wide), "mysql_97_build"], ids=["8.0", "9.7"]
)
def server(request: pytest.FixtureRequest) -> Iterator[PrivateMySQL]:
    """A server whose log holds a few groups in three files; on 9.7 some have tags."""
    build: Build = request.getfixturevalue(request.param)
    with PrivateMySQL(build) as found:
        yield found


def _endpoint(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


def _executed(server: PrivateServer) -> GtidSet:
    return GtidSet.parse(str(server.sql("SELECT @@gtid_executed")[0][0]))


def _write(server: PrivateMySQL) -> list[tuple[GtidSet, LogOffset]]:
    """What was executed after each group, and where the log ended."""
    tag = "SET gtid_next = 'AUTOMATIC:seed'" if server.build.version >= (8, 4) else "DO 1"
    said = [(_executed(server), LogOffset(*server.log_end()))]
    server.sql("CREATE DATABASE d")
    said.append((_executed(server), LogOffset(*server.log_end())))
    server.sql("CREATE TABLE d.t (id INT PRIMARY KEY)")
    for number in range(6):
        said.append((_executed(server), LogOffset(*server.log_end())))
        if number in (2, 4):
            server.sql("FLUSH BINARY LOGS")
        server.sql(*[tag] * (number % 2), f"INSERT INTO d.t VALUES ({number})")
    said.append((_executed(server), LogOffset(*server.log_end())))
    return said


def _named_behind(server: PrivateServer, position: Position) -> GtidSet:
    return read_facts(_endpoint(server), position.server, position.at, None).named


def test_every_set_that_was_executed_is_found_and_no_other(server: PrivateMySQL) -> None:
    said = _write(server)
    everything = said[-1][0]
    files = set()
    for executed, end in said:
        position = locate(_endpoint(server), str(executed)).position
        assert position.gtids == executed
        if position.at.file == end.file:
            assert position.at == end
        behind = _named_behind(server, position)
        assert not behind.meets(executed)
        assert behind.union(executed) == everything
        files.add(position.at.file)
    assert len(files) == 3
    assert ("seed" in str(everything)) == (server.build.version >= (8, 4))
    must_refuse_others(server, said)


def must_refuse_others(server: PrivateMySQL, said: list[tuple[GtidSet, LogOffset]]) -> None:
    """Sets for which no place in the log stands, or one that was purged."""
    executed = said[-1][0]
    (uuid,) = {origin.uuid for origin in executed.origins}
    with pytest.raises(Diverged, match="some come behind"):
        locate(_endpoint(server), str(GtidSet.of([(uuid, "", (1, 1)), (uuid, "", (3, 3))])))
    with pytest.raises(Diverged):
        locate(_endpoint(server), str(executed.union(GtidSet.of([(uuid, "", (900, 900))]))))
    purge(server, said[-1][1].file)
    with pytest.raises(Purged, match="shard a: log that comes next is no longer on the server"):
        locate(_endpoint(server), str(said[1][0]))
    assert locate(_endpoint(server), str(executed)).position.at == said[-1][1]


def test_every_list_of_mariadb_is_found() -> None:
    """Two domains take turns, and the log is rotated twice; then the first file is purged."""
    with PrivateServer(server_id=9) as server:
        server.sql("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        said = []
        for number in range(7):
            said.append((str(server.sql("SELECT @@gtid_binlog_pos")[0][0]), LogOffset(*server.log_end())))
            server.sql(f"SET gtid_domain_id = {number % 2}", f"INSERT INTO d.t VALUES ({number})")
            if number in (2, 4):
                server.sql("FLUSH BINARY LOGS")
        purge(server, said[4][1].file)
        endpoint = _endpoint(server)
        for gtids, end in said[3:]:
            found = locate(endpoint, gtids).position
            assert str(found.gtids) == gtids
            assert found.at == end or found.at.file != end.file
        assert len({end.file for _, end in said[3:]}) == 2
        with pytest.raises(Purged, match="shard a: log that comes next is no longer on the server"):
            locate(endpoint, said[1][0])
        for gtids in ("0-9-5,1-9-1", "0-9-4,1-9-3", said[-1][0] + ",5-1-1"):
            with pytest.raises(Diverged, match="no place in the log stands for them"):
                locate(endpoint, gtids)
        for gtids in ("0-9-99,1-9-1", "0-8-4,1-9-1"):
            with pytest.raises(Diverged, match=f"does not go on from GTIDs {gtids}: .* not in the master"):
                locate(endpoint, gtids)
        with pytest.raises(ConfigError, match="shard a: not a MariaDB GTID: 'x'"):
            locate(endpoint, "x")


@pytest.mark.wide
def test_without_gtid_mode_no_set_is_found(mysql_80_build: Build) -> None:
    settings = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    with (
        PrivateMySQL(mysql_80_build, settings=settings) as off,
        pytest.raises(SourceError, match="gtid_mode=ON"),
    ):
        locate(_endpoint(off), "")
