"""Definitions of tables followed through ALTER statements; a real server's catalog is the judge."""

import random
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.definition import DefinedColumn, Definition, hidden_name
from catchment.model.errors import AlteredUnseen, Unsupported
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.ddl import Columns, Stop, effect
from catchment.schema.follow import Followed, altered
from catchment.schema.statement import AmbiguousText
from catchment.source.catalog import read_definition
from catchment.source.session import connect
from catchment.wire.log.declared import expected_of, table_of
from catchment.wire.log.facts import Ddl
from tests.world.servers.chosen import chosen_kind, on_mysql

T = TableId("shop", "t")
INT = "int(11)"
KNOWN = Definition(
    T, tuple(DefinedColumn(n, INT, "", n != "id") for n in ("id", "a", "b", "c")), ("id",), "latin1"
)

TYPES = [
    *(
        "TINYINT(1)",
        "BOOL",
        "BOOLEAN",
        "INT1 UNSIGNED",
        "SMALLINT ZEROFILL",
        "INT2",
        "MEDIUMINT",
        "INT3",
        "MIDDLEINT",
    ),
    *(
        "INT",
        "INTEGER UNSIGNED",
        "INT4",
        "BIGINT UNSIGNED",
        "INT8",
        "FLOAT",
        "FLOAT4",
        "FLOAT(24)",
        "FLOAT(25)",
    ),
    *(
        "FLOAT(7,3) UNSIGNED",
        "DOUBLE",
        "DOUBLE PRECISION",
        "REAL",
        "FLOAT8",
        "DOUBLE(20,5)",
        "DECIMAL",
        "DEC(5)",
    ),
    *(
        "NUMERIC(9,2) UNSIGNED",
        "FIXED(65,30)",
        "DECIMAL(0)",
        "BIT",
        "BIT(64)",
        "YEAR",
        "YEAR(4)",
        "DATE",
        "TIME",
    ),
    *(
        "TIME(6)",
        "DATETIME",
        "DATETIME(3)",
        "TIMESTAMP NULL",
        "TIMESTAMP(2) NULL",
        "CHAR",
        "CHAR(30)",
        "CHARACTER(3)",
    ),
    *(
        "CHAR VARYING(9)",
        "CHARACTER VARYING(9)",
        "VARCHAR(300)",
        "VARCHARACTER(5)",
        "NCHAR(4)",
        "NATIONAL CHAR(4)",
    ),
    *(
        "NATIONAL VARCHAR(5)",
        "NVARCHAR(5)",
        "CHAR(5) BYTE",
        "CHAR(5) ASCII",
        "CHAR(5) UNICODE",
        "CHAR(5) BINARY",
    ),
    *(
        "VARCHAR(9) CHARSET utf8",
        "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "TEXT COLLATE utf16_bin",
    ),
    *(
        "VARCHAR(9) CHARACTER SET binary",
        "TEXT CHARACTER SET binary",
        "CHAR(4) CHARSET binary",
        "LONG",
        "LONG VARCHAR",
        "LONG CHAR VARYING",
        "LONG CHARACTER SET ucs2",
    ),
    *(
        "NATIONAL CHAR VARYING(5)",
        "NATIONAL CHARACTER(5)",
        "NCHAR VARCHAR(5)",
        "NCHAR VARYING(5)",
        "VARCHAR(5) BINARY",
        "CHAR(5) CHARACTER SET latin1 BINARY",
        "CHAR(5) BINARY CHARACTER SET latin1",
        "CHAR(5) ASCII BINARY",
        "CHAR(5) BINARY ASCII",
        "TEXT BINARY",
        "CHAR BYTE",
    ),
    *(
        "LONG VARBINARY",
        "TINYTEXT",
        "TEXT",
        "MEDIUMTEXT",
        "LONGTEXT CHARSET ucs2",
        "TINYBLOB",
        "BLOB",
        "MEDIUMBLOB",
    ),
    *(
        "LONGBLOB",
        "BINARY",
        "BINARY(16)",
        "VARBINARY(40)",
        "JSON",
        "INET6",
        "INET4",
        "UUID",
        "GEOMETRY",
        "POINT",
    ),
    *(
        "GEOMETRYCOLLECTION",
        "ENUM('a','it''s','c  ')",
        "ENUM('ä') CHARSET utf8",
        "SET('x','y') COLLATE latin1_bin",
    ),
    *("SET('1','2','3','4','5','6','7','8','9')", "VARCHAR(30) COMPRESSED", "TEXT COMPRESSED"),
    *(
        "VARCHAR(5) COMMENT 'CHARACTER SET ucs2'",
        "INT COMMENT 'UNSIGNED' INVISIBLE",
        "INT UNIQUE CHECK (n > 0)",
    ),
    *("VARCHAR(20) NULL DEFAULT NULL COLLATE utf8mb4_general_ci", "INT(5) SIGNED NULL"),
]

OF_MARIADB = ["INET6", "INET4", "UUID"]
TOO_NEW = ["INT COMMENT 'UNSIGNED' INVISIBLE"]  # for MySQL before 8.0.23


def endpoint_of(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


def parsed(sql: str) -> Columns:
    did = effect(sql, "shop", [T], sql_mode=0)
    assert isinstance(did, Columns), did
    return did


def after(sql: str, known: Definition = KNOWN, *, mysql: bool = False) -> Definition:
    return altered(known, parsed(sql), mysql=mysql)


def names(definition: Definition) -> list[str]:
    return [c.name for c in definition.columns]


def meaning(definition: Definition) -> Any:
    """What matters of a definition: types, and what table maps must say."""
    expected = [(c.name, expected_of(c), c.nullable) for c in definition.columns]
    return table_of(definition), expected, definition.charset


@pytest.mark.parametrize("default", ["latin1", "utf8mb4"])
def test_the_server_declares_added_columns_so(
    default: str, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    table = TableId(fresh_schema(shard), "t")
    unknown, refused = [], []
    with (
        closing(shard.connect()) as root,
        connect(endpoint_of(shard)) as session,
        root.cursor() as cursor,
    ):
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY) CHARSET {default}")
        for kind in TYPES:
            if on_mysql() and kind in OF_MARIADB:
                continue
            before = read_definition(session, table)
            sql = f"ALTER TABLE {table} ADD n {kind} FIRST"
            did = effect(sql, "", [table], sql_mode=0)
            if not isinstance(did, Columns):
                unknown.append(kind)
                continue
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError:
                refused.append(kind)
                continue
            found = read_definition(session, table)
            assert meaning(altered(before, did, mysql=on_mysql())) == meaning(found), kind
            cursor.execute(f"ALTER TABLE {table} DROP n")
    assert unknown == []
    assert refused == (TOO_NEW if chosen_kind() == "mysql-8.0" else [])


def test_the_server_agrees_with_random_orders(shard: PrivateServer, fresh_schema: Callable[..., str]) -> None:
    table = TableId(fresh_schema(shard), "t")
    chance, done = random.Random(5), 0
    with (
        closing(shard.connect()) as root,
        connect(endpoint_of(shard)) as session,
        root.cursor() as cursor,
    ):
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b VARCHAR(700), UNIQUE (b))")
        definition = read_definition(session, table)
        for number in range(80):
            sql = f"ALTER TABLE {table} " + ", ".join(
                action(chance, names(definition), number * 4 + i) for i in range(chance.randint(1, 4))
            )
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError:
                continue
            did = effect(sql, "", [table], sql_mode=0)
            if isinstance(did, Stop):  # of a kind that the feed does not follow
                definition = read_definition(session, table)
            elif isinstance(did, Columns):
                definition = altered(definition, did, mysql=on_mysql())
                done += 1
            assert meaning(definition) == meaning(read_definition(session, table)), sql
    assert done > 20


def action(chance: random.Random, known: list[str], number: int) -> str:
    place = chance.choice(["", "FIRST", f"AFTER {chance.choice(known)}", f"AFTER c{number - 1}"])
    column = chance.choice(known)
    return chance.choice(
        [
            f"ADD c{number} INT {place}",
            f"ADD COLUMN IF NOT EXISTS {column} INT {place}",
            f"ADD COLUMN `c{number}` VARCHAR(9) NULL {place}",
            f"DROP {column}" if column not in ("id", "b") and "ROW" not in column else "COMMENT 'x'",
            f"DROP COLUMN IF EXISTS c{number - 3}",
            f"ADD INDEX i{number} (id)",
            f"RENAME COLUMN {column} TO d{number}" if column not in ("id", "b") else "COMMENT 'y'",
            f"CHANGE {column} e{number} BIGINT {place}"
            if column[0] in "ce" and number % 3
            else "COMMENT 'z'",
        ]
    )


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("ALTER TABLE t ADD n INT", ["id", "a", "b", "c", "n"]),
        ("ALTER TABLE t ADD n INT FIRST", ["n", "id", "a", "b", "c"]),
        ("ALTER TABLE t ADD COLUMN `n` DECIMAL(9,2) NULL AFTER `A`", ["id", "a", "n", "b", "c"]),
        ("ALTER TABLE t DROP b, ADD n INT AFTER a, ADD m INT AFTER n", ["id", "a", "n", "m", "c"]),
        ("ALTER TABLE t DROP COLUMN IF EXISTS z, DROP c, ADD c TEXT FIRST", None),
        ("ALTER TABLE t ADD IF NOT EXISTS A INT, DROP IF EXISTS z", ["id", "a", "b", "c"]),
        (
            "SET STATEMENT lock_wait_timeout=5 FOR ALTER TABLE t ADD n INT AFTER id",
            ["id", "n", "a", "b", "c"],
        ),
        ("ALTER TABLE t ADD after INT AFTER id", ["id", "after", "a", "b", "c"]),
        ("ALTER TABLE t ADD first INT", ["id", "a", "b", "c", "first"]),
        (
            "ALTER TABLE t ADD KEY k (a), DROP INDEX b, ADD n INT /*!50000 AFTER a */",
            ["id", "a", "n", "b", "c"],
        ),
        ("ALTER TABLE t RENAME COLUMN `A` TO x, RENAME INDEX i TO j", ["id", "x", "b", "c"]),
        (
            "ALTER TABLE t CHANGE c x INT FIRST, RENAME COLUMN a TO y, ADD n INT AFTER b",
            ["x", "id", "y", "b", "n"],
        ),
        ("ALTER TABLE t DROP a, RENAME COLUMN b TO a, ADD b TEXT AFTER id", ["id", "b", "a", "c"]),
    ],
)
def test_columns_stand_where_the_statement_puts_them(sql: str, columns: list[str] | None) -> None:
    did = effect(sql, "shop", [T])
    if columns is None:
        assert not isinstance(did, Columns)
    else:
        assert names(after(sql)) == columns


def test_hidden_columns_stay_last() -> None:
    hidden = Definition(
        T, (*KNOWN.columns, DefinedColumn(hidden_name("DB_ROW_HASH_1"), "bigint unsigned")), ("id",), "latin1"
    )
    assert names(after("ALTER TABLE t ADD n INT", hidden))[-2:] == ["n", hidden_name("DB_ROW_HASH_1")]


def test_json_is_a_type_of_mysql_and_a_word_of_mariadb() -> None:
    assert after("ALTER TABLE t ADD n JSON", mysql=True).columns[-1] == DefinedColumn("n", "json")
    assert after("ALTER TABLE t ADD n JSON").columns[-1] == DefinedColumn("n", "longtext", "utf8mb4")


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD a INT",
        "ALTER TABLE t DROP z",
        "ALTER TABLE t ADD n INT AFTER z",
        "ALTER TABLE t RENAME COLUMN z TO n",
        "ALTER TABLE t CHANGE z n INT",
    ],
)
def test_a_table_that_is_not_as_the_statement_found_it(sql: str) -> None:
    said = r"shop\.t has the columns id, a, b, c, but an ALTER TABLE"
    with pytest.raises(AlteredUnseen, match=said):
        after(sql)
    followed = Followed([T], [KNOWN])
    fact = Ddl(0, "shop", sql, LogOffset("binlog.000001", 4), 0, flagged=True, sql_mode=0)
    assert followed.on_ddl(fact) == {T: None}
    assert re.search(said, followed.lost[T].reason)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD n TEXT(300)",
        "ALTER TABLE t ADD n VARCHAR(9) CHARACTER SET DEFAULT",
        "ALTER TABLE t ADD n ENUM('a\\\\b')",
        "ALTER TABLE t ADD n CHAR(²)",
        f"ALTER TABLE t ADD n FLOAT({'9' * 5000})",
    ],
)
def test_what_cannot_be_told_is_refused(sql: str) -> None:
    with pytest.raises(AmbiguousText):
        after(sql)
    fact = Ddl(0, "shop", sql, LogOffset("binlog.000001", 4), 0, flagged=True, sql_mode=0)
    followed = Followed([T], [KNOWN])
    assert followed.on_ddl(fact) == {T: None}
    assert followed.now == {}
    with pytest.raises(Unsupported, match=r"shop\.t at binlog.000001:4: .* binlog_row_metadata=FULL"):
        followed.must_follow()
    assert Followed([T]).on_ddl(fact) == {}, "a log that describes itself needs no definition"


def test_a_table_that_a_ddl_stops_is_not_read_any_more() -> None:
    fact = Ddl(0, "shop", "DROP TABLE t", LogOffset("binlog.000001", 4), 0, flagged=True, sql_mode=0)
    assert Followed([T]).on_ddl(fact) == {T: None}


def test_a_truncate_leaves_a_definition_as_it_is() -> None:
    fact = Ddl(0, "shop", "TRUNCATE t", LogOffset("binlog.000001", 4), 0, flagged=True, sql_mode=0)
    followed = Followed([T], [KNOWN])
    assert followed.on_ddl(fact) == {}
    assert followed.now == {T: KNOWN}
