"""The examples of seeds 003 and 004 as programs, with the events that come."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from catchment.demo.server import PrivateServer
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of
from tests.world.servers.chosen import chosen_server
from tests.world.servers.gtids import newest_gtid

EXAMPLES = Path(__file__).parents[3] / "examples" / "stream"


@pytest.fixture(scope="module")
def own() -> Iterator[Servers]:
    """Three shards that nobody else uses: the examples stream whole databases."""
    names = ("-40", "40-c0", "c0-")
    with (
        chosen_server(server_id=141) as first,
        chosen_server(server_id=142, password=first.password) as second,
        chosen_server(server_id=143, password=first.password) as third,
    ):
        servers = dict(zip(names, (first, second, third), strict=True))
        for server in servers.values():
            server.sql(
                "CREATE DATABASE shop",
                "CREATE TABLE shop.t1 (id INT PRIMARY KEY, val VARCHAR(20))",
                "CREATE TABLE shop.t2 (id INT PRIMARY KEY, val VARCHAR(20))",
                "INSERT INTO shop.t1 VALUES (1, 'a'), (2, 'b')",
                "INSERT INTO shop.t2 VALUES (3, 'c')",
            )
        yield servers


def feed_of(directory: Path, servers: Servers, keyspace: str = "ks") -> Path:
    file = directory / f"{keyspace}.yaml"
    source = source_of(servers, keyspace)
    file.write_text(
        yaml.safe_dump({"name": "x", "source": source, "tables": ["*.*"], "sink": {"path": "lake"}})
    )
    return file


@contextmanager
def example(name: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        yield running


def told(running: "subprocess.Popen[str]") -> list[str]:
    """The events without their values, once the program has ended."""
    assert running.stdout is not None
    lines = [line.partition("(")[0] + _shard(line) for line in running.stdout]
    assert running.wait() == 0
    return lines


def _shard(line: str) -> str:
    return line.partition("shard='")[2].partition("'")[0]


def written(
    servers: Sequence[PrivateServer], statement: str = "UPDATE shop.t1 SET val = CONCAT(val, 'x')"
) -> None:
    for server in servers:
        server.sql(statement + " WHERE id = 1")


def ready(running: "subprocess.Popen[str]") -> None:
    """Once the first vgtid has come, changes of now are told."""
    assert running.stdout is not None
    assert running.stdout.readline().startswith("VGtid")


def test_current_from_two_shards(own: Servers, tmp_path: Path) -> None:
    with example("current_from_two_shards", feed_of(tmp_path, own), 6) as running:
        ready(running)
        written([own["-40"]])
        assert told(running) == ["Begin-40", "Field-40", "Row-40", "Commit-40", "VGtid"]


def test_position_of_a_keyspace(own: Servers, tmp_path: Path) -> None:
    shard = {"-40": own["-40"]}
    gtid = newest_gtid(own["-40"])
    written([own["-40"]])
    with example("position_of_a_keyspace", feed_of(tmp_path, shard), 6, gtid) as running:
        assert told(running) == ["VGtid", "Begin-40", "Field-40", "Row-40", "Commit-40", "VGtid"]


def test_current_from_all_keyspaces(own: Servers, tmp_path: Path) -> None:
    one, two = feed_of(tmp_path, {"-": own["-40"]}, "one"), feed_of(tmp_path, {"-": own["c0-"]}, "two")
    with example("current_from_all_keyspaces", one, 6, two) as running:
        ready(running)
        written([own["c0-"]])
        assert told(running) == ["Begin-", "Field-", "Row-", "Commit-", "VGtid"]


@pytest.mark.promise("the examples of the docs run as they are written")
def test_copy_two_tables_from_two_shards(own: Servers, tmp_path: Path) -> None:
    with example("copy_two_tables_from_two_shards", feed_of(tmp_path, own), 29) as running:
        found = told(running)
    for shard in ("-40", "40-c0"):
        mine = [line.removesuffix(shard) for line in found if line.endswith(shard)]
        assert mine == [
            *("Begin", "Field", "Row", "Row", "LastPk", "Commit", "CopyCompleted"),
            *("Begin", "Field", "Row", "LastPk", "Commit", "CopyCompleted"),
        ]
    assert found[0] == found[-1] == "VGtid"
    assert found[-2] == "CopyCompleted"


def test_copy_the_entire_database(own: Servers, tmp_path: Path) -> None:
    with example("copy_the_entire_database", feed_of(tmp_path, own), 42) as running:
        found = told(running)
    assert [line for line in found if line.startswith("CopyCompleted")] == [
        *(f"CopyCompleted{shard}" for shard in own for _ in range(2)),
        "CopyCompleted",
    ]


def test_minimize_skew(own: Servers, tmp_path: Path) -> None:
    with example("minimize_skew", feed_of(tmp_path, own), 6) as running:
        ready(running)
        written([own["40-c0"]])
        assert told(running) == ["Begin40-c0", "Field40-c0", "Row40-c0", "Commit40-c0", "VGtid"]


def test_every_example_is_tried() -> None:
    tried = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {file.stem for file in EXAMPLES.glob("*.py")} <= tried
