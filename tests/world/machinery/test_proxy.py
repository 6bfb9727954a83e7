"""The proxy does to a connection what it says."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest
from pymysql.connections import Connection
from pymysqlreplication import BinLogStreamReader

from catchment.demo.server import PrivateServer
from tests.conftest import Shards
from tests.world.patience import PATIENCE_SECONDS
from tests.world.proxy import Proxy, dump_begins, query_begins
from tests.world.servers.chosen import in_its_words

_LARGE = in_its_words("SELECT seq, REPEAT('x', 1000) FROM mysql.seq_1_to_3000")


@pytest.fixture
def proxy(shard: PrivateServer) -> Iterator[Proxy]:
    with Proxy(shard.host, shard.port) as proxy:
        yield proxy


def _connect(proxy: Proxy, server: PrivateServer) -> "Connection[pymysql.cursors.Cursor]":
    return pymysql.connect(
        **{**server.login(), "port": proxy.port}, read_timeout=PATIENCE_SECONDS, autocommit=True
    )


def _query(connection: "Connection[pymysql.cursors.Cursor]", text: str) -> tuple[tuple[object, ...], ...]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall()


def test_passes_everything_on(proxy: Proxy, shard: PrivateServer) -> None:
    connection = _connect(proxy, shard)
    rows = _query(connection, _LARGE)
    assert [row[0] for row in rows] == list(range(1, 3001))
    connection.close()
    _connect(proxy, shard).close()
    assert (proxy.accepted, proxy.cuts) == (2, 0)


@pytest.mark.parametrize("reset", [False, True])
def test_cuts_in_the_middle_of_a_select_once(proxy: Proxy, shard: PrivateServer, reset: bool) -> None:
    proxy.cut_after(100_000, after=query_begins("SELECT seq, "), reset=reset)
    connection = _connect(proxy, shard)
    assert _query(connection, "SELECT REPEAT('x', 200000)")[0][0] == "x" * 200_000
    with pytest.raises(pymysql.err.OperationalError, match="Lost connection"):
        _query(connection, _LARGE)
    assert proxy.cuts == 1
    again = _connect(proxy, shard)
    assert len(_query(again, _LARGE)) == 3000
    again.close()


def test_cuts_after_exactly_that_many_bytes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        with Proxy(host, port) as proxy:
            proxy.cut_after(50_000)
            received = []
            for _ in range(2):
                with socket.create_connection((proxy.host, proxy.port)) as client:
                    sender, _ = listener.accept()
                    with sender:
                        sender.sendall(b"x" * 200_000)
                    received.append(sum(len(piece) for piece in iter(lambda: client.recv(65536), b"")))
            assert received == [50_000, 200_000]


def test_cuts_a_dump_that_a_client_asked_for(proxy: Proxy, shard: PrivateServer) -> None:
    file, offset = shard.log_end()
    shard.sql(
        "CREATE DATABASE cut",
        "CREATE TABLE cut.t (v LONGTEXT)",
        "INSERT INTO cut.t VALUES (REPEAT('x', 100000))",
    )
    shard.sql("DROP DATABASE cut")
    proxy.cut_after(50_000, after=dump_begins)
    reader = BinLogStreamReader(
        {**shard.login(), "port": proxy.port}, server_id=0, log_file=file, log_pos=offset, resume_stream=True
    )
    kinds = [type(event).__name__ for event in reader]
    reader.close()
    assert kinds.count("WriteRowsEvent") == 1
    assert kinds.count("FormatDescriptionEvent") == 2, "mysql-replication connects again by itself"
    assert (proxy.accepted, proxy.cuts) == (3, 1)


def test_cuts_all_connections_on_command_and_refuses(proxy: Proxy, shard: PrivateServer) -> None:
    connections = [_connect(proxy, shard) for _ in range(3)]
    proxy.cut()
    for connection in connections:
        with pytest.raises(pymysql.err.OperationalError):
            _query(connection, "SELECT 1")
    proxy.refusing = True
    with pytest.raises(pymysql.err.OperationalError):
        _connect(proxy, shard)
    proxy.refusing = False
    _connect(proxy, shard).close()


def test_stalls(proxy: Proxy, shard: PrivateServer) -> None:
    """A query by another proxy is answered meanwhile, though it is asked later."""
    connection = _connect(proxy, shard)
    with Proxy(shard.host, shard.port) as another, ThreadPoolExecutor(1) as pool:
        proxy.stall()
        stalled = pool.submit(_query, connection, "SELECT 1")
        flowing = _connect(another, shard)
        assert _query(flowing, "SELECT 2") == ((2,),)
        assert not stalled.done()
        proxy.flow()
        assert stalled.result(PATIENCE_SECONDS) == ((1,),)
        flowing.close()
    connection.close()


def test_sends_connections_to_other_servers(shards: Shards) -> None:
    first, second = shards
    with Proxy(first.host, first.port) as proxy:
        proxy.misroute(2, second.host, second.port)
        assert [_server_id(proxy, first) for _ in range(3)] == [101, 102, 101]
        proxy.balance([(first.host, first.port), (second.host, second.port)])
        assert sorted(_server_id(proxy, first) for _ in range(4)) == [101, 101, 102, 102]


def _server_id(proxy: Proxy, server: PrivateServer) -> int:
    connection = _connect(proxy, server)
    with connection:
        return int(str(_query(connection, "SELECT @@server_id")[0][0]))
