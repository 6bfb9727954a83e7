"""Sessions on real servers: who is let in, what is pinned, and who gives up first."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from catchment.demo.server import PrivateServer
from catchment.flow.capture import connect as module
from catchment.flow.capture.connect import connect, pin
from catchment.model.errors import ServerSaid
from catchment.model.source import Endpoint
from tests.servers.chosen import on_mysql


def endpoint_of(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


def test_the_server_ends_a_statement_before_the_socket_gives_up(shard: PrivateServer) -> None:
    endpoint = endpoint_of(shard)
    with closing(connect(endpoint)) as session, session.cursor() as cursor:
        pin(session, endpoint)
        limit = "@@max_execution_time / 1000" if on_mysql() else "@@max_statement_time"
        cursor.execute(f"SELECT {limit}")
        (seconds,) = cursor.fetchone() or (0,)
        given_up: float = session._sock.gettimeout()  # type: ignore[attr-defined]
    assert 0 < seconds <= given_up - 30


def test_a_large_table_is_read_whatever_the_global_limit_of_a_join(
    shard: PrivateServer, fresh_schema: Callable[..., str], small_joins: None
) -> None:
    schema = fresh_schema(shard)
    shard.sql(
        "SET sql_big_selects = 1",
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t SELECT seq FROM seq_1_to_100",
        "ANALYZE TABLE t",
        database=schema,
    )
    endpoint = endpoint_of(shard)
    with closing(connect(endpoint)) as session, session.cursor() as cursor:
        select = f"SELECT COUNT(DISTINCT id) FROM {schema}.t"
        with pytest.raises(ServerSaid, match="1104"), module.mapped(endpoint):
            cursor.execute(select)
        pin(session, endpoint)
        cursor.execute(select)
        assert cursor.fetchone() == (100,)


@pytest.fixture
def small_joins(shard: PrivateServer) -> Iterator[None]:
    """A server whose new sessions may look at ten rows."""
    shard.sql("SET GLOBAL max_join_size = 10")
    yield
    shard.sql("SET GLOBAL max_join_size = DEFAULT")


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        ((5, 7, 44), {"information_schema_stats_expiry", "use_secondary_engine"}),
        ((8, 0, 12), {"use_secondary_engine"}),
        ((8, 0, 13), set()),
    ],
)
def test_only_what_a_version_has_is_pinned(version: tuple[int, ...], lacks: set[str]) -> None:
    newer = {"information_schema_stats_expiry", "use_secondary_engine"}
    assert newer - module._pinned(version).keys() == lacks
