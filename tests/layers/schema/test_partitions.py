"""DDL on partitions: which of it leaves all rows, and a real server as judge of that, with rows of all kinds."""

import re
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.schema.ddl import HARMLESS, Stop, effect
from tests.world.servers.chosen import in_its_words

T = TableId("parts", "t")
LOW_AND_HIGH = "(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (MAXVALUE))"
# Ways in which the table is partitioned before a statement.
BEFORE = {
    "whole": "",
    "hash": "PARTITION BY HASH (id) PARTITIONS 3",
    "key": "PARTITION BY KEY () PARTITIONS 3",
    "range": "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (50),"
    " PARTITION p2 VALUES LESS THAN (1000))",
    "list": "PARTITION BY LIST (id MOD 3) (PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (1, 2, NULL),"
    " PARTITION p2 VALUES IN (-1, -2))",
    "default": "/*M! PARTITION BY LIST (id) (PARTITION p0 VALUES IN (0, 1), PARTITION p1 DEFAULT) */",
    "columns": "PARTITION BY RANGE COLUMNS (id) (PARTITION p0 VALUES LESS THAN (20),"
    " PARTITION p1 VALUES LESS THAN (MAXVALUE))",
    "in parts": "PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (10),"
    " PARTITION p1 VALUES LESS THAN (1000))",
}
KEPT = [
    "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 4",
    "ALTER TABLE t PARTITION BY LINEAR HASH (ABS(id) + 1) PARTITIONS 4",
    "ALTER TABLE t PARTITION BY HASH (CAST(id AS UNSIGNED))",
    "ALTER TABLE t PARTITION BY KEY () PARTITIONS 2",
    "ALTER TABLE t PARTITION BY LINEAR KEY ALGORITHM = 2 (id) PARTITIONS 5",
    f"ALTER TABLE t PARTITION BY RANGE (id) {LOW_AND_HIGH}",
    "alter table parts.t partition by range columns (`id`) (partition `a b` values less than (5) engine = InnoDB"
    " comment = 'drop partition p0', partition `c` values less than maxvalue max_rows 10)",
    "ALTER TABLE t PARTITION BY RANGE (id) SUBPARTITION BY KEY (id) SUBPARTITIONS 2 " + LOW_AND_HIGH,
    "ALTER TABLE t PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) (PARTITION p0 VALUES LESS THAN MAXVALUE"
    " (SUBPARTITION s0, SUBPARTITION s1 ENGINE InnoDB))",
    "ALTER TABLE t PARTITION BY LIST (id MOD 2) (PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (-1, 1))",
    "ALTER TABLE t PARTITION BY LIST (id MOD 2) (PARTITION p0 VALUES IN (0), PARTITION p1 DEFAULT)",
    "ALTER TABLE t REMOVE PARTITIONING",
    "ALTER TABLE t COALESCE PARTITION 1",
    "ALTER TABLE t COALESCE PARTITION NO_WRITE_TO_BINLOG 1",
    "ALTER TABLE t ADD PARTITION PARTITIONS 2",
    "ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES LESS THAN (2000))",
    "ALTER TABLE t ADD PARTITION IF NOT EXISTS (PARTITION p9 VALUES LESS THAN (3000))",
    "ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES IN (7, 8))",
    "ALTER TABLE t ADD PARTITION (PARTITION p9)",
    "ALTER TABLE t REORGANIZE PARTITION",
    "ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION a VALUES LESS THAN (2), PARTITION b VALUES LESS THAN (10))",
    "ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION a VALUES LESS THAN (1000))",
    "ALTER TABLE t REORGANIZE PARTITION p1 INTO (PARTITION a VALUES IN (1), PARTITION b VALUES IN (2, NULL))",
    "ALTER TABLE t ANALYZE PARTITION ALL",
    "ALTER TABLE t CHECK PARTITION p0",
    "ALTER TABLE t OPTIMIZE PARTITION p0, p1",
    "ALTER TABLE t REBUILD PARTITION ALL",
    "ALTER TABLE /* not of o */ t /*!50100 PARTITION BY HASH (id) PARTITIONS 2 */",
]
# Servers refuse those for which a row of the table has no partition, in a session that is not strict, too.
NO_PARTITION = 1526
REFUSED = [
    "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))",
    "ALTER TABLE t PARTITION BY RANGE COLUMNS (id) (PARTITION p0 VALUES LESS THAN (40))",
    "ALTER TABLE t PARTITION BY LIST (id MOD 2) (PARTITION p0 VALUES IN (0))",
    "ALTER TABLE t PARTITION BY LIST (id) (PARTITION p0 VALUES IN (1, 2, 3))",
]
STOPS = [
    "ALTER TABLE t DROP PARTITION p0",
    "ALTER TABLE t DROP PARTITION IF EXISTS p0, p1",
    "ALTER TABLE t TRUNCATE PARTITION p0",
    "ALTER TABLE t TRUNCATE PARTITION ALL",
    "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE o",
    "ALTER TABLE o EXCHANGE PARTITION p0 WITH TABLE t WITHOUT VALIDATION",
    "ALTER TABLE t CONVERT PARTITION p0 TO TABLE x",
    "ALTER TABLE t CONVERT TABLE o TO PARTITION p9 VALUES LESS THAN (2000)",
    "ALTER TABLE t DISCARD PARTITION p0 TABLESPACE",
    "ALTER TABLE t IMPORT PARTITION ALL TABLESPACE",
    "ALTER TABLE t REPAIR PARTITION p0",
    "ALTER IGNORE TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))",
    "ALTER IGNORE TABLE t REORGANIZE PARTITION p0 INTO (PARTITION p0 VALUES LESS THAN (3))",
    "ALTER TABLE t PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION p1 CURRENT)",
    "ALTER TABLE t PARTITION BY HASH (id) (PARTITION p0 ENGINE = MyISAM)",
    "ALTER TABLE t ENGINE = Archive PARTITION BY HASH (id)",
    "ALTER TABLE t ORDER BY id PARTITION BY HASH (id)",
    "ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION p0 VALUES LESS THAN (3)), DROP PARTITION p1",
    "ALTER TABLE t COALESCE PARTITION 1, DROP PARTITION p0",
    "ALTER TABLE T REMOVE PARTITIONING, DROP COLUMN n",
    "ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES LESS THAN (2000) UNKNOWN = 5)",
    "ALTER TABLE t /*!99999 PARTITION BY HASH (id) */ DROP PARTITION p0",
    "ALTER TABLE t SECONDARY_LOAD PARTITION (p0)",
]


@pytest.mark.parametrize("mysql", [False, True])
def test_leaves_all_rows(mysql: bool) -> None:
    for sql in [*KEPT, *REFUSED]:
        assert effect(sql, "parts", [T], mysql=mysql) == HARMLESS, sql


@pytest.mark.parametrize("mysql", [False, True])
def test_stops(mysql: bool) -> None:
    for sql in STOPS:
        assert isinstance(effect(sql, "parts", [T], mysql=mysql), Stop), sql


@pytest.fixture(scope="module")
def session(shard: PrivateServer) -> Iterator[Any]:
    connection = shard.connect()
    cursor = connection.cursor()
    # 0 is a key like any other only where the mode says so; a session that alters need not have it.
    cursor.execute("SET sql_mode = ''")
    cursor.execute("DROP DATABASE IF EXISTS parts")
    cursor.execute("CREATE DATABASE parts")
    cursor.execute("USE parts")
    yield cursor
    cursor.execute("DROP DATABASE parts")
    connection.close()


def make(cursor: Any, partitioned: str) -> None:
    cursor.execute("DROP TABLE IF EXISTS t")
    cursor.execute(
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, d DATE, f FLOAT, s VARCHAR(9),"
        f" e ENUM('a','b')) ENGINE=InnoDB {partitioned}"
    )
    cursor.execute("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
    cursor.execute(
        in_its_words("INSERT INTO t SELECT seq, '2026-02-28', seq / 3, 'x ', 'b' FROM mysql.seq_1_to_60")
    )
    cursor.execute(
        "INSERT INTO t VALUES (0, '0000-00-00', -0.0, '', ''), (-7, '2026-00-31', 1e-40, NULL, 'a')"
    )
    cursor.execute("SET sql_mode = ''")


def rows(cursor: Any) -> list[Any]:
    cursor.execute("SELECT id, HEX(CAST(d AS CHAR)), f, HEX(s), e + 0 FROM t ORDER BY id")
    return list(cursor.fetchall())


def refusal(cursor: Any, sql: str) -> int:
    """The code with which the server refuses a statement; 0 where it does not."""
    try:
        cursor.execute(sql)
        cursor.fetchall()
    except pymysql.err.MySQLError as refused:
        if refused.args[0] in (2006, 2013):  # the server is gone
            raise
        return int(refused.args[0])
    return 0


@pytest.mark.parametrize("partitioned", BEFORE.values(), ids=BEFORE)
def test_the_server_agrees(session: Any, partitioned: str) -> None:
    taken = 0
    for sql in [*KEPT, *REFUSED]:
        make(session, partitioned)
        before = rows(session)
        assert len(before) == 62
        session.execute("SHOW MASTER STATUS")
        file, offset = session.fetchone()[:2]
        code = refusal(session, sql)
        assert (code == NO_PARTITION) == (sql in REFUSED), sql
        taken += code == 0
        assert rows(session) == before, sql
        session.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}")
        logged = [
            re.fullmatch(r"(?:use `(\w*)`; )?(.*)", event[5], re.DOTALL) for event in session.fetchall()
        ]
        for text in logged:
            if text is not None and "ALTER" in text[2].upper():
                assert effect(text[2], text[1] or "", [T]) == HARMLESS
    assert taken >= 8
