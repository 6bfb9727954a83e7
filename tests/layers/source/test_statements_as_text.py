"""Statements that real servers log as text: none that changes a chosen row passes, others do with the grants for it."""

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkTask, Nowhere, Target
from catchment.model.errors import Unsupported
from catchment.model.position import GtidList, LogOffset, Position, Server
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.stored import AllStored
from catchment.model.table import TableId
from catchment.readers.checks import alterations
from catchment.readers.chunk_images import ChunkImages, spoiled_by
from catchment.schema.events import SchemaEvents
from catchment.schema.names import without_marks
from catchment.schema.shape import first_shape
from catchment.source import stored_at
from catchment.source.catalog import read_table
from catchment.source.log import read_facts, read_log
from catchment.source.objects import read_objects
from catchment.source.session import Session, connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

T = TableId("shop", "t")
USER = "catchment@'%'"

OBJECTS = [
    "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT)", "INSERT INTO shop.t VALUES (1, 0), (2, 0), (3, 0)",
    "CREATE TABLE shop.o (id INT AUTO_INCREMENT PRIMARY KEY, a INT)", "CREATE TABLE shop.plain (id INT)",
    "CREATE TABLE shop.parent (id INT PRIMARY KEY)", "CREATE DATABASE IF NOT EXISTS away",
    "CREATE TABLE shop.audit (a INT)", "CREATE VIEW shop.v AS SELECT * FROM shop.t WHERE 'it''s' <> 'x\\\\'",
    "CREATE VIEW away.vv AS SELECT id, a FROM shop.v", "CREATE TABLE away.plain (id INT)",
    "CREATE TRIGGER shop.tr AFTER INSERT ON shop.o FOR EACH ROW INSERT INTO audit VALUES (LENGTH('it\\'s'))",
    "CREATE TRIGGER shop.au BEFORE INSERT ON shop.audit FOR EACH ROW UPDATE v SET a = a + 1 WHERE '\\\\' <> ''",
    "CREATE FUNCTION shop.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE t SET a = a + 1; RETURN 7; END",
    "CREATE FUNCTION away.`fü`() RETURNS INT DETERMINISTIC MODIFIES SQL DATA RETURN shop.f()",
    "CREATE FUNCTION shop.g() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO plain VALUES (1); "
    "RETURN 7; END",
    "CREATE PROCEDURE shop.p() BEGIN UPDATE away.vv SET a = a + 1; END",
    "CREATE PROCEDURE shop.pv(x INT) INSERT INTO o (a) VALUES (x)",
    "CREATE TRIGGER shop.up AFTER UPDATE ON shop.parent FOR EACH ROW CALL pv(NEW.id)",
    "INSERT INTO shop.parent VALUES (1)",
]  # fmt: skip
PACKAGE = [
    "SET sql_mode = ORACLE", "CREATE PACKAGE shop.pkg AS PROCEDURE go; FUNCTION fu RETURN INT DETERMINISTIC; END",
    "CREATE PACKAGE BODY shop.pkg AS PROCEDURE go AS BEGIN UPDATE v SET a = a + 1; END; "
    "FUNCTION fu RETURN INT DETERMINISTIC AS BEGIN UPDATE shop.v SET a = a + 1; RETURN 1; END; END",
]  # fmt: skip
CHANGING = [
    "UPDATE t SET a = a + 1", "/* why */ UPDATE t SET a = a + 1", "-- why\nDELETE FROM shop.t WHERE id = 3",
    "UPDATE v SET a = a + 1",
    "INSERT INTO away.vv VALUES (99, 1)", "REPLACE INTO v VALUES (1, 99)", "DELETE FROM v WHERE id = 2",
    "INSERT INTO o (a) VALUES (1)",
    "INSERT INTO plain SELECT f()", "UPDATE plain SET id = f()", "SELECT f()", "DO f()", "SET @x = f()",
    "DO away.FU()",
    "INSERT INTO plain VALUES (away.`fü`())", "CALL p()", "CALL pv(1)", "UPDATE parent SET id = id + 1",
    "DELETE FROM plain WHERE f() = 7",
    "CREATE TABLE made AS SELECT f() AS a", "ANALYZE UPDATE t SET a = a + 1",
    "ANALYZE FORMAT=JSON UPDATE v SET a = a + 1",
    "ANALYZE DELETE FROM t WHERE id = 1", "ANALYZE INSERT INTO o (a) VALUES (1)",
    "ANALYZE REPLACE INTO t VALUES (1, 77)",
    "SET STATEMENT max_statement_time=9 FOR ANALYZE UPDATE t SET a = a + 1", "EXPLAIN ANALYZE SELECT f()",
    "SET STATEMENT max_statement_time=9 FOR DELETE FROM v WHERE id = 1",
    "BEGIN NOT ATOMIC UPDATE away.vv SET a = a + 1; END",
    "EXECUTE IMMEDIATE 'UPDATE v SET a = a + 1'", "/*!50000 UPDATE */ v /*M! SET a = a + 1 */",
    "/*!80000 UPDATE v SET a = a + 1 */",
    "UPDATE\vv\fSET a = a + 1", "UPDATE .v SET a = a + 1", "WITH c AS (SELECT 1 AS x) UPDATE v, c SET a = a + 1",
    "UPDATE plain, v SET v.a = v.a + 1", "DELETE v FROM v JOIN t USING (id)", "SELECT pkg.fu()", "DO shop.pkg.fu()",
    "CALL pkg.go()",
    "VALUES (f())", "(SELECT f())", "TABLE v", "INSERT INTO o (a) VALUES ('1') -- ' \n",
    "INSERT INTO `o` (`a`) VALUES (1), (2)",
    "INSERT INTO plain VALUES (0), (g()), (f())", "CREATE TEMPORARY TABLE made2 SELECT f() AS a",
]  # fmt: skip
LEAVING = [
    "INSERT INTO plain VALUES (1), (2)", "UPDATE plain SET id = id + 1", "DELETE FROM `away`.`plain`", "DO g()",
    "SELECT shop.g()",
    "DO RELEASE_LOCK('x')", "INSERT INTO plain VALUES (g())", "CREATE TEMPORARY TABLE tmp (a INT)",
    "INSERT INTO tmp VALUES (1)",
    "INSERT INTO away.plain SELECT 't' <> 'v'", "TRUNCATE plain",
    "DROP TEMPORARY TABLE tmp",
    "ANALYZE TABLE t", "CREATE TABLE made AS SELECT g() AS a", "DROP TABLE made",
    "SET STATEMENT max_statement_time=9 FOR DO g()",
]  # fmt: skip


@pytest.fixture(scope="module")
def mariadb() -> Iterator[PrivateServer]:
    with PrivateServer(server_id=9, settings={"log_bin_trust_function_creators": "ON"}) as server:
        yield server


@pytest.fixture(scope="module")
def mysql_80(mysql_80_build: Build) -> Iterator[PrivateServer]:
    settings = {
        "log_bin_trust_function_creators": "ON",
        "gtid_mode": "OFF",
        "enforce_gtid_consistency": "OFF",
    }
    with PrivateMySQL(mysql_80_build, server_id=9, settings=settings) as server:
        yield server


class Shop:
    """A server with views, triggers and routines over one chosen table."""

    def __init__(self, server: PrivateServer) -> None:
        self.server = server
        self.mysql = isinstance(server, PrivateMySQL)
        self.endpoint = Endpoint("s", server.host, server.port, "catchment", server.password)
        server.sql(
            "DROP DATABASE IF EXISTS shop",
            "DROP DATABASE IF EXISTS away",
            "CREATE DATABASE shop",
            "CREATE DATABASE away",
        )
        server.sql("SET NAMES utf8mb4", "USE shop", *OBJECTS)
        if not self.mysql:
            server.sql("USE shop", *PACKAGE)
        self.may("SHOW VIEW, TRIGGER")
        with connect(self.endpoint) as session:
            self.known = session.server
        stored_at.forget()

    def may(self, privileges: str) -> None:
        """Give the feed's user these privileges besides its own, and no others."""
        self.server.sql(f"REVOKE SHOW VIEW, TRIGGER ON *.* FROM {USER}")
        if privileges:
            self.server.sql(f"GRANT {privileges} ON *.* TO {USER}")

    def rows(self) -> list[tuple[object, ...]]:
        """The chosen rows."""
        return sorted(self.server.sql("SELECT id, a FROM shop.t"))

    def end(self) -> LogOffset:
        """Where the log ends."""
        return LogOffset(*self.server.log_end())

    def run(self, binlog_format: str, *statements: str) -> bool:
        """Run statements in one session; whether the server took them."""
        with closing(self.server.connect()) as session, session.cursor() as cursor:
            cursor.execute("SET NAMES utf8mb4")
            cursor.execute("USE shop")
            cursor.execute(f"SET binlog_format = {binlog_format}")
            for statement in statements:
                try:
                    cursor.execute(statement)
                    cursor.fetchall()
                except pymysql.err.MySQLError as refused:
                    if refused.args[0] in (2006, 2013):
                        raise
                    return False
        return True

    def read(self, start: LogOffset, stop: LogOffset | None = None) -> tuple[Stretch, int]:
        """The log, and how many images of chosen rows it holds."""
        with read_log(self.endpoint, self.known, start, stop or self.end(), Wanted({T: ("id",)})) as log:
            images = sum(read.batch.num_rows for read in log.images())
        return log.stretch, images

    def check(self, start: LogOffset, stop: LogOffset | None = None) -> int:
        """Judge the log; images of chosen rows in it. Raises Unsupported."""
        stretch, images = self.read(start, stop)
        events = SchemaEvents([T]).of(stretch.facts)
        alterations("s", [T], StoredAt(self.endpoint, self.known, start, stretch.at, events))
        return images

    def stops(self, start: LogOffset) -> bool:
        """Whether the log is refused for a statement that it holds as text."""
        try:
            self.check(start)
        except Unsupported as stopped:
            return "that the log holds as text" in str(stopped)
        return False


@pytest.fixture(params=["mariadb", pytest.param("mysql_80", marks=pytest.mark.wide)])
def shop(request: pytest.FixtureRequest) -> Shop:
    return Shop(request.getfixturevalue(request.param))


@pytest.mark.parametrize("binlog_format", ["STATEMENT", "MIXED"])
def test_no_statement_that_changes_a_chosen_row_passes(shop: Shop, binlog_format: str) -> None:
    changed = 0
    for statement in CHANGING:
        shop.run("ROW", "DELETE FROM t", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
        before, start = shop.rows(), shop.end()
        shop.run(binlog_format, *(["SET sql_mode = ORACLE"] if "pkg" in statement else []), statement)
        if shop.rows() == before:
            continue
        changed += 1
        assert shop.stops(start) or shop.read(start)[1], f"{statement!r} passed"
    assert changed >= (20 if shop.mysql else 35)


@pytest.mark.parametrize("binlog_format", ["STATEMENT", "MIXED"])
def test_statements_that_leave_chosen_rows_alone_pass_with_the_grants(shop: Shop, binlog_format: str) -> None:
    start = shop.end()
    taken = [statement for statement in LEAVING if shop.run(binlog_format, statement)]
    assert len(taken) >= 10
    assert shop.check(start) == 0


@pytest.mark.parametrize(
    ("granted", "name"), [("", "plain"), ("SHOW VIEW", "plain"), ("TRIGGER", "over_plain")]
)
def test_without_a_grant_the_message_names_it(shop: Shop, granted: str, name: str) -> None:
    shop.server.sql("CREATE VIEW away.over_plain AS SELECT * FROM away.plain")
    shop.may(granted)
    start = shop.end()
    shop.run("STATEMENT", f"INSERT INTO away.{name} VALUES (1)")
    with pytest.raises(Unsupported, match=r"GRANT .*ON \*\.\*") as raised:
        shop.check(start)
    for privilege in ("SHOW VIEW", "TRIGGER"):
        assert (f"{privilege}" in str(raised.value)) is (privilege != granted)
    shop.may("SHOW VIEW, TRIGGER")
    assert shop.check(start) == 0, "which loses nothing"


def test_text_in_schema_mysql_passes_with_the_privileges_that_the_docs_name(shop: Shop) -> None:
    """As providers write it. A view there, and a table that a foreign key of a chosen one refers to, are no such."""
    made = [
        "CREATE TABLE mysql.beat (id INT PRIMARY KEY, value BIGINT)", "CREATE VIEW mysql.seen AS SELECT * FROM shop.t",
        "CREATE TABLE mysql.up (id INT PRIMARY KEY)", "INSERT INTO mysql.up VALUES (0)",
    ]  # fmt: skip
    shop.may("")
    shop.server.sql(
        *made, "ALTER TABLE shop.t ADD FOREIGN KEY (a) REFERENCES mysql.up (id) ON DELETE CASCADE"
    )
    with closing(shop.server.connect()) as session, session.cursor() as cursor:
        with pytest.raises(pymysql.err.MySQLError) as refused:
            cursor.execute(
                "CREATE TRIGGER mysql.no AFTER INSERT ON mysql.beat FOR EACH ROW DELETE FROM shop.t"
            )
        assert refused.value.args[0] == 1465
        with pytest.raises(pymysql.err.MySQLError) as refused:
            cursor.execute("RENAME TABLE shop.o TO mysql.o")
        assert refused.value.args[0] == 1435, "a table that has a trigger"
    start = shop.end()
    beat = "INSERT INTO mysql.beat (id, value) VALUES (1, 17) ON DUPLICATE KEY UPDATE value = 17"
    texts = (beat, "DELETE FROM mysql.beat WHERE id = 2", "USE mysql", "UPDATE beat SET value = UNIX_TIMESTAMP(NOW())",
             "TRUNCATE mysql.beat", "FLUSH PRIVILEGES")  # fmt: skip
    assert shop.run("STATEMENT", *texts)
    assert shop.check(start) == 0
    for statement in (
        "UPDATE mysql.seen SET a = 0", "DELETE FROM mysql.up", "INSERT INTO mysql.beat SELECT 3, id FROM away.plain",
        "INSERT INTO away.plain VALUES (1)", "INSERT INTO mysql.beat VALUES (4, f())",
    ):  # fmt: skip
        start = shop.end()
        assert shop.run("STATEMENT", statement), statement
        assert shop.stops(start), statement
    start = shop.end()
    assert shop.run("STATEMENT", beat)
    assert shop.run("ROW", "DROP TABLE mysql.beat", "CREATE VIEW mysql.beat AS SELECT 1")
    assert shop.stops(start), "it was a table then, which a proof of now does not know"
    shop.server.sql("ALTER TABLE shop.t DROP FOREIGN KEY t_ibfk_1", "DROP TABLE mysql.up")
    shop.server.sql("DROP VIEW mysql.seen, mysql.beat")


@pytest.mark.parametrize(
    "since",
    ["DROP VIEW v", "DROP TRIGGER tr", "CREATE OR REPLACE VIEW v AS SELECT 1 AS id", "ALTER VIEW v AS SELECT 1 AS id",
     "DROP FUNCTION f", "DROP TABLE o", "RENAME TABLE o TO o9", "ALTER TABLE o RENAME TO o9",
     "RENAME TABLE audit TO a9",
     "DROP DATABASE away", "DROP FUNCTION away.`fü`", "DROP TABLE audit"],
)  # fmt: skip
def test_the_catalog_of_now_proves_nothing_where_it_was_another(shop: Shop, since: str) -> None:
    start = shop.end()
    for statement in (
        "INSERT INTO o (a) VALUES (1)", "UPDATE v SET a = a + 1", "DO away.`fü`()", "UPDATE away.vv SET a = a + 1",
    ):  # fmt: skip
        shop.run("STATEMENT", statement)
    stop = shop.end()
    assert shop.run("ROW", since)
    with pytest.raises(Unsupported, match="that the log holds as text"):
        shop.check(start, stop)
    with pytest.raises(Unsupported, match="that the log holds as text"):
        shop.check(start)


@pytest.mark.parametrize("since", ["DROP VIEW v", "DROP TRIGGER tr", "RENAME TABLE o TO o9"])
def test_each_statement_is_judged_by_what_came_behind_it(shop: Shop, since: str) -> None:
    texts = {"DROP VIEW v": "DELETE FROM v WHERE id = 1", "DROP TRIGGER tr": "INSERT INTO o (a) VALUES (1)"}
    shop.run("ROW", since)
    start = shop.end()
    shop.run("STATEMENT", "INSERT INTO plain VALUES (1)", texts.get(since, "INSERT INTO o9 VALUES (8, 1)"))
    shop.run("ROW", "CREATE VIEW away.later AS SELECT 1", "CREATE TABLE shop.later (id INT)")
    if since != "RENAME TABLE o TO o9":
        assert shop.check(start) == 0


@pytest.mark.parametrize(
    ("granted", "text"),
    [("SHOW VIEW, TRIGGER", "INSERT INTO plain VALUES (1)"), ("", "DELETE FROM mysql.event")],
)
def test_a_backlog_is_read_to_its_end_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, granted: str, text: str
) -> None:
    shop.may(granted)
    shop.server.sql("CREATE TABLE IF NOT EXISTS mysql.event (id INT)")  # MariaDB has it
    places = [shop.end()]
    for _ in range(5):
        shop.run("STATEMENT", text)
        places.append(shop.end())
    reads: list[tuple[LogOffset, LogOffset | None]] = []
    catalogs: list[AllStored] = []

    def counted(endpoint: Endpoint, server: Server, start: LogOffset, stop: LogOffset | None) -> Stretch:
        reads.append((start, stop))
        return read_facts(endpoint, server, start, stop)

    def asked(session: Session) -> AllStored:
        catalogs.append(read_objects(session))
        return catalogs[-1]

    monkeypatch.setattr(stored_at, "read_facts", counted)
    monkeypatch.setattr(stored_at, "read_objects", asked)
    for start, stop in pairwise(places):
        shop.check(start, stop)
    assert len(catalogs) == 1
    assert reads == [(places[1], None), (places[-1], None)]
    shop.run("STATEMENT", text)
    shop.check(places[-1])
    assert (len(catalogs), len(reads)) == (1, 2), "the proof goes on with the log"
    shop.may("SHOW VIEW, TRIGGER")
    start = shop.end()
    shop.run("STATEMENT", "CREATE TRIGGER late AFTER INSERT ON plain FOR EACH ROW UPDATE t SET a = 9")
    shop.run("STATEMENT", "INSERT INTO plain VALUES (1)")
    with pytest.raises(Unsupported, match=r"trigger shop\.late"):
        shop.check(start)
    assert len(catalogs) == 2


def test_names_that_the_server_takes_for_one_another_are_folded_alike(mariadb: PrivateServer) -> None:
    """All characters that utf8mb3_general_ci holds to be equal to others, and all that lower case makes equal."""
    # In other blocks a character is equal to itself alone (all of the plane was asked once).
    blocks = ((0x21, 0x700), (0x1E00, 0x2500), (0xFF00, 0x10000))
    letters = [chr(code) for first, end in blocks for code in range(first, end)]
    weights: dict[str, set[str]] = {}
    with closing(mariadb.connect()) as session, session.cursor() as cursor:
        for first in range(0, len(letters), 500):
            some = letters[first : first + 500]
            columns = ", ".join(
                ["HEX(WEIGHT_STRING(CONVERT(%s USING utf8mb3) COLLATE utf8mb3_general_ci)), LOWER(%s)"]
                * len(some)
            )
            cursor.execute(f"SELECT {columns}", [letter for letter in some for _ in range(2)])
            row = cursor.fetchone()
            assert row is not None
            for letter, weight, lower in zip(some, row[::2], row[1::2], strict=True):
                weights.setdefault(str(weight), set()).add(letter)
                assert without_marks(lower) == without_marks(letter)
    unequal = {
        weight: together
        for weight, together in weights.items()
        if len({without_marks(letter) for letter in together}) > 1
    }
    assert unequal == {}


def test_all_that_is_stored_is_read_as_it_was_written(shop: Shop) -> None:
    with connect(shop.endpoint) as session:
        catalog = read_objects(session)
    assert catalog.lacking == ()
    mine = {one.what: one for one in catalog.stored if one.schema in ("shop", "away")}
    assert len(mine) == (10 if shop.mysql else 11)
    assert "it\\'s" in (mine["trigger shop.tr"].text or "")
    assert all(one.text for one in mine.values())


def test_a_foreign_key_that_cascades_leads_to_its_child(shop: Shop) -> None:
    shop.run(
        "ROW", "CREATE TABLE up (id INT PRIMARY KEY)", "INSERT INTO up VALUES (0)",
        "ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (a) REFERENCES up (id) ON DELETE CASCADE",
    )  # fmt: skip
    start = shop.end()
    shop.run("STATEMENT", "DELETE FROM up")
    assert shop.rows() == []
    with pytest.raises(Unsupported, match=r"shop\.t by foreign key fk of shop\.t"):
        shop.check(start)


def test_chunks_are_spoiled_by_text_that_may_reach_their_table_and_no_other(shop: Shop) -> None:
    with connect(shop.endpoint) as session:
        shape = first_shape(read_table(session, T))

    def spoiled(start: LogOffset) -> dict[TableId, str]:
        stretch, _ = shop.read(start)
        stored = StoredAt(shop.endpoint, shop.known, start, stretch.at, SchemaEvents([T]).of(stretch.facts))
        state = ShardState(Position(start, 0, shop.known, GtidList()))
        target = Target(Nowhere(), ("s",), 1, "x")
        task = ChunkTask(shop.endpoint, state, start, stretch.at, (), (shape,), target)
        return spoiled_by(stretch, stored, ChunkImages(task, {T: (shape, ())}))

    start = shop.end()
    shop.run("STATEMENT", "INSERT INTO plain VALUES (1)", "DO g()")
    assert spoiled(start) == {}
    shop.run("STATEMENT", "UPDATE away.vv SET a = 1")
    assert "statement that the log holds as text" in spoiled(start)[T]
    shop.may("")
    stored_at.forget()
    start = shop.end()
    shop.run("STATEMENT", "INSERT INTO plain VALUES (1)")
    assert "SHOW VIEW, TRIGGER" in spoiled(start)[T]


def test_privileges_of_a_role_count_while_it_is_active(shop: Shop) -> None:
    def seen() -> tuple[tuple[str, ...], bool]:
        with connect(shop.endpoint) as session:
            catalog = read_objects(session)
        return catalog.lacking, any(one.what == "trigger shop.tr" for one in catalog.stored)

    shop.may("")
    shop.server.sql("DROP ROLE IF EXISTS looks", "CREATE ROLE looks")
    shop.server.sql("GRANT SHOW VIEW, TRIGGER ON *.* TO looks", f"GRANT looks TO {USER}")
    assert seen() == (("SHOW VIEW", "TRIGGER"), False)
    shop.server.sql(f"SET DEFAULT ROLE looks {'TO' if shop.mysql else 'FOR'} {USER}")
    assert seen() == ((), True)
    shop.server.sql("DROP ROLE looks")
