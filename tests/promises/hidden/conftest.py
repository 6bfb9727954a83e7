"""A server with small log files and one with larger ones, whose commits the tests here hold."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.hidden.source import create
from tests.world.held import release
from tests.world.servers.chosen import chosen_server


@pytest.fixture(scope="package")
def small() -> Iterator[PrivateServer]:
    """A log file holds a few transactions."""
    with chosen_server(settings={"max_binlog_size": 4096}) as server:
        yield server


@pytest.fixture(scope="package")
def large() -> Iterator[PrivateServer]:
    """A log file holds all that a test writes, unless it fills the file on purpose."""
    with chosen_server(settings={"max_binlog_size": 1 << 20}) as server:
        yield server


@contextmanager
def with_tables(server: PrivateServer) -> Iterator[PrivateServer]:
    """The server with fresh tables inside the block. No commit is held behind it."""
    create(server)
    try:
        yield server
    finally:
        release(server)
        server.sql("DROP DATABASE d")


@pytest.fixture
def server(small: PrivateServer) -> Iterator[PrivateServer]:
    """The server of small log files, with fresh tables."""
    with with_tables(small):
        yield small
