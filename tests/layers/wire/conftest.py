"""One session per module in which the server tells values as text."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from tests.layers.wire.answers import Session
from tests.world.servers.chosen import on_mysql
from tests.world.servers.launch import PrivateMySQL


@pytest.fixture(scope="session")
def shard(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A MariaDB in every run: of its log and its answers these tests speak; those of MySQL start theirs by name."""
    if on_mysql():
        with PrivateServer(server_id=101) as server:
            yield server
    else:
        yield request.getfixturevalue("shards")[0]


@pytest.fixture(scope="module")
def session(shard: PrivateServer) -> Iterator[Session]:
    connection = shard.connect(
        conv={}, init_command="SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'"
    )
    yield connection
    connection.close()


@pytest.fixture(params=["mysql_server", "mysql_97_server"])
def mysql(request: pytest.FixtureRequest) -> PrivateMySQL:
    """MySQL 8.0, then 9.7; skipped where it cannot be had."""
    server: PrivateMySQL = request.getfixturevalue(request.param)
    return server
