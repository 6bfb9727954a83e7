"""A table, a feed file of it, and processes that tail it."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from tests.layers.cli.tailing import TAIL, Tail


@pytest.fixture
def schema(shard: PrivateServer, fresh_schema: Callable[..., str]) -> str:
    """A table of five rows."""
    name = fresh_schema(shard)
    shard.sql(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))",
        "INSERT INTO t VALUES (1,'a'),(2,'b'),(3,'c'),(4,'d'),(5,'e')",
        database=name,
    )
    return name


@pytest.fixture
def feed_file(tmp_path: Path, shard: PrivateServer, schema: str) -> Path:
    file = tmp_path / "feed.yaml"
    file.write_text(f"""
name: shop
source:
  keyspace: shop
  shards:
    - {{name: "-80", host: {shard.host}, port: {shard.port}, user: {FEED_USER}, password: "{shard.password}"}}
tables: [{schema}.t]
sink: {{path: lake}}
state: {{env: CATCHMENT_UNSET}}
""")
    return file


@pytest.fixture
def tails() -> Iterator[Callable[..., Tail]]:
    """`tails(file, "--from", ...)` begins a command, which is killed after the test."""
    begun: list[Tail] = []

    def begin(*arguments: Any, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE) -> Tail:
        command = [*TAIL, *map(str, arguments)]
        begun.append(subprocess.Popen(command, text=True, stdout=stdout, stderr=stderr))
        return begun[-1]

    yield begin
    for one in begun:
        one.kill()
        one.communicate()
