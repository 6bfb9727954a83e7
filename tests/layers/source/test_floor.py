"""On a server at rest the log in front of the last group is proven visible, though nothing is written after it."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.seal import FILE_START
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.source.first_cut import originate
from catchment.source.prove import proven_floor
from tests.world.checkpoints import ended_by_checkpoint
from tests.world.servers.chosen import chosen_server

pytestmark = pytest.mark.mariadb("checkpoint events prove what MySQL is asked for")


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    with chosen_server(server_id=137) as server:
        server.sql("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        yield server


def proven(server: PrivateServer, floor: LogOffset) -> LogOffset:
    """What is proven up to the end of the log."""
    endpoint = Endpoint("a", server.host, server.port, "catchment", server.password)
    begun = originate("f", {"a": endpoint}, lambda table: table.schema == "d", 0)
    cut = LogOffset(*server.log_end())
    return proven_floor(endpoint, begun.cut.positions["a"].server, floor, cut, worth=1)


def in_new_file(server: PrivateServer) -> LogOffset:
    """The start of the newest file, once its checkpoint event is written."""
    server.sql("FLUSH BINARY LOGS")
    assert ended_by_checkpoint(server)
    return LogOffset(server.log_end()[0], FILE_START)


def test_a_transaction_is_proven_by_the_next_one_and_ddl_by_itself(own: PrivateServer) -> None:
    begin = in_new_file(own)
    assert proven(own, begin) == begin, "no group is in the file"
    own.sql("INSERT INTO d.t VALUES (1)")
    before = LogOffset(*own.log_end())
    own.sql("INSERT INTO d.t VALUES (2)")
    assert proven(own, begin) == before
    own.sql("ALTER TABLE d.t ADD COLUMN v INT")
    assert proven(own, begin) == LogOffset(*own.log_end())


def test_the_checkpoint_event_of_a_newer_file_comes_first(own: PrivateServer) -> None:
    begin = in_new_file(own)
    own.sql("INSERT INTO d.t (id) VALUES (3)")
    in_new_file(own)
    own.sql("ALTER TABLE d.t ADD COLUMN w INT")
    assert proven(own, begin) == LogOffset(*own.log_end())
