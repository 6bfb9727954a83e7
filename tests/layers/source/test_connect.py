"""Sessions on real servers: who is let in, what is pinned, and who gives up first."""

import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
from pymysql.connections import Connection
from pymysql.converters import escape_string

from catchment.demo.server import PrivateServer
from catchment.model.errors import OtherServer, ServerSaid, SourceError
from catchment.model.source import Endpoint
from catchment.source import pinned
from catchment.source import session as module
from catchment.source.session import connect
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.servers.chosen import chosen_server, on_mysql

PASSWORD = "pässwörd of 64'"


def endpoint_of(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    """A server whose settings these tests change."""
    with chosen_server(server_id=161) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb(plugins: Path) -> Iterator[PrivateServer]:
    """The system's MariaDB, for its login plugins."""
    with PrivateServer(server_id=162, settings={"plugin_dir": str(plugins)}) as server:
        yield server


def test_an_account_of_ed25519_is_let_in(mariadb: PrivateServer) -> None:
    mariadb.sql(
        "INSTALL PLUGIN IF NOT EXISTS ed25519 SONAME 'auth_ed25519'",
        f"CREATE USER modern IDENTIFIED VIA ed25519 USING PASSWORD('{escape_string(PASSWORD)}')",
    )
    connect(Endpoint("a", mariadb.host, mariadb.port, "modern", PASSWORD)).close()
    with pytest.raises(SourceError, match="'modern' is refused"):
        connect(Endpoint("a", mariadb.host, mariadb.port, "modern", "wrong"))


LACKED = {
    "dialog": ("INSTALL SONAME 'auth_pam'", "CREATE USER lacked IDENTIFIED VIA pam"),
    "unknown auth switch": (
        "SET GLOBAL secure_auth = OFF",
        "CREATE USER lacked IDENTIFIED VIA mysql_old_password USING '0123456789abcdef'",
    ),
    "parsec": (
        "INSTALL PLUGIN IF NOT EXISTS ed25519 SONAME 'auth_ed25519'",
        "CREATE USER lacked IDENTIFIED VIA ed25519 USING PASSWORD('x')",
    ),
}


@pytest.mark.parametrize("plugin", LACKED)
def test_a_login_plugin_that_we_lack_is_told_with_the_way_out(
    plugin: str, mariadb: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mariadb.sql(*LACKED[plugin])
    if plugin == "parsec":  # the server's real question, under a name that PyMySQL does not have
        process = Connection._process_auth  # type: ignore[attr-defined]
        monkeypatch.setattr(
            Connection, "_process_auth", lambda self, _, *rest: process(self, b"parsec", *rest)
        )
    lacked = Endpoint("a", mariadb.host, mariadb.port, "lacked", PASSWORD)
    with pytest.raises(SourceError, match=rf"shard a at .*'lacked'.*{plugin}.*ALTER USER"):
        connect(lacked)
    mariadb.sql("DROP USER lacked")


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
def test_a_password_is_not_sent_in_clear_without_tls(plugin: str) -> None:
    with asking(plugin) as (port, answers):
        with pytest.raises(SourceError, match=rf"shard a at .*{plugin}.*set tls"):
            connect(Endpoint("a", "127.0.0.1", port, "trusting", "not in clear"))
        said = answers.result(timeout=PATIENCE_SECONDS)
    assert b"trusting" in said, "the login had begun"
    assert b"not in clear" not in said


@contextmanager
def asking(plugin: str) -> Iterator[tuple[int, Future[bytes]]]:
    """A port where somebody in a server's place answers one login with an AuthSwitchRequest for a plugin, and all
    that was said to it until its end."""
    greeting = b"\x0a10.11.0-MariaDB\0" + struct.pack("<I8sxHBHHB10x", 1, b"s" * 8, 0xF7FF, 45, 2, 0x8, 21)
    greeting += b"s" * 12 + b"\0mysql_native_password\0"
    switch = b"\xfe" + plugin.encode() + b"\0\x04Password: "

    def serve() -> bytes:
        session, _ = listener.accept()
        with session:
            session.settimeout(PATIENCE_SECONDS)
            session.sendall(len(greeting).to_bytes(3, "little") + b"\0" + greeting)
            said = session.recv(65536)
            session.sendall(len(switch).to_bytes(3, "little") + b"\2" + switch)
            while more := session.recv(65536):
                said += more
        return said

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(PATIENCE_SECONDS)
        yield listener.getsockname()[1], pool.submit(serve)


def test_the_server_ends_a_statement_before_the_socket_gives_up(shard: PrivateServer) -> None:
    endpoint = endpoint_of(shard)
    with connect(endpoint) as session, session.cursor() as cursor:
        limit = "@@max_execution_time / 1000" if on_mysql() else "@@max_statement_time"
        cursor.execute(f"SELECT {limit}")
        (seconds,) = cursor.fetchone() or (0,)
        given_up: float = session._sock.gettimeout()  # type: ignore[attr-defined]
    assert 0 < seconds <= given_up - 30


def test_a_large_table_is_read_whatever_the_global_limit_of_a_join(
    own: PrivateServer, fresh_schema: Callable[..., str], small_joins: None
) -> None:
    schema = fresh_schema(own)
    own.sql(
        "SET sql_big_selects = 1",
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t SELECT seq FROM seq_1_to_100",
        "ANALYZE TABLE t",
        database=schema,
    )
    endpoint = endpoint_of(own)
    select = f"SELECT COUNT(DISTINCT id) FROM {schema}.t"
    with (
        closing(own.connect("catchment")) as session,
        session.cursor() as cursor,
        pytest.raises(ServerSaid, match="1104"),
        module.mapped(endpoint),
    ):
        cursor.execute(select)
    with connect(endpoint) as session, session.cursor() as cursor:
        cursor.execute(select)
        assert cursor.fetchone() == (100,)


@pytest.fixture
def small_joins(own: PrivateServer) -> Iterator[None]:
    """The server's new sessions may look at ten rows."""
    own.sql("SET GLOBAL max_join_size = 10")
    yield
    own.sql("SET GLOBAL max_join_size = DEFAULT")


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        ((5, 7, 44), {"information_schema_stats_expiry", "use_secondary_engine"}),
        ((8, 0, 12), {"use_secondary_engine"}),
        ((8, 0, 13), set()),
    ],
)
def test_only_what_a_version_has_is_pinned(version: tuple[int, ...], lacks: set[str]) -> None:
    newer = {"information_schema_stats_expiry", "use_secondary_engine"}
    assert newer - pinned._settings(version).keys() == lacks


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_login_sets_reads_back_and_asks_who_answers_in_two_statements(
    own: PrivateServer, snapshots: bool
) -> None:
    with own.connect() as watching, watching.cursor() as cursor:

        def now(status: str) -> int:
            cursor.execute(f"SHOW GLOBAL STATUS LIKE '{status}'")
            ((_, value),) = cursor.fetchall()
            return int(value)

        # A server counts the farewell of a session, too, which may come after its client has gone on.
        until("other sessions are gone", lambda: now("Threads_connected") == 1)
        before = now("Questions")
        session = connect(endpoint_of(own), snapshots=snapshots)
        after = now("Questions")
        session.close()
    assert after - before - 1 == 2
    assert session.server.server_id == own.server_id
    expected = "REPEATABLE-READ" if snapshots else "READ-COMMITTED"
    with (
        connect(endpoint_of(own), session.server, snapshots=snapshots) as again,
        again.cursor() as cursor,
    ):
        isolation = "@@transaction_isolation" if on_mysql() else "@@tx_isolation"
        cursor.execute(f"SELECT {isolation}, @@autocommit, @@character_set_client")
        assert cursor.fetchone() == (expected, 1, "utf8mb4")
    other = msgspec.structs.replace(session.server, server_id=own.server_id + 1)
    with pytest.raises(OtherServer, match="is now server_id"):
        connect(endpoint_of(own), other)
