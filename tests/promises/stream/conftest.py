"""Three shards whose logs rotate often, so that streams go over ends of files."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from catchment.demo.server import PrivateServer
from tests.world.servers.chosen import chosen_server

Servers = Mapping[str, PrivateServer]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The running shards `-40`, `40-c0` and `c0-`."""
    password = secrets.token_hex(12)
    with ExitStack() as stack:
        yield {
            shard: stack.enter_context(
                chosen_server(server_id=number, password=password, settings={"max_binlog_size": 65536})
            )
            for number, shard in enumerate(("-40", "40-c0", "c0-"), 121)
        }


TABLES = (
    "CREATE TABLE t1 (id INT PRIMARY KEY, val VARCHAR(20))",
    "CREATE TABLE t2 (id INT PRIMARY KEY, val VARCHAR(20))",
    "INSERT INTO t1 VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO t2 VALUES (3, 'c')",
)


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """Two tables with rows on every shard."""
    name = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(*TABLES, database=name)
    return name
