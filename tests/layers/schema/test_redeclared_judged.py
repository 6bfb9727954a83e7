"""Definitions that are taken to leave every value of a column as it is: a real server as the judge."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.chunk import Chunk
from catchment.model.epoch import TableShape
from catchment.model.errors import SourceError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.ddl import Columns, Effect, effect
from catchment.schema.shape import first_shape
from catchment.schema.widened import modified
from catchment.source.catalog import read_table
from catchment.source.declared import Declared, read_declared
from catchment.source.select import select_chunk
from catchment.source.session import Session, connect
from tests.world.servers.chosen import on_mysql

SCHEMA = "redeclared"
T = TableId(SCHEMA, "t")
NULLABLE = [
    *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "TINYINT UNSIGNED", "SMALLINT UNSIGNED", "INT UNSIGNED"),
    *("BIGINT UNSIGNED", "INT(3) ZEROFILL", "BOOLEAN", "BIT(3)", "BIT(9)", "FLOAT", "FLOAT(7,2)", "DOUBLE", "YEAR"),
    *("DECIMAL(5,2)", "DECIMAL(7,2)", "DECIMAL(7,3)", "DECIMAL(5,3)", "DECIMAL(5,2) UNSIGNED", "DECIMAL(38,3)"),
    *("DECIMAL(40,3)", "DATE", "DATETIME", "DATETIME(3)", "TIME", "TIME(6)", "TIMESTAMP NULL", "TIMESTAMP(3) NULL"),
    *("CHAR(3)", "CHAR(5)", "VARCHAR(3)", "VARCHAR(5)", "VARCHAR(300)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"),
    *("CHAR(5) CHARACTER SET utf8mb3", "VARCHAR(5) CHARACTER SET utf8mb3", "VARCHAR(3) CHARACTER SET latin1"),
    *("TEXT CHARACTER SET utf8mb3", "VARCHAR(5) COLLATE utf8mb4_bin", "VARCHAR(5) CHARACTER SET ascii"),
    *("BINARY(3)", "BINARY(5)", "VARBINARY(3)", "VARBINARY(5)", "TINYBLOB", "BLOB", "LONGBLOB"),
    *("ENUM('a','b')", "ENUM('a','b','1')", "ENUM('b','a')", "ENUM('a','b') CHARACTER SET utf8mb3"),
    *("ENUM('a','A') COLLATE utf8mb4_bin", "ENUM('a','A','c') COLLATE utf8mb4_bin", "ENUM('a','A','c')", "REAL"),
    *("SET('a','A') COLLATE utf8mb4_bin", "SET('a','A','c')", "SET('a','b')", "SET('a','b','1')", "JSON"),
    *("INT AS (id + 1) STORED", "INT AS (id + 1)"),
    *(() if on_mysql() else ("UUID", "INET6", "INET4", "BINARY(16)")),
]  # fmt: skip
DEFINITIONS = [
    *NULLABLE,
    *(f"{kind} NOT NULL" for kind in NULLABLE if " AS " not in kind and " NULL" not in kind),
    *(
        "INT DEFAULT 4",
        "INT COMMENT 'x' FIRST",
        "INT NOT NULL DEFAULT 9",
        "VARCHAR(5) DEFAULT 'x'",
        "INT UNIQUE",
    ),
    *(
        "INT AUTO_INCREMENT UNIQUE",
        "TIMESTAMP",
        "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        "INT INVISIBLE",
    ),
]
VALUES = [
    *("NULL", "''", "'0'", "1", "-1", "127", "-128", "128", "255", "256", "32767", "65535", "-8388608", "2147483647"),
    *("4294967295", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1.5", "0.125", "-999.99"),
    *("99999.995", "'a'", "'b'", "'a,b'", "'1'", "'x    '", "'Zwölf'", "'ÄÖ😀'", "' y'", "'a\\0b'", "REPEAT('é', 260)"),
    *("REPEAT('z', 70000)", "'2026-02-28'", "'2026-02-28 23:59:59.999999'", "'0000-00-00'", "'[1, 2]'"),
    *("'-12:34:56.5'", "1999", "'A'", "'😀'", "'1.23456789012345'"),
    *("'2026-10-25 00:30:00'", "'2026-10-25 01:30:00'"),
    *("'123e4567-e89b-12d3-a456-426614174000'", "'2001:db8::1'", "'10.0.0.1'"),
]  # fmt: skip
STRICT, LOOSE = "STRICT_TRANS_TABLES", ""
PADS, FLOATS = "PAD_CHAR_TO_FULL_LENGTH", "REAL_AS_FLOAT"
BITS = {STRICT: 1 << 21, LOOSE: 0, PADS: 1 << 31, FLOATS: 1}
# A time zone in which the hour from 00:00 to 01:00 UTC and the next one have the same names.
TWICE = (
    "INSERT IGNORE INTO mysql.time_zone VALUES (77, 'N')",
    "INSERT IGNORE INTO mysql.time_zone_name VALUES ('Twice', 77)",
    "INSERT IGNORE INTO mysql.time_zone_transition_type VALUES (77, 0, 7200, 1, 'A'), (77, 1, 3600, 0, 'B')",
    "INSERT IGNORE INTO mysql.time_zone_transition VALUES (77, -1000, 0), (77, 1792890000, 1)",
)
Run = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def run(shard: PrivateServer) -> Iterator[Run]:
    connection = shard.connect()
    cursor = connection.cursor()

    def one(sql: str) -> list[Any]:
        cursor.execute(sql.replace("%", "%%"))
        return list(cursor.fetchall())

    one(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
    one(f"USE {SCHEMA}")
    for sql in TWICE:
        one(sql)
    yield one
    one(f"DROP DATABASE {SCHEMA}")
    connection.close()


@pytest.fixture(scope="module")
def session(shard: PrivateServer, run: Run) -> Iterator[Session]:
    with connect(Endpoint("a", shard.host, shard.port, "catchment", shard.password)) as opened:
        yield opened


def made(run: Run, columns: list[str]) -> bool:
    """Make the table; whether the server has such columns."""
    run(f"SET sql_mode = '{LOOSE}', time_zone = '+00:00'")
    run("DROP TABLE IF EXISTS t")
    named = ", ".join(f"c{number} {column.removesuffix('FIRST')}" for number, column in enumerate(columns))
    try:
        run(f"CREATE TABLE t (id INT PRIMARY KEY, {named}) ROW_FORMAT=DYNAMIC")
    except pymysql.err.MySQLError as refused:
        if refused.args[0] in (2006, 2013):  # the server is gone
            raise
        return False
    return True


def known_shape(run: Run, session: Session, column: str) -> TableShape | None:
    """The shape of a table with such a column, as a feed begins with it; None for one that it cannot carry."""
    if not made(run, [column]):
        return None
    found = read_declared(session, [T])[T]
    if not isinstance(found, Declared):
        return None
    return first_shape(found.table, {"a": found.table}, wordings={"a": found.wording})


def follows(shape: TableShape, did: Effect) -> bool:
    if not isinstance(did, Columns):
        return False
    try:
        modified(shape, "a", did.modified[0], ())
    except SourceError:
        return False
    return True


@pytest.mark.wide
def test_the_server_keeps_every_value_where_a_definition_is_followed(run: Run, session: Session) -> None:
    shapes = {column: shape for column in DEFINITIONS if (shape := known_shape(run, session, column))}
    met: Counter[str] = Counter()
    for mode in (STRICT, LOOSE, PADS, FLOATS):
        for new in DEFINITIONS:
            did = effect(f"ALTER TABLE t MODIFY c0 {new}", SCHEMA, [T], sql_mode=BITS[mode])
            for old in (old for old, shape in shapes.items() if follows(shape, did)):
                met[f"{mode}: {judged(run, session, old, new, mode)}"] += 1
    print(dict(met))
    assert met[f"{STRICT}: kept"] > 200, met
    assert met[f"{LOOSE}: kept"] > 100, met


def judged(run: Run, session: Session, old: str, new: str, mode: str) -> str:
    """What became of a column; fails where the server changed a value of it."""
    kept, columns = filled(run, old), "id" if " AS " in old else "id, c0"
    run(f"SET sql_mode = '{LOOSE}', time_zone = '+00:00'")
    run("DROP TABLE IF EXISTS t")
    run(f"CREATE TABLE t LIKE {kept}")
    run(f"INSERT INTO t ({columns}) SELECT {columns} FROM {kept}")
    before = values(session)
    run(f"SET sql_mode = '{mode}', time_zone = 'Twice'")
    try:
        run(f"ALTER TABLE t MODIFY c0 {new}")
    except pymysql.err.MySQLError as refused:
        if refused.args[0] in (2006, 2013):  # the server is gone
            raise
        return "refused"
    after = values(session)
    assert len(before) > (2 if "UNIQUE" in old or "JSON" in old else 20)
    assert after.equals(before.cast(after.type)), (old, new, mode)
    return "kept"


def filled(run: Run, column: str) -> str:
    """A table with a column of that definition and all values that it takes, which is made once."""
    name = f"k{DEFINITIONS.index(column)}"
    if run(f"SHOW TABLES LIKE '{name}'"):
        return name
    assert made(run, [column])
    for number, value in enumerate(VALUES):
        if " AS " in column:
            run(f"INSERT INTO t (id) VALUES ({number})")
            continue
        with suppress(pymysql.err.MySQLError):  # JSON takes no other text
            run(f"INSERT IGNORE INTO t (id, c0) VALUES ({number}, {value})")
    run(f"RENAME TABLE t TO {name}")
    return name


def values(session: Session) -> pa.ChunkedArray:
    """The column as Catchment reads it."""
    rows = select_chunk(session, read_table(session, T), Chunk("a", T, None, None))
    return rows.sort_by("id")["c0"]
