"""What a feed does with each clause of ALTER TABLE, by the table in clauses.py, and the servers that judge it."""

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

from catchment.demo.server import PrivateServer
from catchment.model.table import Kind, TableId
from catchment.schema.ddl import HARMLESS, Columns, Effect, Stop, effect
from catchment.schema.filling import Filled
from tests.layers.schema import clauses
from tests.world.log_events import log_events

T = TableId("ddl", "t")
STRICT = 1 << 21
COLUMNS = ("id", "a", "b", "c", "j", "s")
PARENT = ("CREATE TABLE p (id INT PRIMARY KEY)", "INSERT INTO p VALUES (1), (2)")
TABLE = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), c VARCHAR(30), j JSON, s INT, KEY ka (b),"
    " CONSTRAINT known CHECK (a > -9), CONSTRAINT fk FOREIGN KEY (a) REFERENCES p (id)) DEFAULT CHARSET=utf8mb4",
    "INSERT INTO t VALUES (1, 1, 'b', 'c', '{\"a\": 1}', 1), (2, 2, 'B ', '', NULL, NULL)",
)
Cases = Mapping[str, Any]


def of(action: str, *, mysql: bool = False) -> Effect:
    return effect(f"ALTER TABLE t {action}", "ddl", [T], here={T: COLUMNS}, mysql=mysql, sql_mode=STRICT)


def _on(cases: Cases, *servers: str) -> list[Any]:
    return [one for server in servers for one in cases.get(server, ())]


def _is_as_said(action: str, said: str, *, mysql: bool) -> bool:
    did = of(action, mysql=mysql)
    if said == clauses.PASSES:
        return did == HARMLESS or (
            isinstance(did, Columns) and action.startswith("ADD v") and did.added == ("v",)
        )
    if not isinstance(did, Columns):
        return False
    match said:
        case clauses.DROPPED:
            return did == Columns(T, (), ("c",))
        case clauses.FOLLOWED:
            return bool(did.modified or did.renamed) and not (did.added or did.dropped)
    return (did.added, did.dropped, did.filled) == (("n",), (), ())


_READ: dict[Kind, Callable[[str], object]] = {
    **dict.fromkeys((Kind.BINARY, Kind.BLOB), bytes.fromhex),
    **dict.fromkeys((Kind.TEXT, Kind.ENUM, Kind.SET), str),
    **dict.fromkeys((Kind.FLOAT, Kind.DOUBLE), float),
    Kind.DATE: date.fromisoformat,
    Kind.DATETIME: datetime.fromisoformat,
    Kind.TIME: lambda text: timedelta(microseconds=int(text)),
}


def _shown(told: Filled) -> object:
    """The value as the driver gives it."""
    assert told.value is not None
    if told.type.kind is Kind.BIT:
        return int(told.value).to_bytes((told.type.length + 7) // 8, "big")
    return _READ.get(told.type.kind, Decimal)(told.value)


SAID = (
    *((cases, clauses.PASSES) for cases in (clauses.OPTIONS, clauses.INDEXES, clauses.CONSTRAINTS)),
    *((cases, clauses.PASSES) for cases in (clauses.OF_COLUMNS, clauses.PARTITIONS)),
    (clauses.DROPS, clauses.DROPPED),
    (clauses.DEFINED, clauses.FOLLOWED),
)
MYSQL, MARIADB = ("both", "mysql", "mysql 9.7"), ("both", "mariadb", "mariadb 11.8")


@pytest.mark.parametrize("mysql", [True, False])
def test_clauses_that_are_followed(mysql: bool) -> None:
    servers = MYSQL if mysql else MARIADB
    for cases, said in SAID:
        wrong = [one for one in _on(cases, *servers) if not _is_as_said(one, said, mysql=mysql)]
        assert wrong == [], said
    assert [one for one in clauses.NOT_ASKED if of(one, mysql=mysql) != HARMLESS] == []
    added = [f"ADD COLUMN n {one}" for one in _on(clauses.NULLS, *servers)]
    assert [one for one in added if not _is_as_said(one, clauses.NULL, mysql=mysql)] == []
    for one, value in (item for kind in servers for item in clauses.VALUES.get(kind, {}).items()):
        did = of(f"ADD n {one}", mysql=mysql)
        assert isinstance(did, Columns), one
        (told,) = did.filled
        # The driver shows a VECTOR of MySQL that has no byte as a text.
        wanted = b"" if told.type.kind is Kind.BLOB and value == "" else value
        assert (told.column, _shown(told)) == ("n", wanted), one


@pytest.mark.parametrize("mysql", [True, False])
def test_clauses_that_copy_the_table(mysql: bool) -> None:
    for action, why in clauses.COPIED.items():
        did = of(action, mysql=mysql)
        assert isinstance(did, Stop), (action, did)
        assert why in did.reason, (action, did.reason)


def test_x_and_quotes_are_a_number_on_mysql_alone() -> None:
    """MariaDB takes x'31' for the text '1' where a number is asked for."""
    assert isinstance(of("ADD n INT DEFAULT x'31'"), Stop)
    did = of("ADD n INT DEFAULT x'31'", mysql=True)
    assert isinstance(did, Columns)
    assert [told.value for told in did.filled] == ["49"]


def test_an_empty_text_may_mean_null() -> None:
    """EMPTY_STRING_IS_NULL of MariaDB makes NULL of it."""
    sql = "ALTER TABLE t ADD n VARCHAR(9) DEFAULT ''"
    assert isinstance(effect(sql, "ddl", [T], sql_mode=0), Columns)
    assert isinstance(effect(sql, "ddl", [T], sql_mode=1 << 32), Stop)
    assert isinstance(effect(sql, "ddl", [T]), Stop)


@pytest.mark.parametrize("kind", ["UUID", "INET6", "INET4"])
def test_a_type_that_the_log_does_not_show_has_to_be_told(kind: str) -> None:
    """The log has it as BINARY. In the sql_mode ORACLE names of types mean others; where none is known, they may."""
    sql = f"ALTER TABLE t ADD n {kind} NULL"
    did = effect(sql, "ddl", [T], sql_mode=0)
    assert isinstance(did, Columns)
    assert [one.type.kind.value for one in did.declared] == [kind.lower()]
    for mode in (1 << 9, None):
        assert isinstance(effect(sql, "ddl", [T], sql_mode=mode), Stop)


def test_columns_in_parentheses_are_several() -> None:
    did = of("ADD (n INT, INDEX i (n), m INT NOT NULL DEFAULT 5), DROP c")
    assert isinstance(did, Columns)
    assert (did.added, did.dropped) == (("n", "m"), ("c",))
    assert [told.column for told in did.filled] == ["m"]


@pytest.mark.parametrize(
    "kind", ["INT", "VARCHAR(9)", "ENUM('a')", "DECIMAL(9,2)", "VECTOR(3)", "INT CHECK (a > 0)"]
)
def test_a_column_may_be_named_vector(kind: str) -> None:
    """Where the word is not reserved: on MySQL, and on MariaDB before 11.7."""
    did = of(f"ADD vector {kind}", mysql=True)
    assert isinstance(did, Columns)
    assert (did.added, did.filled) == (("vector",), ())


SERVERS = [
    pytest.param("shard", ("both", "mariadb"), id="mariadb"),
    pytest.param("mariadb_11_server", MARIADB, id="mariadb-11.8", marks=pytest.mark.wide),
    pytest.param("mysql_server", ("both", "mysql"), id="mysql-8.0", marks=pytest.mark.wide),
    pytest.param("mysql_97_server", MYSQL, id="mysql-9.7", marks=pytest.mark.wide),
]
Rows = dict[str, list[Any]]


def _rows(cursor: Cursor, action: str) -> Rows | None:
    """The rows by columns behind an action on a fresh table; None where the server refuses it."""
    for statement in ("DROP TABLE IF EXISTS t", *TABLE):
        cursor.execute(statement)
    if "PARTITION BY" in action:  # servers have no foreign keys there
        cursor.execute("ALTER TABLE t DROP FOREIGN KEY fk")
    try:
        cursor.execute(f"ALTER TABLE t {action}")
    except pymysql.err.MySQLError as why:
        if why.args[0] in (2006, 2013):  # the server is gone
            raise
        return None
    cursor.execute("SHOW COLUMNS FROM t")
    names = [name for name, *_ in cursor.fetchall()]
    cursor.execute(f"SELECT {', '.join(names)} FROM t ORDER BY id")
    return dict(zip(names, map(list, zip(*cursor.fetchall(), strict=True)), strict=True))


@pytest.mark.mariadb("it asks servers of all kinds")
@pytest.mark.parametrize(("fixture", "kinds"), SERVERS)
def test_the_servers_agree(fixture: str, kinds: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    server: PrivateServer = request.getfixturevalue(fixture)
    refused = []
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in ("CREATE DATABASE ddl", "USE ddl", *PARENT):
            cursor.execute(statement)
        if "mariadb" in kinds:
            cursor.execute("CREATE SEQUENCE numbers")

        def asked(action: str) -> Rows | None:
            after = _rows(cursor, action)
            if after is None:
                refused.append(action)
            return after

        before = asked("COMMENT 'x'") or {}
        for cases, said in SAID:
            for action in _on(cases, *kinds):
                after = asked(action)
                if after is not None:
                    left = [one for name, one in before.items() if (said, name) != (clauses.DROPPED, "c")]
                    kept = [one for name, one in after.items() if (said, name) != (clauses.PASSES, "v")]
                    assert kept == left, action
        for declared, value in (
            *((one, None) for one in _on(clauses.NULLS, *kinds)),
            *(item for one in kinds for item in clauses.VALUES.get(one, {}).items()),
        ):
            after = asked(f"ADD n {declared}")
            if after is not None:
                assert after.pop("n") == [value] * 2, declared
                assert after == before, declared
        cursor.execute("DROP DATABASE ddl")
    assert not refused


COMMENTS = (
    *(
        f"ADD n INT /*{mark} DEFAULT 5 */"
        for mark in ("!", "!40101", "!50500", "!50701", "!80000", "!80016", "!80400")
    ),
    *(
        f"ADD n INT /*{mark} DEFAULT 5 */"
        for mark in ("!90700", "!99999", "!100100", "!110400", "!110800", "!999999")
    ),
    *(f"ADD n INT /*{mark} DEFAULT 5 */" for mark in ("M!", "M!100100", "M!110400", "M!110900", "M!999999")),
    "ADD n INT /*!99999 , DROP c */",
    "ADD n INT /*!40000 DEFAULT /* five */ 5 */",
    "ADD n INT DEFAULT /*!99999 7 */ /*!50000 5 */",
)


@pytest.mark.mariadb("it asks servers of all kinds")
@pytest.mark.parametrize(("fixture", "kinds"), SERVERS)
def test_servers_log_comments_as_they_ran_them(
    fixture: str, kinds: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    """What a server skips, its log has as a plain comment."""
    server: PrivateServer = request.getfixturevalue(fixture)
    refused = 0
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in ("CREATE DATABASE ddl", "USE ddl", *PARENT):
            cursor.execute(statement)
        file, _ = server.log_end()
        for action in COMMENTS:
            after = _rows(cursor, action)
            if after is None:
                refused += 1
                continue
            queries = [str(event[5]) for event in log_events(server, file) if event[2] == "Query"]
            logged = [text for text in queries if "ALTER" in text][-1]
            did = effect(logged.partition("; ")[2], "ddl", [T], mysql="mysql" in kinds, sql_mode=STRICT)
            assert isinstance(did, Columns), logged
            value = int(did.filled[0].value or 0) if did.filled else None
            assert (after["n"], "c" in after) == ([value] * 2, did.dropped == ()), logged
        cursor.execute("DROP DATABASE ddl")
    # MySQL 8.0.15 takes five digits for a version, and the sixth for a word.
    assert refused <= 3
