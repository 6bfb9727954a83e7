"""The tables of a storm, and by which columns the judges tell their rows: unique, and never renamed."""

import random
import subprocess
from collections.abc import Mapping

from catchment.demo.server import PrivateServer
from catchment.demo.workload import KEYS as OF_DEMO
from tests.promises.storm.load import KEYS as WRITTEN_KEYS
from tests.promises.storm.load import sysbench
from tests.world.workload import RandomTransactions, create_random_tables

_TRANSACTIONS = 60  # before a feed begins
EVENTS, SBTEST, NOTES = "events", "sbtest1", ("notes1", "notes2")
KEYS: dict[str, tuple[str, ...]] = {
    **OF_DEMO,
    EVENTS: ("id",),
    SBTEST: ("id",),
    **dict.fromkeys(NOTES, ("id",)),
}
TRIGGERED = "orders"  # its triggers would go with it, and the tools refuse it
WRITTEN = {"orders": "id", "items": "order_id", **{name: "id" for name in (EVENTS, SBTEST, *NOTES)}}
"""The integer key of each table into whose new columns the load writes."""

MADE = (
    "CREATE TABLE {} (id INT NOT NULL PRIMARY KEY, k INT NOT NULL DEFAULT 0, what VARCHAR(20)) ENGINE=InnoDB"
)
_BY_RANGE = """ PARTITION BY RANGE (id) (
    PARTITION p1 VALUES LESS THAN (100), PARTITION p2 VALUES LESS THAN (200), PARTITION p3 VALUES LESS THAN (300),
    PARTITION p4 VALUES LESS THAN MAXVALUE)"""


def away(table: str) -> tuple[str, str]:
    """Names that a table bears while it is away: one that the feed does not take, and one that it takes."""
    return f"_{table}_away", f"{table}_away"


def beside(table: str) -> str:
    """A table whose rows change places with those of a partition."""
    return f"_{table}_beside"


def judged(schema: str) -> dict[str, tuple[str, ...]]:
    """The tables that a feed may carry, as `schema.name`, and their keys."""
    return {f"{schema}.{name}": key for table, key in KEYS.items() for name in (table, away(table)[1])}


def replayed(schema: str) -> dict[str, tuple[str, ...]]:
    """Those, and all others whose rows may become theirs by RENAME."""
    shadows = {
        f"{schema}.{name}": key
        for table, key in KEYS.items()
        for name in (away(table)[0], f"_{table}_gho", f"_{table}_new")
    }
    return {**judged(schema), **shadows}


def make_tables(servers: Mapping[str, PrivateServer], schema: str) -> None:
    """Make the tables that are there when a feed begins, with rows. Raises NotHere without sysbench."""
    create_random_tables(list(servers.values()), schema)
    transact = RandomTransactions(WRITTEN_KEYS)
    for index, server in enumerate(servers.values()):
        rng = random.Random(index)
        with server.connect(database=schema) as session:
            for _ in range(_TRANSACTIONS):
                transact([session], rng)
        subprocess.run(sysbench(server, schema, "prepare"), check=True, capture_output=True)
        rows = "SELECT seq, seq % 7, 'old' FROM seq_1_to_400"
        server.sql(MADE.format(EVENTS) + _BY_RANGE, f"INSERT INTO {EVENTS} {rows}", database=schema)
