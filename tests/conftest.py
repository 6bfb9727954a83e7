"""Servers and a Spark shared by the whole run, and a fresh schema for each test."""

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import hypothesis
import pytest
from pyspark import SparkContext

from catchment.demo.server import PrivateServer
from catchment.engine.context import context
from tests.world.engines import on_spark
from tests.world.s3.bucket import Bucket
from tests.world.s3.gateway import versity
from tests.world.s3.proxy import S3Proxy
from tests.world.s3.server import S3Server
from tests.world.servers.builds import Build, mariadb_11, mariadb_plugins, mysql_80, mysql_97
from tests.world.servers.chosen import chosen_server, on_mysql
from tests.world.servers.debian import NotHere
from tests.world.servers.launch import PrivateMariaDB, PrivateMySQL

pytest_plugins = ["tests.suite.plugin"]

# How long an example takes says how busy the machine is, and nothing of the code.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")

Shards = tuple[PrivateServer, PrivateServer]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a MariaDB where the run is against a MySQL."""
    if not on_mysql():
        return
    for item in items:
        for mark in item.iter_markers("mariadb"):
            item.add_marker(pytest.mark.skip(reason=f"not on MySQL: {mark.args[0]}"))


_Had = TypeVar("_Had")


@pytest.fixture(scope="session")
def shards() -> Iterator[Shards]:
    """Two running shards with server ids 101 and 102 and GTID domain 0, shared by all tests of the run.

    A test that changes global settings, stops a server or resets its log starts a `PrivateServer` of its own.
    """
    password = secrets.token_hex(12)  # one for both, as behind a proxy
    with (
        chosen_server(server_id=101, password=password) as first,
        chosen_server(server_id=102, password=password) as second,
    ):
        yield first, second


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkContext]:
    """The Spark that every run in this process finds, so that Java starts once."""

    def warm(number: int) -> int:
        # what a task needs is loaded, which takes seconds, before writers fill the log
        from catchment.readers import run_task

        return number if run_task else -1

    spark = context("tests", "local[2]", {})
    on_spark(spark).each(warm, range(4))
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def shard(shards: Shards) -> PrivateServer:
    """The first of the two shared shards, for tests that need one."""
    return shards[0]


def had(of: Callable[[], _Had]) -> _Had:
    """What is fetched for tests; skips where it cannot be had."""
    try:
        return of()
    except NotHere as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def mysql_80_build() -> Build:
    """MySQL 8.0 for a `PrivateMySQL` of one's own; skips where it cannot be had. It has no plugins."""
    return had(mysql_80)


@pytest.fixture(scope="session")
def mysql_97_build() -> Build:
    """MySQL 9.7 for a `PrivateMySQL` of one's own, with semi-sync; skips where it cannot be had."""
    return had(mysql_97)


@pytest.fixture(scope="session")
def plugins() -> Path:
    """The directory of plugins of the system's MariaDB (its `plugin_dir`); skips where they cannot be had."""
    return had(mariadb_plugins)


@pytest.fixture(scope="session")
def mysql_server(mysql_80_build: Build) -> Iterator[PrivateMySQL]:
    """A running MySQL 8.0 with server id 201, shared by all tests of the run as `shards` are."""
    with PrivateMySQL(mysql_80_build, server_id=201) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_97_server(mysql_97_build: Build) -> Iterator[PrivateMySQL]:
    """A running MySQL 9.7 with server id 202, shared by all tests of the run as `shards` are."""
    with PrivateMySQL(mysql_97_build, server_id=202) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_11_build() -> Build:
    """MariaDB 11.8 for a `PrivateMariaDB` of one's own; skips where it cannot be had."""
    return had(mariadb_11)


@pytest.fixture(scope="session")
def mariadb_11_server(mariadb_11_build: Build) -> Iterator[PrivateMariaDB]:
    """A running MariaDB 11.8 with server id 203, shared by all tests of the run as `shards` are."""
    with PrivateMariaDB(mariadb_11_build, server_id=203) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A running S3 server, shared by all tests of this process; skips where it cannot be had."""
    with S3Server(had(versity)) as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    """A fresh bucket of the shared S3 server."""
    with s3_server.fresh_bucket() as fresh:
        yield fresh


@pytest.fixture(scope="session")
def shared_s3_proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    """The proxy that `s3_proxy` resets for each test."""
    with S3Proxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def s3_proxy(shared_s3_proxy: S3Proxy) -> S3Proxy:
    """A proxy before the shared S3 server, without rules: `bucket.at(s3_proxy.endpoint)` goes by it."""
    shared_s3_proxy.rule()
    shared_s3_proxy.forget()
    return shared_s3_proxy


_numbers = itertools.count(1)


@pytest.fixture
def fresh_schema() -> Iterator[Callable[..., str]]:
    """`fresh_schema(server, ...)` makes one new schema, of one name, on each server and returns its name.

    The schemas are dropped after the test.
    """
    made: list[tuple[PrivateServer, str]] = []

    def make(*servers: PrivateServer) -> str:
        name = f"t{next(_numbers)}"
        for server in servers:
            server.sql(f"CREATE DATABASE {name}")
            made.append((server, name))
        return name

    yield make
    for server, name in made:
        if server.pid is not None:
            # a session that a failed test left open may hold its tables for ever
            server.sql("SET lock_wait_timeout = 60", f"DROP DATABASE IF EXISTS {name}")
