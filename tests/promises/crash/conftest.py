"""Two shards of their own and small feeds, for the tests of crashes. What is no crash of a process runs in this one."""

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.cli import run as run_module
from catchment.config import EngineName, Feed
from catchment.demo.server import PrivateServer
from catchment.engine.choice import engine_of
from catchment.engine.nursery import Nursery
from catchment.engine.port import Engine
from catchment.feed import compare, runner
from catchment.model.location import ObjectPath
from tests.promises.crash.life import Life
from tests.world.engines import Here
from tests.world.servers.chosen import chosen_server

MakeLife = Callable[..., Life]


@pytest.fixture(scope="session")
def pair() -> Iterator[dict[str, PrivateServer]]:
    """The running shards `-80` and `80-`; no test stops them or resets their logs."""
    password = secrets.token_hex(12)
    with (
        chosen_server(server_id=121, password=password) as first,
        chosen_server(server_id=122, password=password) as second,
    ):
        yield {"-80": first, "80-": second}


_numbers = itertools.count(1)


def run_here(patch: pytest.MonkeyPatch) -> None:
    """Let feeds with `engine: local` run their tasks in this process, one after another."""

    def chosen(feed: Feed, purpose: str = "", nursery: Nursery | None = None) -> Engine:
        return Here() if feed.engine is EngineName.LOCAL else engine_of(feed, purpose, nursery)

    patch.setattr(runner, "engine_of", chosen)
    patch.setattr(compare, "engine_of", chosen)
    patch.setattr(run_module, "prepared", lambda feed: None)


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MakeLife]:
    """`live(servers, count=3, store=None)` makes a feed of small tables in a new schema, dropped after the test."""
    run_here(monkeypatch)
    made: list[Life] = []

    def make(
        servers: dict[str, PrivateServer], count: int = 3, store: tuple[ObjectPath, Path] | None = None
    ) -> Life:
        schema = f"c{next(_numbers)}"
        for server in servers.values():
            server.sql(f"CREATE DATABASE {schema}")
        made.append(Life(tmp_path, servers, schema, count=count, store=store))
        return made[-1]

    yield make
    for life in made:
        life.kill_told()
    for life in made:
        for server in life.servers.values():
            if server.pid is not None:
                server.sql(f"DROP DATABASE {life.schema}")
