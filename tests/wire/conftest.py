"""One session per module in which the server tells values as text."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from tests.wire.answers import Session


@pytest.fixture(scope="module")
def session(shard: PrivateServer) -> Iterator[Session]:
    connection = shard.connect(
        conv={}, init_command="SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'"
    )
    yield connection
    connection.close()
