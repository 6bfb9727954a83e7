"""A session that was left is ended at the server when the next one begins, where sessions are counted."""

from collections.abc import Callable, Iterator

import pytest
from pymysql.constants.COMMAND import COM_QUERY

from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.source.dump import dumping
from catchment.source.session import connect
from catchment.wire.log.decoder import LogDecoder
from tests.world.servers.chosen import chosen_server

TIMES = 50
# More than sockets hold, and less than what is read of an answer that nobody wants.
ROW_BYTES, ROWS = 2_000_000, 3


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    """It lets one session of the feed's user in at a time."""
    with chosen_server(server_id=172) as made:
        made.sql("CREATE DATABASE p", "CREATE TABLE p.t (id INT PRIMARY KEY, wide LONGTEXT)")
        for key in range(ROWS):
            made.sql(f"INSERT INTO p.t VALUES ({key}, REPEAT('x', {ROW_BYTES}))")
        made.sql("ALTER USER catchment@'%' WITH MAX_USER_CONNECTIONS 1")
        yield made


def close(endpoint: Endpoint, end: LogOffset) -> None:
    connect(endpoint).close()


def abandon(endpoint: Endpoint, end: LogOffset) -> None:
    connect(endpoint).abandon()


def abandon_in_an_answer(endpoint: Endpoint, end: LogOffset) -> None:
    session = connect(endpoint)
    session._execute_command(COM_QUERY, "SELECT * FROM p.t")  # type: ignore[attr-defined]
    session.abandon()


def abandon_a_dump(endpoint: Endpoint, end: LogOffset) -> None:
    start = LogOffset(end.file, 4)
    with dumping(endpoint, None, start, LogDecoder(start, set(), None)) as dump:
        assert dump.pull() > 0


@pytest.mark.parametrize("leave", [close, abandon, abandon_in_an_answer, abandon_a_dump])
def test_the_next_session_is_let_in(
    server: PrivateServer, leave: Callable[[Endpoint, LogOffset], None]
) -> None:
    endpoint = Endpoint("a", server.host, server.port, "catchment", server.password, counted=True)
    end = LogOffset(*server.log_end())
    for _ in range(TIMES):
        leave(endpoint, end)
    connect(endpoint).close()
