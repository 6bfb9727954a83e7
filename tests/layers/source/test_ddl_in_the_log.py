"""What the logs of real servers say of DDL: what is followed, what stops a table, and whose rows are read."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Unsupported
from catchment.model.position import GroupKind, LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.checks import alterations
from catchment.schema.follow import Followed
from catchment.source.catalog import read_definition
from catchment.source.log import read_facts, read_log
from catchment.source.session import connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMariaDB, PrivateMySQL

T = TableId("shop", "t")
BARE = {"binlog_row_metadata": "NO_LOG", "binlog_alter_two_phase": "ON"}


@pytest.fixture(scope="module")
def mariadb() -> Iterator[PrivateServer]:
    with PrivateServer(server_id=9, settings=BARE) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb_11(mariadb_11_server: PrivateMariaDB) -> Iterator[PrivateServer]:
    with PrivateMariaDB(
        mariadb_11_server.build, server_id=9, settings={**BARE, "binlog_legacy_event_pos": "ON"}
    ) as server:
        yield server


@pytest.fixture(scope="module")
def mysql_80(mysql_80_build: Build) -> Iterator[PrivateServer]:
    with PrivateMySQL(mysql_80_build, server_id=9, settings={"binlog_row_metadata": "MINIMAL"}) as server:
        yield server


@pytest.fixture(scope="module")
def mysql_97(mysql_97_build: Build) -> Iterator[PrivateServer]:
    with PrivateMySQL(mysql_97_build, server_id=9, settings={"binlog_row_metadata": "MINIMAL"}) as server:
        yield server


class Log:
    """A table made anew, and what its log says from there on."""

    def __init__(self, server: PrivateServer) -> None:
        server.sql("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
        server.sql("CREATE TABLE shop.t (id INT PRIMARY KEY, a INT, b VARCHAR(9), KEY kb (b))")
        server.sql("CREATE TABLE shop.o (id INT PRIMARY KEY, a INT, b VARCHAR(9), KEY kb (b))")
        self.server = server
        self.endpoint = Endpoint("s", server.host, server.port, "catchment", server.password)
        self.start = LogOffset(*server.log_end())
        with connect(self.endpoint) as session:
            self.known = session.server
        self.definition = self.now()
        self.rows: list[dict[str, Any]] = []
        self.followed = Followed([T], [self.definition])

    def now(self) -> Any:
        """The definition in the catalog."""
        with connect(self.endpoint) as session:
            return read_definition(session, T)

    def read(self) -> Stretch:
        """The log since the table was made."""
        wanted = Wanted({T: ("id",)}, definitions=self.followed.now, on_ddl=self.followed.on_ddl)
        with read_log(self.endpoint, None, self.start, LogOffset(*self.server.log_end()), wanted) as log:
            for read in log.images():
                names = [column.name for column in read.table.columns]
                self.rows += read.batch.select(names).to_pylist()
        return log.stretch

    def kind_before(self, end: int) -> GroupKind:
        """The kind of the group that ends at an offset."""
        last = read_facts(self.endpoint, self.known, self.start, LogOffset(self.start.file, end)).last
        assert last is not None
        return last.kind

    def altered(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Columns added and dropped by each statement."""
        stretch = self.read()
        events = self.followed.events.of(stretch.facts)
        stored = StoredAt(self.endpoint, self.known, self.start, stretch.at, events)
        return [(a.effect.added, a.effect.dropped) for a in alterations("s", [T], stored)]


INSERT = "INSERT INTO shop.t (id, a) VALUES (1, 5)"
HARMLESS = [
    "CREATE INDEX i ON shop.t (a)", "DROP INDEX i ON shop.t", "ANALYZE TABLE shop.t", "OPTIMIZE TABLE shop.t",
    "CREATE VIEW shop.v AS SELECT * FROM shop.t", "DROP VIEW shop.v",
    "CREATE TRIGGER shop.tr AFTER INSERT ON shop.t FOR EACH ROW SET @x = 1", "DROP TRIGGER shop.tr",
    "CREATE PROCEDURE shop.p() TRUNCATE shop.t", "DROP PROCEDURE shop.p",
    "CREATE USER IF NOT EXISTS u", "GRANT SELECT ON shop.t TO u", "DROP USER u",
    "CREATE TABLE shop.y LIKE shop.t", "DROP TABLE shop.o, shop.y", "ALTER TABLE shop.t RENAME INDEX kb TO kc",
    "CREATE TEMPORARY TABLE shop.t2 (id INT)", "TRUNCATE TABLE shop.z", "FLUSH TABLES shop.t",
    "CREATE TABLE shop.z (id INT) /*!50100 PARTITION BY HASH (id) PARTITIONS 2 */",
    "ALTER TABLE shop.z TRUNCATE PARTITION ALL", "ALTER TABLE shop.t PARTITION BY HASH (id) PARTITIONS 2", INSERT,
]  # fmt: skip
NOT_FOLLOWED = "a statement changed it that Catchment does not follow"
STOPS = [
    (["TRUNCATE shop.t"], "truncated"),
    (["DROP TABLE shop.o, shop.t"], "dropped"),
    (["DROP TABLE shop.t", "CREATE TABLE shop.t (x TEXT)", "INSERT INTO shop.t VALUES ('x')"], "dropped"),
    (["RENAME TABLE shop.t TO shop.u, shop.o TO shop.t", "INSERT INTO shop.t VALUES (1, 2, 'x')"], "renamed"),
    (["ALTER TABLE shop.t MODIFY a BIGINT"], "another definition"),
    (["ALTER TABLE shop.t RENAME COLUMN a TO x"], "renamed"),
    (["ALTER TABLE shop.t ADD n INT AS (a + 1)"], "a non-NULL default was added"),
    (["ALTER TABLE shop.t PARTITION BY HASH (id) PARTITIONS 2",
      "ALTER TABLE shop.t TRUNCATE PARTITION p0"], NOT_FOLLOWED),
    (["ALTER TABLE shop.o PARTITION BY HASH (id) PARTITIONS 2",
      "ALTER TABLE shop.o EXCHANGE PARTITION p1 WITH TABLE shop.t"], f"rows|{NOT_FOLLOWED}"),
    (["DROP TABLE shop.o", "REPAIR TABLE shop.t"], NOT_FOLLOWED),
]  # fmt: skip
MARIADBS = ["mariadb", pytest.param("mariadb_11", marks=pytest.mark.wide)]
SERVERS = [*MARIADBS, "mysql_80", pytest.param("mysql_97", marks=pytest.mark.wide)]


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Log:
    return Log(request.getfixturevalue(request.param))


def try_all(server: PrivateServer, statements: Sequence[str]) -> int:
    """Run what the server does not refuse; how many it took."""
    taken = 0
    for statement in statements:
        try:
            server.sql(statement)
            taken += 1
        except pymysql.err.MySQLError as refused:
            if refused.args[0] in (2006, 2013):  # the server is gone
                raise
    return taken


@pytest.mark.parametrize("log", SERVERS, indirect=True)
def test_harmless_statements_leave_the_table_followed(log: Log) -> None:
    assert try_all(log.server, HARMLESS) >= len(HARMLESS) - 2
    assert log.altered() == []
    assert log.rows == [{"id": 1, "a": 5, "b": None}]


@pytest.mark.parametrize("log", SERVERS, indirect=True)
@pytest.mark.parametrize(("statements", "reason"), STOPS)
def test_other_statements_stop_the_table_with_the_way_out(
    log: Log, statements: list[str], reason: str
) -> None:
    log.server.sql(INSERT)
    if try_all(log.server, statements) < len(statements):
        pytest.skip(f"the server refuses {statements}")
    with pytest.raises(Unsupported, match=f"s, shop.t at .*({reason})") as raised:
        log.altered()
    assert "shop.t" in str(raised.value).partition("; ")[2]
    assert log.rows == [{"id": 1, "a": 5, "b": None}], "rows up to the statement, and none behind it"


@pytest.mark.parametrize("log", SERVERS, indirect=True)
def test_create_table_select_is_of_another_table(log: Log) -> None:
    try:
        log.server.sql("INSERT INTO shop.t VALUES (1, 5, 'x')", "CREATE TABLE shop.c SELECT * FROM shop.t")
    except pymysql.err.MySQLError:
        pytest.skip("refused with GTIDs before MySQL 8.0.21")
    assert log.altered() == []
    assert log.rows == [{"id": 1, "a": 5, "b": "x"}]
    log.server.sql("DROP TABLE shop.t", "CREATE TABLE shop.t SELECT * FROM shop.c")
    with pytest.raises(Unsupported, match="dropped"):
        log.altered()


@pytest.mark.parametrize("log", MARIADBS, indirect=True)
def test_create_or_replace_select_stops_and_its_rows_are_not_read(log: Log) -> None:
    log.server.sql(
        "INSERT INTO shop.o VALUES (1, 5, 'x')", "CREATE OR REPLACE TABLE shop.t SELECT b, a FROM shop.o"
    )
    with pytest.raises(Unsupported, match="CREATE OR REPLACE"):
        log.altered()
    assert log.rows == []


@pytest.mark.parametrize("log", SERVERS, indirect=True)
def test_alters_in_the_log_lead_to_the_catalog(log: Log) -> None:
    rows: list[dict[str, Any]] = []
    statements = [
        "ALTER TABLE shop.t ADD n INT UNSIGNED AFTER id",
        "ALTER TABLE shop.t DROP a, ADD m VARCHAR(5) CHARACTER SET latin1 FIRST",
        "ALTER TABLE shop.t ADD COLUMN d DECIMAL(9,2), ADD COLUMN j JSON NULL AFTER n, ALGORITHM=COPY",
        "ALTER TABLE shop.t ADD q TINYINT /*!50000 UNSIGNED */ /*M! NULL */",
        "ALTER TABLE shop.t ADD i INT NULL INVISIBLE",
    ]
    taken = []
    for number, statement in enumerate(statements):
        if try_all(log.server, [statement]):
            taken.append(statement)
        names = [column.name for column in log.now().columns]
        row = {name: None for name in names} | {"id": number, "n": 4294967295 - number}
        log.server.sql(f"INSERT INTO shop.t (id, n) VALUES ({row['id']}, {row['n']})")
        rows.append(row)
    assert len(log.altered()) == len(taken) >= 4
    assert [list(row) for row in log.rows] == [list(row) for row in rows]
    assert log.rows == rows
    assert [c.name for c in log.followed.now[T].columns] == [c.name for c in log.now().columns]


@pytest.mark.parametrize("log", MARIADBS, indirect=True)
def test_an_alter_in_two_phases_counts_at_its_commit(log: Log) -> None:
    server = log.server
    server.sql("INSERT INTO shop.t VALUES (1, 1, 'x'), (2, 2, 'x')")
    assert not try_all(server, ["ALTER TABLE shop.t ADD z INT, ADD UNIQUE (b), ALGORITHM=COPY"])
    server.sql("INSERT INTO shop.t VALUES (3, 3, 'y')")
    server.sql("SET STATEMENT lock_wait_timeout=9 FOR ALTER TABLE shop.t ADD n INT FIRST")
    server.sql("INSERT INTO shop.t VALUES (9, 4, 4, 'y')")
    begun = server.sql(f"SHOW BINLOG EVENTS IN '{log.start.file}' FROM {log.start.offset}")
    events = [row[5] for row in begun]
    assert [sum(phase in event for event in events) for phase in ("START ALTER", "ROLLBACK ALTER", "COMMIT ALTER")] == [
        2, 1, 1,
    ]  # fmt: skip
    kinds = [
        log.kind_before(end) for _, _, kind, _, end, text in begun if kind == "Query" and "ALTER" in text
    ]
    # A START ALTER is logged while the statement runs.
    assert kinds == [GroupKind.DDL, GroupKind.DDL, GroupKind.DDL, GroupKind.COMPLETED_DDL]
    assert log.altered() == [(("n",), ())]
    assert log.rows[:3] == [
        {"id": 1, "a": 1, "b": "x"}, {"id": 2, "a": 2, "b": "x"}, {"id": 3, "a": 3, "b": "y"},
    ]  # fmt: skip
    assert log.rows[3:] == [{"n": 9, "id": 4, "a": 4, "b": "y"}]


@pytest.mark.parametrize("log", MARIADBS, indirect=True)
def test_rows_written_during_an_alter_have_the_old_columns(log: Log) -> None:
    """With ALGORITHM=INPLACE, on 11.2 and later with COPY too, rows are written while the ALTER runs."""
    server = log.server
    server.sql("INSERT INTO shop.t SELECT seq, seq, 'x' FROM shop.seq_1_to_40000")
    algorithm = "COPY, LOCK=NONE" if isinstance(server, PrivateMariaDB) else "INPLACE, LOCK=NONE"
    alter = f"ALTER TABLE shop.t ADD n INT FIRST, FORCE, ALGORITHM={algorithm}"
    with closing(server.connect()) as session, session.cursor() as cursor:
        thread = _started(lambda: server.sql(alter))
        number = 0
        while thread.is_alive():
            number += 1
            cursor.execute("INSERT INTO shop.t (id, a) VALUES (%s, 0)", (100_000 + number,))
    server.sql("INSERT INTO shop.t (id, n) VALUES (0, 7)")
    assert log.altered() == [(("n",), ())]
    during = [row for row in log.rows if row["id"] > 100_000]
    assert len(during) == number
    assert sum("n" not in row for row in during) >= 1
    assert all(row["a"] == 0 for row in during)
    assert log.rows[-1] == {"n": 7, "id": 0, "a": None, "b": None}


def _started(work: Callable[[], object]) -> Any:

    thread = threading.Thread(target=work)
    thread.start()
    return thread
