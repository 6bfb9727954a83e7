"""What DDL does to rows: a real server as judge of the expectations in test_ddl.py, and of random ALTERs.

The judge classifies the text that the server logged, not the one that was sent.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pymysql
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.demo.server import PrivateServer
from catchment.model.table import Kind, TableId
from catchment.schema.ddl import HARMLESS, Columns, Effect, Harmless, Stop, effect
from catchment.schema.filling import Filled
from tests.layers.schema.test_ddl import BEGAN, COLUMNS_CASES, FILLED_CASES, HARMLESS_CASES
from tests.layers.schema.test_renamed import RENAMED_CASES
from tests.world.servers.chosen import in_its_words

TABLES = (
    "CREATE TABLE p (id INT PRIMARY KEY)",
    "INSERT INTO p SELECT seq FROM mysql.seq_1_to_9",
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), c INT DEFAULT 3, note TEXT,"
    " KEY ka (b), CONSTRAINT fk FOREIGN KEY (a) REFERENCES p (id)) ENGINE=InnoDB",
    "INSERT INTO t SELECT seq, NULLIF(seq MOD 10, 0), CONCAT('b', seq), seq MOD 7, 'x' FROM mysql.seq_1_to_40",
    "CREATE TABLE o (id INT PRIMARY KEY)",
    "INSERT INTO o VALUES (1), (2)",
)
Rows = dict[str, list[Any]]
Judge = Callable[[str], Effect | None]


@pytest.fixture(scope="module")
def judge(shard: PrivateServer) -> Iterator[Judge]:
    """Runs a statement on fresh tables; None if the server refuses it, else the effect of what it logged."""
    connection = shard.connect()
    cursor = connection.cursor()

    def run(sql: str) -> list[Any]:
        cursor.execute(sql.replace("%", "%%"))
        return list(cursor.fetchall())

    def rows() -> Rows:
        names = run(
            "SELECT column_name, column_type, collation_name FROM information_schema.columns"
            " WHERE table_schema='ddl' AND table_name='t'"
        )
        return {n: [(kind, *v) for v in run(f"SELECT `{n}` FROM ddl.t ORDER BY id")] for n, *kind in names}

    def judged(sql: str) -> Effect | None:
        run("SET foreign_key_checks = 0")
        run("DROP DATABASE IF EXISTS ddl")
        run("CREATE DATABASE ddl")
        run("SET foreign_key_checks = 1")
        run("USE ddl")
        for statement in TABLES:
            run(in_its_words(statement))
        before = rows()
        file, offset = run("SHOW MASTER STATUS")[0][:2]
        try:
            run(sql)
        except pymysql.err.MySQLError as refused:
            if refused.args[0] in (2006, 2013):  # the server is gone
                raise
            return None
        found = _effect_of_log(run(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}"))
        if not isinstance(found, Stop):
            _compare(before, rows(), found)
        return found

    run(f"SET timestamp = {BEGAN}")
    run("SET time_zone = '+00:00'")
    run("SET sql_mode = 'NO_ENGINE_SUBSTITUTION'")  # so that a NOT NULL date may be a zero date
    for statement in ("CREATE DATABASE t", "CREATE TABLE t.o (id INT)", "CREATE USER t"):
        run(statement)
    yield judged
    run("SET foreign_key_checks = 0")
    for name in ("shop2", "t", "ddl"):
        run(f"DROP DATABASE IF EXISTS {name}")
    run("DROP USER IF EXISTS t, u")
    connection.close()


def _effect_of_log(events: list[Any]) -> Effect:
    found: Effect = HARMLESS
    for event in events:
        text = re.fullmatch(r"(?:use `(\w*)`; )?(.*)", event[5], re.DOTALL)
        if event[2] == "Query" and text and text[2] != "COMMIT":
            found = effect(text[2], text[1] or "", [TableId("ddl", "t")], sql_mode=0, time=BEGAN)
    return found


def _compare(before: Rows, after: Rows, found: Harmless | Columns) -> None:
    values = {one.column: one for one in found.filled} if isinstance(found, Columns) else {}
    added, dropped = (found.added, found.dropped) if isinstance(found, Columns) else ((), ())
    kept = {n for n in before if n not in dropped}
    # test_redeclared_judged.py has these.
    modified = {one.column for one in found.modified} if isinstance(found, Columns) else set()
    names = {one.old: one.new for one in found.renamed} if isinstance(found, Columns) else {}
    former = {names.get(name, name): name for name in kept}
    assert set(after) == {*former, *added}
    for name, was in former.items():
        if name not in added and was not in modified:
            assert after[name] == before[was], name
    for name in added:
        if name not in former:  # else IF NOT EXISTS found it
            told = values.get(name)
            assert {row[-1] for row in after[name]} == {None if told is None else _as_shown(told)}, name


# Values as the driver gives them, by the kinds of which these are no whole numbers.
SHOWN: dict[Kind, Callable[[str], Any]] = {
    Kind.DECIMAL: Decimal,
    Kind.FLOAT: lambda text: float(f"{np.float32(text):.6g}"),  # so many digits are shown
    Kind.DOUBLE: float,
    Kind.DATE: date.fromisoformat,
    Kind.DATETIME: datetime.fromisoformat,
    Kind.TIMESTAMP: lambda text: datetime.fromisoformat(text).replace(tzinfo=None),
    Kind.TEXT: str,
    Kind.ENUM: str,
    Kind.SET: str,
    Kind.BIT: lambda text: bytes([int(text)]),
    Kind.BINARY: bytes.fromhex,
    Kind.BLOB: bytes.fromhex,
    Kind.TIME: lambda text: timedelta(microseconds=int(text)),
}


def _as_shown(told: Filled) -> Any:
    assert told.value is not None
    return SHOWN.get(told.type.kind, int)(told.value)


@pytest.mark.mariadb("the cases are in its words")
def test_the_server_agrees_with_every_case(judge: Judge) -> None:
    refused = []
    for sql, *_ in FILLED_CASES:
        found = judge(sql)
        if found is None:
            refused.append(sql)
        else:
            assert isinstance(found, Columns), found
            assert found.filled
    for sql, *_ in RENAMED_CASES:
        found = judge(sql)
        if found is None:
            refused.append(sql)
        else:
            assert isinstance(found, Columns), found
            assert found.renamed
    for sql, wanted in [
        *((sql, HARMLESS) for sql in HARMLESS_CASES),
        *((sql, Columns(TableId("ddl", "t"), added, dropped)) for sql, added, dropped in COLUMNS_CASES),
    ]:
        found = judge(sql)
        if found is None:
            refused.append(sql)
        else:
            assert found == wanted, sql
    assert not refused


@pytest.mark.mariadb("SET STATEMENT")
def test_the_server_agrees_when_timestamps_have_defaults(judge: Judge) -> None:
    prefix = "SET STATEMENT explicit_defaults_for_timestamp=0 FOR ALTER TABLE t ADD"
    assert judge(f"{prefix} n TIMESTAMP NULL") == Columns(TableId("ddl", "t"), ("n",), ())
    assert isinstance(judge(f"{prefix} n TIMESTAMP DEFAULT NULL"), Stop)
    assert isinstance(judge(f"{prefix} n TIMESTAMP"), Stop)


ATTRIBUTES = [
    *("", "NULL", "DEFAULT NULL", "DEFAULT 5", "NOT NULL", "NOT NULL DEFAULT 1", "UNIQUE", "COMMENT 'c, d'"),
    *(
        "/*!50000 DEFAULT 5 */",
        "/*!80000 DEFAULT 5 */",
        "AS (a + 1)",
        "AUTO_INCREMENT UNIQUE",
        "INVISIBLE",
        "FIRST",
    ),
    *(
        "DEFAULT 'a'",
        "NOT NULL DEFAULT '7' COMMENT 'x'",
        "DEFAULT -1.5",
        "DEFAULT b'11'",
        "NOT NULL DEFAULT NULL",
    ),
    *(
        "DEFAULT '2026-02-28'",
        "DEFAULT '2026-02-28 23:59:59'",
        "DEFAULT TRUE",
        "DEFAULT 255",
        "DEFAULT 70000",
    ),
    *("DEFAULT 0.5", "DEFAULT '0.1'", "DEFAULT 12.345678901234567890", "DEFAULT -0.0", "DEFAULT 'ab'"),
    *("DEFAULT '00:00:00'", "DEFAULT '-12:34:56.7'", "DEFAULT '839:00:00'", "DEFAULT '1:2:3'"),
    *("ON UPDATE CURRENT_TIMESTAMP", "NULL DEFAULT CURRENT_TIMESTAMP()", "DEFAULT 2000", "DEFAULT ''"),
    *("NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "CHARACTER SET latin1 DEFAULT 'a'"),
    *("DEFAULT NULL AFTER id", "NULL CHECK (n IS NULL)", "DEFAULT (a + 1)", "DEFAULT CURRENT_TIMESTAMP"),
]
TYPES = [
    "INT",
    "BIGINT UNSIGNED",
    "VARCHAR(9)",
    "TEXT",
    "DATETIME",
    "TIMESTAMP",
    "DECIMAL(9,2)",
    "ENUM('a')",
    "BIT(3)",
    *("TINYINT", "SMALLINT UNSIGNED", "BOOLEAN", "DOUBLE", "FLOAT", "FLOAT(5,1)", "DATE", "YEAR", "CHAR(3)"),
    *(
        "SET('a','7')",
        "DECIMAL(5,1)",
        "DECIMAL(3)",
        "VARBINARY(4)",
        "DATETIME(3)",
        "TIMESTAMP(3)",
        "TIME",
        "BINARY(2)",
    ),
]
OTHER_ACTIONS = [
    *("DROP c", "DROP COLUMN IF EXISTS c", "DROP COLUMN b", "DROP note", "ADD INDEX i (b)", "DROP INDEX ka"),
    *(
        "ADD UNIQUE u (b)",
        "COMMENT 'x'",
        "ENGINE=InnoDB",
        "FORCE",
        "ALTER c SET DEFAULT 9",
        "MODIFY a BIGINT",
    ),
    *("CHANGE b b VARCHAR(2)", "ADD COLUMN IF NOT EXISTS c INT DEFAULT 4", "ADD COLUMN IF NOT EXISTS c INT"),
    *(
        "DROP PRIMARY KEY",
        "CONVERT TO CHARACTER SET latin1",
        "RENAME COLUMN a TO z",
        "RENAME COLUMN note TO c",
        "CHANGE b z VARCHAR(90)",
        "ADD c INT",
        "ADD CHECK (id > 0)",
    ),
    *("ROW_FORMAT=DYNAMIC", "ORDER BY b", "ALGORITHM=COPY", "ADD (x INT, y INT)", "DROP FOREIGN KEY fk"),
]
ACTION = st.one_of(
    st.sampled_from(OTHER_ACTIONS),
    st.builds(
        "ADD {} {} {}".format, st.sampled_from("nm"), st.sampled_from(TYPES), st.sampled_from(ATTRIBUTES)
    ),
)
HEADS = ["ALTER TABLE t", "ALTER ONLINE TABLE ddl.t", "ALTER IGNORE TABLE t", "alter table `t` WAIT 3"]


@pytest.mark.mariadb("MySQL 8.0.15 crashes in one of them")
def test_the_server_agrees_with_random_alters(judge: Judge) -> None:
    met: Counter[str] = Counter()

    @given(st.sampled_from(HEADS), st.lists(ACTION, min_size=1, max_size=3))
    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    def agrees(head: str, actions: list[str]) -> None:
        met[type(judge(f"{head} {', '.join(actions)}")).__name__] += 1

    agrees()
    assert min(met["Columns"], met["Harmless"], met["Stop"]) >= 10, met


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_the_server_agrees_with_random_numbers(shard: PrivateServer, kind: str) -> None:
    """To the last bit, which a server shows of a DOUBLE alone."""
    rng = random.Random(kind)
    cases = ["0.1", "16777217.0", "0.30000001192092896", "9007199254740993"]
    for _ in range(60):
        whole, fraction = (rng.randrange(10 ** rng.randrange(1, digits)) for digits in (20, 30))
        cases.append(f"{rng.choice(('', '-'))}{whole}.{fraction}")
    adds = [f"ALTER TABLE t ADD n{number} {kind} DEFAULT {text}" for number, text in enumerate(cases)]
    told = []
    for sql in adds:
        found = effect(sql, "ddl", [TableId("ddl", "t")], sql_mode=0, time=BEGAN)
        assert isinstance(found, Columns), sql
        text = str(found.filled[0].value)
        told.append(float(np.float32(text)) if kind == "FLOAT" else float(text))
    shard.sql(
        "DROP DATABASE IF EXISTS ddl",
        "CREATE DATABASE ddl",
        "CREATE TABLE ddl.t (id INT PRIMARY KEY)",
        "INSERT INTO ddl.t VALUES (1)",
    )
    shard.sql(*adds, database="ddl")
    shown = ", ".join(f"n{number} + 0e0" for number in range(len(cases)))
    (row,) = shard.sql(f"SELECT {shown} FROM ddl.t")
    shard.sql("DROP DATABASE ddl")
    assert list(row) == told
