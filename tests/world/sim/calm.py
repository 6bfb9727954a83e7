"""Simulated servers in the world as it is: time and threads are real, nothing breaks, and there is no network."""

import random
import time
from typing import Any

from catchment.model.table import TableId
from catchment.world.port import Servers
from catchment.world.real import Real
from tests.world.sim.server import SCHEMA, Server, Table


class Even(random.Random):
    """Chance by which nothing breaks."""

    def random(self) -> float:
        """The end of each range."""
        return 0.999

    def choice(self, seq: Any) -> Any:
        """The last."""
        return seq[-1]


class Calm:
    """What a network asks of the simulator's world."""

    now = 0.0

    def __init__(self) -> None:
        self.rng = Even()

    def step(self, what: str) -> None:
        """Nothing dies here."""

    def sleep(self, seconds: float) -> None:
        """A SELECT takes no time of its own."""


class Beside(Real):
    """The real world, with simulated servers."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers


def server_of(number: int, tables: int, columns: int, rows: int = 0) -> Server:
    """A server with so many tables, columns of each with the key, and rows of each before its log."""
    names = tuple(f"c{column:02}" for column in range(1, columns))
    server = Server(f"s{number:04}", number, Even(), time.monotonic)
    server.kills_dumps = False
    server.tables = {table.name: Table(table.name, ("id", *names)) for table in tables_of(tables)}
    server.load({name: {key: row_of(key, columns) for key in range(1, rows + 1)} for name in server.tables})
    # A log without any group proves nothing, and behind the first cut there is to be none.
    for row in (row_of(0, columns), None):
        server.commit(((tables_of(1)[0].name, 0, row),), hold=0.0)
    server.rotate()
    return server


def tables_of(count: int) -> list[TableId]:
    """The tables of such a server."""
    return [TableId(SCHEMA, f"t{number:04}") for number in range(count)]


def row_of(key: int, columns: int) -> tuple[int, ...]:
    """A row."""
    return (key, *range(1, columns))
