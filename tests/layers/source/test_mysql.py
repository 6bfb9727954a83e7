"""What is asked of a MySQL server: logins, settings of sessions, where the log stands, what is still hidden."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from catchment.model.errors import SourceError
from catchment.model.gtidset import GtidSet
from catchment.model.position import LogOffset, Xid
from catchment.model.source import Endpoint, Tls
from catchment.model.table import TableId
from catchment.source.catalog import list_tables, read_table
from catchment.source.offsets import (
    ask_resets,
    kept_seconds,
    log_files,
    open_xa,
    snapshot_offset,
    snapshot_session,
)
from catchment.source.pending import ask_pending, must_know_pending
from catchment.source.prove import sealed_by_mysql
from catchment.source.session import connect
from tests.world.held import held_commit, mysql_options, release
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

MakeSchema = Callable[..., str]


@pytest.fixture(params=["mysql_server", "mysql_97_server"], ids=["8.0", "9.7"])
def server(request: pytest.FixtureRequest) -> PrivateMySQL:
    found: PrivateMySQL = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def holding(mysql_97_build: Build) -> Iterator[PrivateMySQL]:
    """A server whose commits can be held for as long as a test wants: by semi-sync."""
    with PrivateMySQL(mysql_97_build, server_id=211, settings=mysql_options(mysql_97_build)) as server:
        server.sql("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
        yield server


def endpoint(server: PrivateMySQL, user: str = "catchment", tls: Tls | None = None) -> Endpoint:
    password = server.password if user == "catchment" else "secret"
    return Endpoint("a", server.host, server.port, user, password, tls)


def _cipher(where: Endpoint) -> str:
    with connect(where) as session, session.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        row = cursor.fetchone()
    return str(row[1]) if row else ""


def test_login_with_and_without_tls_the_first_time_and_from_the_cache(server: PrivateMySQL) -> None:
    ca = str(server.datadir / "ca.pem")
    for tls in (None, Tls(ca=ca, verify=False)):
        server.sql("FLUSH PRIVILEGES")  # empties the cache: the whole password is asked for (MySQL manual)
        for _ in range(2):
            assert bool(_cipher(endpoint(server, tls=tls))) == (tls is not None)
    with pytest.raises(SourceError, match="REPLICATION CLIENT"):
        connect(Endpoint("a", server.host, server.port, "catchment", "wrong"))


def test_login_with_the_old_kind_of_password(mysql_server: PrivateMySQL) -> None:
    mysql_server.sql("CREATE USER old IDENTIFIED WITH mysql_native_password BY 'secret'")
    try:
        for tls in (None, Tls(ca=str(mysql_server.datadir / "ca.pem"), verify=False)):
            assert bool(_cipher(endpoint(mysql_server, "old", tls))) == (tls is not None)
    finally:
        mysql_server.sql("DROP USER old")


def test_sessions_are_pinned_and_know_the_server(server: PrivateMySQL) -> None:
    server.sql("SET GLOBAL sql_select_limit = 1", "SET GLOBAL transaction_isolation = 'READ-UNCOMMITTED'")
    try:
        with connect(endpoint(server)) as session:
            assert session.mysql_version == server.build.version
            with session.cursor() as cursor:
                cursor.execute("SELECT @@sql_select_limit, @@transaction_isolation, @@max_execution_time")
                assert cursor.fetchone() == (2**64 - 1, "READ-COMMITTED", 300_000)
            found = session.server
            ((uuid,),) = server.sql("SELECT @@server_uuid")
            assert (found.server_id, found.port, found.uuid) == (server.server_id, server.port, uuid)
            assert found.mysql
    finally:
        server.sql("SET GLOBAL sql_select_limit = DEFAULT", "SET GLOBAL transaction_isolation = DEFAULT")


def test_where_the_log_stands(server: PrivateMySQL) -> None:
    where = endpoint(server)
    with closing(snapshot_session(where)) as session:
        before = snapshot_offset(session)
        assert before == LogOffset(*server.log_end())
        server.sql("CREATE DATABASE moved", "DROP DATABASE moved", "FLUSH BINARY LOGS")
        after = snapshot_offset(session)
        assert after.number == before.number + 1
        files = log_files(session)
        assert list(files)[-1] == after.file
        assert files[after.file] == after.offset
        assert kept_seconds(session) == 2_592_000
        first = ask_resets(session)
        assert ask_resets(session).count == first.count


def test_a_reset_is_counted(mysql_80_build: Build) -> None:
    with PrivateMySQL(mysql_80_build) as server, closing(snapshot_session(endpoint(server))) as session:
        before = ask_resets(session).count
        # While its session ends, MySQL counts what it said twice for a moment: once with it, once in the sum.
        with closing(server.connect()) as resetting, resetting.cursor() as cursor:
            cursor.execute("RESET MASTER")
            assert ask_resets(session).count == before + 1


def test_open_xa_transactions_and_who_may_see_them(server: PrivateMySQL, fresh_schema: MakeSchema) -> None:
    schema = fresh_schema(server)
    server.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    where = endpoint(server)
    xid = "X'ff00',X'62',7"
    server.sql(f"XA START {xid}", f"INSERT INTO {schema}.t VALUES (1)", f"XA END {xid}", f"XA PREPARE {xid}")
    try:
        with closing(snapshot_session(where)) as session:
            assert open_xa(session) == [Xid(7, b"\xff\x00", b"b")]
            pending = must_know_pending(session)
            assert pending.xids == {Xid(7, b"\xff\x00", b"b")}
            assert not pending.over(pending)
    finally:
        server.sql(f"XA ROLLBACK {xid}")
    with closing(snapshot_session(where)) as session:
        assert open_xa(session) == []


def test_without_gtids_nothing_is_proven(mysql_80_build: Build) -> None:
    settings = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    with PrivateMySQL(mysql_80_build, settings=settings) as server:
        where = endpoint(server)
        with closing(snapshot_session(where)) as session:
            assert ask_pending(session) is None
            with pytest.raises(
                SourceError, match=r"gtid_mode is not ON: .*OFF_PERMISSIVE, ON_PERMISSIVE and ON"
            ):
                must_know_pending(session)
            found, end = session.server, snapshot_offset(session)
            assert sealed_by_mysql(where, found, None, end) is None


def test_catalog(server: PrivateMySQL, fresh_schema: MakeSchema) -> None:
    schema = fresh_schema(server)
    server.sql(
        f"USE {schema}",
        "CREATE TABLE t (a INT NOT NULL, b VARCHAR(20) COLLATE utf8mb4_0900_as_cs DEFAULT (UPPER('x')), "
        "c INT AS (a + 1) STORED, d INT NOT NULL, UNIQUE functional ((a + 1)), UNIQUE prefix (b(3)), "
        "UNIQUE whole (d, a))",
        "INSERT INTO t (a, b, d) VALUES (1, 'x', 2), (3, 'y', 4)",
        "CREATE VIEW v AS SELECT * FROM t",
    )
    where = endpoint(server)
    with connect(where) as session:
        found = list_tables(session, lambda table: table.schema == schema)
        assert found == {TableId(schema, "t"): 2}
        table = read_table(session, TableId(schema, "t"))
    assert [column.name for column in table.columns] == ["a", "b", "c", "d"]
    assert table.key == ("d", "a")


def test_a_held_commit_is_not_sealed(holding: PrivateMySQL) -> None:
    where = endpoint(holding)
    with closing(snapshot_session(where)) as session:
        server = session.server
        before = snapshot_offset(session)
        assert sealed_by_mysql(where, server, None, before) == before
        held = held_commit(holding, "INSERT INTO d.t VALUES (1, 1)", timeout_ms=60_000)
        try:
            end = snapshot_offset(session)
            assert end != before
            assert holding.sql("SELECT * FROM d.t") == []
            pending = must_know_pending(session)
            assert pending.gtids != GtidSet()
            assert sealed_by_mysql(where, server, before, end) == before
            assert held.held
            held.release()
        finally:
            release(holding)
        assert pending.over(must_know_pending(session))
        assert sealed_by_mysql(where, server, before, end) == end
        assert holding.sql("SELECT * FROM d.t") == [(1, 1)]


def test_a_transaction_that_began_later_does_not_delay_a_seal(holding: PrivateMySQL) -> None:
    where = endpoint(holding)
    with closing(snapshot_session(where)) as session:
        pending = must_know_pending(session)
        held = held_commit(holding, "INSERT INTO d.t VALUES (2, 1)", timeout_ms=60_000)
        try:
            assert pending.over(must_know_pending(session))
            held.release()
        finally:
            release(holding)
