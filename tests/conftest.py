"""Servers shared by the whole run, and a fresh schema for each test."""

import itertools
import secrets
from collections.abc import Callable, Iterator

import pytest

from catchment.demo.server import PrivateServer

Shards = tuple[PrivateServer, PrivateServer]


@pytest.fixture(scope="session")
def shards() -> Iterator[Shards]:
    """Two running shards with server ids 101 and 102 and GTID domain 0, shared by all tests of the run.

    A test that changes global settings, stops a server or resets its log starts a `PrivateServer` of its own.
    """
    password = secrets.token_hex(12)  # one for both, as behind a proxy
    with (
        PrivateServer(server_id=101, password=password) as first,
        PrivateServer(server_id=102, password=password) as second,
    ):
        yield first, second


@pytest.fixture(scope="session")
def shard(shards: Shards) -> PrivateServer:
    """The first of the two shared shards, for tests that need one."""
    return shards[0]


_numbers = itertools.count(1)


@pytest.fixture
def fresh_schema() -> Iterator[Callable[..., str]]:
    """`fresh_schema(server, ...)` makes one new schema, of one name, on each server and returns its name.

    The schemas are dropped after the test.
    """
    made: list[tuple[PrivateServer, str]] = []

    def make(*servers: PrivateServer) -> str:
        name = f"t{next(_numbers)}"
        for server in servers:
            server.sql(f"CREATE DATABASE {name}")
            made.append((server, name))
        return name

    yield make
    for server, name in made:
        if server.pid is not None:
            server.sql(f"DROP DATABASE IF EXISTS {name}")
