"""Feeds of two shards that have not begun."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.exact.conftest import Servers, servers
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.chosen import chosen_server

__all__ = ["servers"]


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of all tables of a schema of two shards, which has none yet."""
    run_here(monkeypatch)
    return Steps(tmp_path, servers, fresh_schema(*servers.values()))


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    """A server whose commits are held, and whose log is taken away."""
    with chosen_server(server_id=181) as server:
        yield server
