"""The address by which the feed file reaches a server may change: the feed goes on, and copies nothing again."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from catchment.demo.server import PrivateServer
from catchment.model.errors import OtherServer
from catchment.model.position import Server
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.exact.steps import Steps, run_here
from tests.world.proxy import Proxy
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL


@pytest.fixture(
    params=[
        pytest.param("mariadb", marks=pytest.mark.promise("the address of a server may change between runs")),
        "mysql",
    ]
)
def server(request: pytest.FixtureRequest) -> PrivateServer:
    """One of each kind; MySQL has a server_uuid, MariaDB has none."""
    name = {"mariadb": "shard", "mysql": "mysql_server"}[request.param]
    found: PrivateServer = request.getfixturevalue(name)
    return found


def pointed(steps: Steps, host: str, port: int) -> None:
    """Have the feed file reach the server by another address."""
    described = yaml.safe_load(steps.file.read_text())
    described["source"]["shards"][0].update(host=host, port=port)
    steps.file.write_text(yaml.safe_dump(described))


def known(steps: Steps) -> tuple[Server, int]:
    """The server as the feed knows it, and how many rows were ever copied."""
    rows = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    newest = rows[-1].manifest
    assert not any(row.manifest.stale for row in rows)
    return newest.cut.positions["a"].server, sum(copy.rows for copy in newest.cut.copies)


def test_a_feed_goes_on_at_another_address_of_the_same_server(
    server: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": server}, fresh_schema(server))
    steps.sql("a", "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    steps.must_be_equal("t", "id", "n")
    before = known(steps)
    with Proxy(server.host, server.port) as first, Proxy(server.host, server.port) as second:
        for number, (host, port) in enumerate(
            [(first.host, first.port), ("localhost", second.port), (server.host, server.port)]
        ):
            pointed(steps, host, port)
            steps.sql(
                "a", f"UPDATE t SET n = n + 1 WHERE id = {number}", f"INSERT INTO t VALUES ({10 + number}, 0)"
            )
            steps.must_be_equal("t", "id", "n")
            steps.sql("a", "FLUSH BINARY LOGS")
            assert known(steps) == before


def test_a_mysql_that_is_named_otherwise_is_known_by_its_uuid(
    mysql_80_build: Build, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that was made again. With another log it is another server, and refused."""
    run_here(monkeypatch)
    with PrivateMySQL(mysql_80_build, server_id=181) as server:
        steps = Steps(tmp_path, {"a": server}, fresh_schema(server))
        steps.sql("a", "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
        steps.must_be_equal("t", "id", "n")
        before = known(steps)
        server.restart({"server_id": 182})
        steps.sql("a", "UPDATE t SET n = 5 WHERE id = 1")
        steps.must_be_equal("t", "id", "n")
        assert known(steps) == (replace(before[0], server_id=182), before[1])
        steps.sql("a", "UPDATE t SET n = 6 WHERE id = 1")
        steps.must_be_equal("t", "id", "n")
        server.restart({"server_id": 183})
        server.sql("RESET MASTER")
        steps.sql("a", *["UPDATE t SET n = n + 1"] * 9)
        with pytest.raises(OtherServer, match="is now server_id 183"):
            steps.run()
