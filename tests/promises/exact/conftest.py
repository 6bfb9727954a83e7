"""Two shards with small log files for all exactness tests of the run."""

import secrets
from collections.abc import Iterator

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from tests.world.servers.chosen import chosen_server

Servers = dict[str, PrivateServer]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The running shards `-80` and `80-`; their log rotates every 64 KiB."""
    password = secrets.token_hex(12)
    small = {"max_binlog_size": 65536}
    with (
        chosen_server(server_id=111, password=password, settings=small) as first,
        chosen_server(server_id=112, password=password, settings=small) as second,
    ):
        yield {"-80": first, "80-": second}


@pytest.fixture(scope="session")
def logging_text() -> Iterator[Servers]:
    """Two shards whose logs hold statements as text, so that no oracle can read them."""
    with (
        chosen_server(server_id=131, password="t") as first,
        chosen_server(server_id=132, password="t") as second,
    ):
        for server in (first, second):
            server.sql(f"GRANT SHOW VIEW, TRIGGER ON *.* TO {FEED_USER}@'%'")
        yield {"-80": first, "80-": second}
