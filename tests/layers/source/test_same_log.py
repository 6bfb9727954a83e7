"""Which RESETs make another log of it, however alike that is, and what leaves the log the same."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Diverged
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.source.first_cut import originate
from catchment.source.identity import must_be_same_log
from tests.world.patience import until
from tests.world.servers.chosen import chosen_server

TRIES = 20


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    """A server with a table, which these tests reset and restart."""
    with chosen_server(server_id=131) as server:
        server.sql("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
        yield server


def endpoint_of(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


def first_position(server: PrivateServer) -> Position:
    """That of a new feed's first cut."""
    endpoints = {"a": endpoint_of(server)}
    return originate("f", endpoints, lambda table: table.schema == "d", 0).cut.positions["a"]


def test_a_log_that_was_reset_twice_in_a_second_is_told_by_the_count(own: PrivateServer) -> None:
    for _ in range(TRIES):
        own.sql("RESET MASTER")
        position = first_position(own)
        own.sql("RESET MASTER")
        if first_position(own).born == position.born:
            break
    else:
        pytest.skip("the machine is too slow for two resets in a second")
    assert first_position(own).at == position.at
    with pytest.raises(Diverged, match="reset"):
        must_be_same_log(endpoint_of(own), position)


@pytest.mark.mariadb("RESET QUERY CACHE")
def test_resets_that_leave_the_log_alone_are_harmless(own: PrivateServer) -> None:
    """The file is older than the count, so that a look into it tells."""
    own.sql("FLUSH BINARY LOGS")
    position = until("the file is older", lambda: _of_an_older_file(own))
    assert position is not None
    own.sql("RESET QUERY CACHE", "RESET SLAVE")
    asked = must_be_same_log(endpoint_of(own), position)
    assert position.resets is not None
    assert asked.count == position.resets.count + 2


def test_a_restart_of_the_server_is_harmless_however_young_the_file(own: PrivateServer) -> None:
    own.kill9()  # the server counts RESETs since its start, and the tests before this one said some
    own.start()
    # The position is in front of the last transaction, and needs one before it: a log without any has nothing to tell.
    own.sql("REPLACE INTO d.t VALUES (1, 0)", "FLUSH BINARY LOGS", "REPLACE INTO d.t VALUES (1, 1)")
    position = first_position(own)
    assert position.resets is not None
    started = position.resets.started
    until("the server would start in another second", lambda: _second(own) > started + 1)
    own.kill9()
    own.start()
    must_be_same_log(endpoint_of(own), position)


def _of_an_older_file(server: PrivateServer) -> Position | None:
    """The position now, where its file was born in an earlier second than that in which the count was asked for."""
    server.sql("REPLACE INTO d.t VALUES (2, 2)")
    position = first_position(server)
    return position if position.resets is not None and position.born < position.resets.asked else None


def _second(server: PrivateServer) -> int:
    return int(server.sql("SELECT UNIX_TIMESTAMP()")[0][0])
