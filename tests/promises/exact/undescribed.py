"""Shards whose log does not name columns (binlog_row_metadata), with a table of three columns of alike types."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.model.definition import Definition
from catchment.model.epoch import Manifest
from tests.promises.exact.feedrun import FeedRun
from tests.world.judge import Rows, lake_rows, source_rows
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

Servers = dict[str, PrivateServer]
Settings = Mapping[str, str | int]
TABLE = "shop.t"
ADD, DROP = "ALTER TABLE shop.t ADD n INT UNSIGNED AFTER id", "ALTER TABLE shop.t DROP b"
NO_LOG: Settings = {"binlog_row_metadata": "NO_LOG", "binlog_alter_two_phase": "ON"}
MINIMAL: Settings = {"binlog_row_metadata": "MINIMAL"}


@contextmanager
def started(**kinds: tuple[Build | None, Settings]) -> Iterator[Servers]:
    """A shard of each name: its server's build (None: the system's MariaDB) and settings."""
    with ExitStack() as stack:
        servers: Servers = {}
        for number, (name, (build, settings)) in enumerate(kinds.items()):
            options: dict[str, Any] = {"server_id": 111 + number, "password": "same", "settings": settings}
            made = PrivateServer(**options) if build is None else PrivateMySQL(build, **options)
            servers[name] = stack.enter_context(made)
        make_table(servers)
        yield servers


def make_table(servers: Servers) -> None:
    """Make the table on every shard, in a schema of its own."""
    for server in servers.values():
        server.sql(
            "DROP DATABASE IF EXISTS shop",
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT UNSIGNED, b INT UNSIGNED, c VARCHAR(9))"
            " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            "INSERT INTO shop.t SELECT seq, 4294967295 - seq, seq, CONCAT('é', seq) FROM shop.seq_1_to_50",
        )


def write(server: PrivateServer, key: int, *names: str) -> None:
    """One row more, one changed, with another value in every column."""
    values = ", ".join(f"{name} = {key * 10 + place}" for place, name in enumerate(names))
    server.sql(
        f"INSERT INTO {TABLE} SET id = {key}, {values}", f"UPDATE {TABLE} SET {values} WHERE id = {key - 50}"
    )


def must_be_equal(run: FeedRun, servers: Servers) -> Manifest:
    """Wait for an epoch with all that is in the logs, and compare it with the sources."""
    manifest = run.wait_for_log(servers)
    found = lake_rows(read(run.feed, TABLE, manifest.epoch).arrow().to_pylist(), ("id",))
    columns = {name for row in found.values() for name in row}
    expected: Rows = {
        key: {**dict.fromkeys(columns), **row} for key, row in source_rows(servers, TABLE, ("id",)).items()
    }
    assert found == expected
    return manifest


def described(manifest: Manifest) -> dict[str, Definition]:
    """The definition that is known of a shard's table, where one is."""
    return {shard: s.definitions[0] for shard, s in manifest.cut.shards.items() if s.definitions}
