"""DDL that leaves all rows as they are: the feed goes on, and copies nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Shards
from tests.promises.exact.cases import Cases
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.chosen import on_mysql

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, n INT DEFAULT 1, note TEXT)"
UNIQUE = "CREATE TABLE t (id INT NOT NULL, n INT, note TEXT, UNIQUE u (id), KEY other (n))"
LOW = "(PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN (99))"
MARIADB = () if on_mysql() else ("ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT DEFAULT 5",)
# Each statement in an epoch of its own, among rows.
COURSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "indexed": (
        TABLE,
        (
            "CREATE INDEX i ON t (n)",
            "ALTER TABLE t ADD UNIQUE u (id, n), ADD FULLTEXT f (note)",
            "ALTER TABLE t RENAME INDEX i TO j, ALGORITHM=INPLACE",
            "DROP INDEX j ON t",
        ),
    ),
    "told_by_a_unique_key": (
        UNIQUE,
        (
            "CREATE UNIQUE INDEX more ON t (n, id)",
            "DROP INDEX other ON t",
            "CREATE INDEX other ON t (n)",
            "ALTER TABLE t DROP INDEX u, ADD UNIQUE u2 (id)",
        ),
    ),
    "rebuilt": (
        TABLE,
        (
            "ALTER TABLE t ENGINE=InnoDB",
            "ALTER TABLE t FORCE, LOCK=SHARED",
            "OPTIMIZE TABLE t",
            "ANALYZE TABLE t",
            "ALTER TABLE t ROW_FORMAT=DYNAMIC, STATS_PERSISTENT=1",
            "ALTER TABLE t PACK_KEYS=0 CHECKSUM=0 DELAY_KEY_WRITE=0 ROW_FORMAT=DYNAMIC",
            "ALTER TABLE t AUTO_INCREMENT = 1000",
            "ALTER TABLE t COMMENT = 'say \"t\", ADD COLUMN m INT DEFAULT 5'",
        ),
    ),
    "declared": (
        TABLE,
        (
            "ALTER TABLE t ALTER n SET DEFAULT 7",
            "ALTER TABLE t ALTER COLUMN n DROP DEFAULT",
            "ALTER TABLE t ADD CONSTRAINT low CHECK (n > -1)",
            "ALTER TABLE t DROP CONSTRAINT low",
            "ALTER TABLE t ADD CHECK (n >= -1 OR note LIKE 'x%')",
            *MARIADB,
        ),
    ),
    "parted": (
        TABLE,
        (
            f"ALTER TABLE t PARTITION BY RANGE (id) {LOW}",
            "ALTER TABLE t REORGANIZE PARTITION p1 INTO (PARTITION a VALUES LESS THAN (9), PARTITION b VALUES LESS THAN"
            " (99))",
            "ALTER TABLE t ADD PARTITION (PARTITION c VALUES LESS THAN (999))",
            "TRUNCATE t",
            "ALTER TABLE t OPTIMIZE PARTITION a",
            "ALTER TABLE t REMOVE PARTITIONING",
            "ALTER TABLE t PARTITION BY KEY () PARTITIONS 3",
            "ALTER TABLE t COALESCE PARTITION 1",
        ),
    ),
    "referred_to": (
        TABLE,
        (
            "CREATE TABLE t_child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE RESTRICT)",
            "ALTER TABLE t_child ADD FOREIGN KEY k (id) REFERENCES t (id)",
            "ALTER TABLE t_child DROP FOREIGN KEY k",
            "DROP TABLE t_child",
        ),
    ),
    "named": (
        TABLE,
        (
            "CREATE PROCEDURE p() BEGIN UPDATE t SET n = LENGTH('it\\'s'); TRUNCATE t; END",
            "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.note = 'set'",
            "CREATE VIEW v AS SELECT CONCAT('\\'', n) FROM t",
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO TRUNCATE t",
            "GRANT SELECT ON t TO catchment",
            "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)",
            "CREATE TABLE w LIKE t",
            "CREATE TABLE u (id INT PRIMARY KEY COMMENT 'don\\'t use t')",
        ),
    ),
}


@pytest.mark.promise("DDL that is known to leave rows alone is passed over")
def test_the_feed_goes_on(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(new_tables="skip")
    begin = "INSERT INTO t (id, n) VALUES (1, 1), (2, 2)"
    cases = Cases(steps, {name: (made, begin) for name, (made, _) in COURSES.items()})
    cases.begin()
    for number in range(max(len(course) for _, course in COURSES.values())):
        cases.turn(
            {
                name: (
                    f"INSERT INTO t (id, n) VALUES ({number + 10}, 1)",
                    course[number],
                    "UPDATE t SET n = n + 1",
                )
                for name, (_, course) in COURSES.items()
                if number < len(course)
            }
        )
        cases.compare()
    cases.settle()
    cases.must_be_followed()
