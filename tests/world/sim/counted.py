"""Simulated servers in the world as it is, which count the logins and statements that a feed of theirs makes."""

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from catchment.config import Feed, load
from catchment.engine.near import Near
from catchment.feed.take_up import Ports
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.sink.delta.upkeep.lake import lake_of
from catchment.source.catalog import list_tables
from catchment.source.session import connect
from tests.world.sim.calm import Calm, row_of, server_of
from tests.world.sim.scheduler import SimWorld
from tests.world.sim.server import SCHEMA
from tests.world.sim.session import Network, SimSession


class Counted(Network):
    """Servers with tables of which no row is to be copied. The clock, which ticks beside the rest, is not counted.

    `asked`: each statement of each shard; `logins`: of each shard.
    """

    def __init__(self, shards: int, tables: int, columns: int) -> None:
        servers = {number: server_of(number, tables, columns) for number in range(1, shards + 1)}
        super().__init__(cast(SimWorld, Calm()), servers, 0.0)
        self.columns = columns
        self.asked: Counter[tuple[str, str]] = Counter()
        self.logins: Counter[str] = Counter()

    def login(self, endpoint: Endpoint, *, snapshots: bool, read_seconds: int) -> SimSession:
        """A session that counts."""
        self.logins[endpoint.shard] += not _is_clock()
        return _Session(self, endpoint, read_seconds)

    def change(self, key: int) -> None:
        """One row of one table, on every shard."""
        for server in self.by_port.values():
            server.commit((("t0000", key, row_of(key, self.columns)),), hold=0.0)

    def feed(self, directory: Path) -> Feed:
        """A feed of these servers whose files are in the directory."""
        shards = [
            {"name": one.name, "host": "sim", "port": number, "user": "catchment", "password": "x"}
            for number, one in self.by_port.items()
        ]
        file = directory / "feed.yaml"
        file.write_text(
            yaml.safe_dump(
                {
                    "name": "counted",
                    "source": {"keyspace": "sim", "shards": shards},
                    "tables": [f"{SCHEMA}.*"],
                    "epoch": {"interval": "100ms", "tick": "100ms"},
                    "sink": {"path": str(directory / "lake"), "settle": "1h"},
                    "state": str(directory / "state.db"),
                }
            )
        )
        return load(file)


def ports() -> Ports:
    """What a run of such a feed is joined to: the driver reads all of its epochs itself."""
    return Ports(lake_of, lambda feed: Near(cast(Any, _Nobody())), _set_up)


class _Session(SimSession):
    def rows(self, sql: str, args: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The answer."""
        counted = cast(Counted, self._network)
        counted.asked[self.endpoint.shard, " ".join(sql.split())] += not _is_clock()
        return super().rows(sql, args)


class _Nobody:
    """An engine that has nothing to do."""

    def check(self) -> None: ...
    def cancel(self) -> None: ...
    def rest(self) -> None: ...
    def close(self) -> None: ...


def _is_clock() -> bool:
    return threading.current_thread().name.startswith(("clock", "tick"))


def _set_up(endpoint: Endpoint, rules: Sequence[str]) -> list[TableId]:
    with connect(endpoint) as session:
        return list(list_tables(session, lambda table: True))
