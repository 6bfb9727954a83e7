"""What DDL does to rows: what is expected of each statement. test_ddl_judged.py asks a server."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.model.table import TableId
from catchment.schema.ddl import HARMLESS, Columns, Effect, Harmless, Stop, effect

T = TableId("shop", "t")
QUOTED = TableId("shop", "my`table")
CHOSEN = (T, QUOTED, TableId("shop", "Übung"))


def of(sql: str, default_schema: str = "shop") -> Effect:
    return effect(sql, default_schema, CHOSEN)


HARMLESS_CASES = [
    "CREATE INDEX i ON t (c)",
    "CREATE UNIQUE INDEX i ON t (b, id)",
    "DROP INDEX ka ON t",
    "ALTER TABLE t ADD INDEX i (c), DROP KEY ka",
    "ALTER TABLE t ADD UNIQUE u (id, c), ADD FULLTEXT f (note)",
    "ALTER TABLE t RENAME INDEX ka TO kb",
    "ALTER TABLE t COMMENT = 'say \"t\" -- not a comment'",
    "ALTER TABLE t AUTO_INCREMENT = 1000",
    "ALTER TABLE t ENGINE = InnoDB",
    "alter table t engine=innodb, algorithm=copy, lock=shared",
    "ALTER TABLE t FORCE",
    "ALTER TABLE t ROW_FORMAT = COMPACT",
    "ALTER TABLE t ALTER c SET DEFAULT 7",
    "ALTER TABLE t ALTER COLUMN c DROP DEFAULT",
    "ALTER TABLE t DROP FOREIGN KEY fk",
    "ALTER TABLE t ADD CONSTRAINT f2 FOREIGN KEY (a) REFERENCES p (id) ON DELETE RESTRICT",
    "/*!40000 ALTER TABLE t DISABLE KEYS */",
    "ANALYZE TABLE t",
    "OPTIMIZE TABLE t",
    "FLUSH TABLES t",
    "CREATE OR REPLACE VIEW v AS SELECT * FROM t",
    "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW BEGIN DELETE FROM o; END",
    "CREATE PROCEDURE pr() BEGIN TRUNCATE TABLE t; DROP TABLE t; END",
    "GRANT SELECT ON t TO catchment",
    "CREATE TABLE copy LIKE t",
    "CREATE TABLE copy AS SELECT * FROM t",
    "CREATE TABLE child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
    "ALTER TABLE o ADD COLUMN t INT NOT NULL DEFAULT 5",
    "ALTER TABLE o MODIFY id BIGINT COMMENT 't'",
    "ALTER TABLE o ADD FOREIGN KEY (id) REFERENCES t (id) ON DELETE CASCADE",
    "TRUNCATE o",
    "DROP TABLE o /* was t */",
    "RENAME TABLE o TO o2",
    "CREATE TABLE t.t2 (id INT)",
    "ALTER TABLE t.o ADD n INT DEFAULT 5",
    "RENAME TABLE t.o TO t.o2",
    "RENAME USER t TO u",
    "CREATE DATABASE shop2",
    "SET STATEMENT lock_wait_timeout=5 FOR CREATE INDEX i ON t (c)",
    "ALTER TABLE t ALTER INDEX ka IGNORED, ALTER KEY ka NOT IGNORED",
    "ALTER TABLE t STATS_PERSISTENT = 1",
    "ALTER TABLE t STATS_SAMPLE_PAGES 9, MAX_ROWS=100, ADD INDEX i (c)",
    "ALTER TABLE t ADD CONSTRAINT positive CHECK (a > -1)",
]

MYSQL_HARMLESS_CASES = [
    "ALTER TABLE t ALTER INDEX ka INVISIBLE",
    "ALTER TABLE t ALTER COLUMN c SET INVISIBLE, ALTER c SET VISIBLE",
    "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0), ALTER INDEX ka VISIBLE",
    "ALTER TABLE t ALTER CHECK known NOT ENFORCED",
    "ALTER TABLE t ALTER CONSTRAINT known ENFORCED, DROP CHECK known",
    "ALTER TABLE t ALTER c SET DEFAULT (1 + 1)",
    "CREATE INDEX i ON t ((a + 1))",
    "ALTER TABLE t ADD INDEX i ((a * 2), b)",
    "ANALYZE TABLE t UPDATE HISTOGRAM ON a",
    "OPTIMIZE TABLE t",
    "ALTER TABLE t ENGINE=InnoDB, ALGORITHM=COPY",
    "ALTER TABLE t RENAME INDEX ka TO kb",
    "CREATE TABLE copy AS SELECT * FROM t",
    "ALTER TABLE t COMMENT 'x' /*M! , DROP c */",
]

COLUMNS_CASES: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("ALTER TABLE t ADD n INT", ("n",), ()),
    ("alter online table t add column n int", ("n",), ()),
    ("ALTER TABLE `t` ADD COLUMN `n` VARCHAR(10) CHARACTER SET latin1 NULL DEFAULT NULL FIRST", ("n",), ()),
    ("ALTER TABLE t ADD n INT UNSIGNED AFTER a, DROP COLUMN c", ("n",), ("c",)),
    ("ALTER TABLE t ADD n INT, ADD m TEXT COMMENT 'NOT NULL', ADD INDEX (n), DROP c", ("n", "m"), ("c",)),
    ("ALTER TABLE t DROP c, ADD c BIGINT", ("c",), ("c",)),
    ("ALTER TABLE IF EXISTS t WAIT 5 ADD COLUMN IF NOT EXISTS n JSON", ("n",), ()),
    ("ALTER TABLE t NOWAIT DROP COLUMN IF EXISTS c", (), ("c",)),
    ("ALTER TABLE t ADD n TIMESTAMP NULL", ("n",), ()),
    ("ALTER TABLE t ADD n TIMESTAMP NULL DEFAULT NULL", ("n",), ()),
    ("ALTER TABLE t ADD n DATETIME(6), ALGORITHM=INSTANT, LOCK=NONE", ("n",), ()),
    ("ALTER TABLE t ADD n ENUM('x','y') INVISIBLE", ("n",), ()),
    ("ALTER TABLE t ADD n INT UNIQUE CHECK (n > 0)", ("n",), ()),
    ("ALTER TABLE t ADD n INT /* DEFAULT 5 */ -- DEFAULT 5", ("n",), ()),
    ("ALTER TABLE t ADD /*!50000 COLUMN */ /*M! n INT */ # NOT NULL", ("n",), ()),
    ("SET STATEMENT lock_wait_timeout=5 FOR ALTER TABLE t ADD n INT", ("n",), ()),
    ("ALTER TABLE t ADD n DATETIME ON UPDATE CURRENT_TIMESTAMP", ("n",), ()),
]

# A column with the value that every row has.
FILLED_CASES: list[tuple[str, str, str]] = [
    ("ALTER TABLE t ADD n INT DEFAULT 5", "n", "5"),
    ("ALTER TABLE t ADD n INT /*!50000 DEFAULT 5 */", "n", "5"),
    ("ALTER TABLE t ADD n INT /*M!100100 NOT NULL */", "n", "0"),
    ("ALTER TABLE t ADD n INT NOT NULL", "n", "0"),
    ("ALTER TABLE t ADD n INT NULL NOT NULL", "n", "0"),
    (
        "ALTER TABLE t ADD COLUMN `n` TINYINT(1) NOT NULL DEFAULT '1' COMMENT 'on, by DEFAULT' AFTER a",
        "n",
        "1",
    ),
    ("ALTER TABLE t ADD n BOOLEAN NOT NULL DEFAULT FALSE FIRST", "n", "0"),
    ("ALTER TABLE t ADD n BIGINT UNSIGNED DEFAULT 18446744073709551615", "n", "18446744073709551615"),
    ("ALTER TABLE t ADD n INT DEFAULT -7", "n", "-7"),
    ("ALTER TABLE t ADD n INT ZEROFILL DEFAULT 7", "n", "7"),
    ("ALTER TABLE t ADD n DECIMAL(9,2) NOT NULL DEFAULT 1.5", "n", "1.50"),
    ("ALTER TABLE t ADD n DECIMAL(9,2) NOT NULL DEFAULT '-0.25'", "n", "-0.25"),
    ("ALTER TABLE t ADD n DECIMAL(9,2) NOT NULL", "n", "0.00"),
    ("ALTER TABLE t ADD n DOUBLE NOT NULL DEFAULT 3", "n", "3"),
    ("ALTER TABLE t ADD n DOUBLE NOT NULL DEFAULT 0.5", "n", "0.5"),
    ("ALTER TABLE t ADD n DOUBLE UNSIGNED DEFAULT '0.1'", "n", "0.1"),
    ("ALTER TABLE t ADD n FLOAT DEFAULT -0.1", "n", "-0.1"),
    ("ALTER TABLE t ADD n TIME NOT NULL DEFAULT '00:00:00'", "n", "0"),
    ("ALTER TABLE t ADD n TIME(3) DEFAULT '-08:30:00.25'", "n", "-30600250000"),
    ("ALTER TABLE t ADD n VARBINARY(9) NOT NULL DEFAULT ''", "n", ""),
    ("ALTER TABLE t ADD n BINARY(3) NOT NULL DEFAULT ''", "n", "000000"),
    (
        "ALTER TABLE t ADD n VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'new'",
        "n",
        "new",
    ),
    ("ALTER TABLE t ADD n VARCHAR(9) NOT NULL", "n", ""),
    ("ALTER TABLE t ADD n CHAR(5) DEFAULT 'it''s'", "n", "it's"),
    ("ALTER TABLE t ADD n TEXT NOT NULL", "n", ""),
    ("ALTER TABLE t ADD n ENUM('x','y') NOT NULL", "n", "x"),
    ("ALTER TABLE t ADD n ENUM('x','y') DEFAULT 'y'", "n", "y"),
    ("ALTER TABLE t ADD n SET('x','y') DEFAULT ''", "n", ""),
    ("ALTER TABLE t ADD n DATE NOT NULL DEFAULT '2026-02-28'", "n", "2026-02-28"),
    ("ALTER TABLE t ADD n DATETIME(3) DEFAULT '2026-02-28 01:02:03.5'", "n", "2026-02-28 01:02:03.5"),
    ("ALTER TABLE t ADD n BIT(3) DEFAULT 5", "n", "5"),
    ("ALTER TABLE t ADD n YEAR DEFAULT 1999", "n", "1999"),
    ("ALTER TABLE t ADD n TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "n", "2026-01-02 03:04:05+00:00"),
    (
        "ALTER TABLE t ADD n TIMESTAMP NULL DEFAULT NOW() ON UPDATE CURRENT_TIMESTAMP()",
        "n",
        "2026-01-02 03:04:05+00:00",
    ),
]
BEGAN = 1_767_323_045  # 2026-01-02 03:04:05 UTC

STOP_CASES = [
    "DROP TABLE o, t",
    "DROP TABLE IF EXISTS `t` /* generated by server */",
    "DROP DATABASE shop",
    "DROP SCHEMA IF EXISTS `shop`",
    "CREATE OR REPLACE DATABASE shop",
    "RENAME TABLE t TO u",
    "RENAME TABLE t TO t_old, t_new TO t",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t RENAME AS u",
    "ALTER TABLE o RENAME t",
    "ALTER TABLE o RENAME TO shop.t",
    "ALTER TABLE o EXCHANGE PARTITION p0 WITH TABLE t",
    "ALTER TABLE o CONVERT PARTITION p0 TO TABLE `t`",
    "ALTER TABLE t ADD n INT DEFAULT 300, ADD m TINYINT DEFAULT 300",
    "ALTER TABLE t ADD n INT DEFAULT 1.5",
    "ALTER TABLE t ADD n INT DEFAULT 5 DEFAULT 6",
    "ALTER TABLE t ADD n INT DEFAULT 1e1",
    "ALTER TABLE t ADD n INT DEFAULT (5 + 0)",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT DEFAULT 5",
    "ALTER TABLE t ADD n FLOAT(4,1) DEFAULT 1.25",
    "ALTER TABLE t ADD n DOUBLE DEFAULT -0.0",
    "ALTER TABLE t ADD n DOUBLE DEFAULT 1e3",
    f"ALTER TABLE t ADD n FLOAT DEFAULT 4{'0' * 38}",
    "ALTER TABLE t ADD n TIME DEFAULT '1:2:3'",
    "ALTER TABLE t ADD n TIME DEFAULT '00:00:00.5'",
    "ALTER TABLE t ADD n TIME DEFAULT '838:59:59.5'",
    "ALTER TABLE t ADD n TIME DEFAULT 0",
    "ALTER TABLE t ADD n BINARY(3) DEFAULT 'x'",
    "ALTER TABLE t ADD n DECIMAL(4,1) DEFAULT 1.25",
    "ALTER TABLE t ADD n DECIMAL(40,1) DEFAULT 1",
    "ALTER TABLE t ADD n VARCHAR(9) DEFAULT 'x' 'y'",
    "ALTER TABLE t ADD n VARCHAR(9) DEFAULT 'a\\nb'",
    "ALTER TABLE t ADD n VARCHAR(9) DEFAULT 'ü'",
    "ALTER TABLE t ADD n VARCHAR(9) DEFAULT 'x '",
    "ALTER TABLE t ADD n VARCHAR(9) DEFAULT 5",
    "ALTER TABLE t ADD n ENUM('x','y') DEFAULT 1",
    "ALTER TABLE t ADD n ENUM('x','y') DEFAULT 'X'",
    "ALTER TABLE t ADD n DATE DEFAULT '0000-00-00'",
    "ALTER TABLE t ADD n DATE DEFAULT '26-02-28'",
    "ALTER TABLE t ADD n DATETIME DEFAULT '2026-02-28'",
    "ALTER TABLE t ADD n DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE t ADD n TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)",
    "ALTER TABLE t ADD n TIMESTAMP DEFAULT '2026-02-28 00:00:00'",
    "ALTER TABLE t ADD n YEAR DEFAULT 70",
    "ALTER TABLE t ADD n BIT(3) DEFAULT '5'",
    "ALTER TABLE t ADD n JSON DEFAULT (json_array())",
    "ALTER TABLE t ADD n TIMESTAMP",
    "ALTER TABLE t ADD n TIMESTAMP DEFAULT NULL",
    "ALTER TABLE t ADD n VARCHAR(40) DEFAULT (uuid())",
    "ALTER TABLE t ADD n INT AS (a + 1)",
    "ALTER TABLE t ADD n INT GENERATED ALWAYS AS (a + 1) STORED",
    "ALTER TABLE t ADD n INT AUTO_INCREMENT UNIQUE",
    "ALTER TABLE t ADD n SERIAL",
    "ALTER TABLE t ADD n UUID NOT NULL",
    "ALTER TABLE t ADD n INT PRIMARY KEY",
    "ALTER TABLE t ADD n INT REFERENCES p (id) ON DELETE CASCADE",
    "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (id) ON DELETE SET NULL",
    "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p (id) ON UPDATE CASCADE",
    "ALTER TABLE t MODIFY a BIGINT CHECK (a > 0)",
    "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
    "ALTER TABLE t ENGINE = Aria",
    "ALTER TABLE t DROP PRIMARY KEY",
    "ALTER TABLE t DROP INDEX `PRIMARY`",
    "DROP INDEX `PRIMARY` ON t",
    "ALTER TABLE t ADD PRIMARY KEY (a)",
    "ALTER IGNORE TABLE t ADD UNIQUE (a)",
    "ALTER TABLE t DROP PARTITION p0",
    "ALTER TABLE t TRUNCATE PARTITION ALL",
    "ALTER TABLE t DISCARD TABLESPACE",
    "ALTER TABLE t IMPORT TABLESPACE",
    "ALTER TABLE t ADD SYSTEM VERSIONING",
    "ALTER TABLE t DROP SYSTEM VERSIONING",
    "ALTER TABLE t ADD PERIOD FOR p (x, y)",
    "ALTER TABLE t DROP c, ADD COLUMN IF NOT EXISTS c INT",
    "ALTER TABLE t ORDER BY a",
    "CREATE TABLE t (id INT PRIMARY KEY)",
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY)",
    "CREATE SEQUENCE t",
    "ALTER TABLE T ADD n INT",
    "ALTER TABLE SHOP.t DROP c",
    'ALTER TABLE "t" ADD n INT DEFAULT (5 + 0)',
    'DROP TABLE "t"',
    "REPAIR TABLE t",
    "ALTER TABLE t ADD n INT DEFAULT 5 COMMENT 'x\\'y'",
    "ALTER TABLE t COMMENT 'x\\', ADD n INT DEFAULT 5 COMMENT 'y'",
    "ALTER TABLE t COMMENT 'never ends",
    "ALTER TABLE t ADD n INT /*! never ends",
    "ALTER TABLE .t ADD n INT DEFAULT (5 + 0)",
    "DROP TABLE .t",
    "ALTER TABLE übung ADD n INT",
]


def test_leaves_rows_alone() -> None:
    assert {sql: found for sql in HARMLESS_CASES if (found := of(sql)) != HARMLESS} == {}


def test_adds_empty_columns_and_drops_others() -> None:
    found = {sql: of(sql) for sql, *_ in COLUMNS_CASES}
    assert found == {sql: Columns(T, added, dropped) for sql, added, dropped in COLUMNS_CASES}


def test_adds_columns_with_a_value() -> None:
    for sql, column, value in FILLED_CASES:
        found = effect(sql, "shop", CHOSEN, sql_mode=0, time=BEGAN)
        assert isinstance(found, Columns), (sql, found)
        assert [(one.column, one.value) for one in found.filled] == [(column, value)], sql
        assert found.added == (column,), sql


def test_stops() -> None:
    for sql in STOP_CASES:
        found = of(sql)
        assert isinstance(found, Stop), (sql, found)
        assert found.table in CHOSEN, sql
        assert str(found.table) in found.way_out, sql


def test_leaves_rows_alone_on_mysql() -> None:
    found = {sql: effect(sql, "shop", CHOSEN, mysql=True) for sql in MYSQL_HARMLESS_CASES}
    assert found == dict.fromkeys(MYSQL_HARMLESS_CASES, HARMLESS)


@pytest.mark.parametrize(
    "version", ["", "50000", "80000", "99999", "100100", "110800", "M", "M100100", "M999999"]
)
def test_a_comment_with_code_in_a_log_was_run(version: str) -> None:
    """Servers write others as plain comments. Those of MariaDB are plain ones for MySQL."""
    flavour, number = version[:1].strip("0123456789"), version.lstrip("M")
    sql = f"ALTER TABLE t ADD n INT /*{flavour}!{number} , DROP c */ COMMENT 'x'"
    run, plain = Columns(T, ("n",), ("c",)), Columns(T, ("n",), ())
    for mysql in (False, True):
        found = effect(sql.replace(" COMMENT 'x'", ""), "shop", CHOSEN, mysql=mysql)
        assert found == (plain if mysql and flavour else run), mysql
    skipped = sql.replace(f"{flavour}!", f"{flavour} ")
    assert effect(skipped, "shop", CHOSEN) == effect(skipped, "shop", CHOSEN, mysql=True) == plain


def test_another_schema_is_not_concerned() -> None:
    for sql in STOP_CASES:
        if "shop" not in sql.lower() and "\\" not in sql and "never ends" not in sql:
            assert of(sql, "elsewhere") == HARMLESS, sql


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE TABLE t (id INT)", "created while the feed was running"),
        ("CREATE OR REPLACE TABLE t (id INT)", "CREATE OR REPLACE"),
        ("ALTER TABLE t ADD n INT DEFAULT (5 + 0)", "the server does not log the rows"),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", "IGNORE"),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (id) ON DELETE SET NULL", "foreign key"),
        ("ALTER TABLE T ADD n INT", "differs in case"),
        ("ALTER TABLE t DROP PRIMARY KEY", "primary key"),
    ],
)
def test_says_what_happened(sql: str, words: str) -> None:
    found = of(sql)
    assert isinstance(found, Stop)
    assert words in found.reason


def test_names_with_a_schema_need_no_default() -> None:
    assert of("ALTER TABLE shop.t ADD n INT", "") == Columns(T, ("n",), ())
    assert of("ALTER TABLE `shop` . `t` DROP c", "elsewhere") == Columns(T, (), ("c",))
    assert of("TRUNCATE elsewhere.t") == HARMLESS
    assert of("CREATE TEMPORARY TABLE t (id INT)") == HARMLESS
    assert of("DROP TEMPORARY TABLE IF EXISTS `t` /* generated by server */") == HARMLESS
    assert of("") == of("# Dummy event replacing event type 160") == HARMLESS


CREATED = "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)"


def test_what_the_shard_has_decides() -> None:
    """A table that the shard does not have can get its name; the rest of what names it does nothing."""
    assert of(CREATED) == HARMLESS
    assert isinstance(effect(CREATED, "shop", CHOSEN, here={QUOTED: ()}), Stop)
    absent = ["DROP TABLE IF EXISTS t", "TRUNCATE t", "ALTER TABLE IF EXISTS t ADD n INT", "DROP SCHEMA shop"]
    for sql in absent:
        assert effect(sql, "shop", CHOSEN, here={}) == HARMLESS, sql
    for sql in ("RENAME TABLE o TO t", "ALTER TABLE o RENAME t", "CREATE TABLE t LIKE o"):
        assert isinstance(effect(sql, "shop", CHOSEN, here={}), Stop), sql
    both = effect("DROP TABLE IF EXISTS t, `my``table`", "shop", CHOSEN, here={QUOTED: ()})
    assert isinstance(both, Stop)
    assert both.table == QUOTED


def test_add_column_if_not_exists_adds_none_that_is_there() -> None:
    def with_c(sql: str) -> Effect:
        return effect(sql, "shop", CHOSEN, here={T: ("id", "c")})

    assert with_c("ALTER TABLE t ADD COLUMN IF NOT EXISTS C INT DEFAULT 5") == HARMLESS
    assert with_c("ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT NOT NULL, ADD n INT") == Columns(
        T, ("n",), ()
    )
    did = with_c("ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT DEFAULT 5")
    assert isinstance(did, Columns)
    assert [told.value for told in did.filled] == ["5"]
    for sql in (
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS n INT, ADD COLUMN IF NOT EXISTS n INT DEFAULT 5",
        "ALTER TABLE t ADD COLUMN c INT DEFAULT 5",
        "ALTER TABLE t DROP c, ADD COLUMN IF NOT EXISTS c INT DEFAULT 5",
    ):
        assert isinstance(with_c(sql), Stop), sql


def test_backslashes_count_as_the_sql_mode_says() -> None:
    hidden = "ALTER TABLE t COMMENT 'x\\', ADD n INT DEFAULT (5 + 0) COMMENT 'y'"
    seen = "ALTER TABLE t COMMENT 'x\\', ADD n INT COMMENT 'y\\'"
    escaped = "CREATE PROCEDURE p() BEGIN UPDATE t SET c = LENGTH('it\\'s'); END"
    plain = 1 << 20
    assert effect(escaped, "shop", CHOSEN, sql_mode=0) == HARMLESS
    assert effect(seen, "shop", CHOSEN, sql_mode=plain) == Columns(T, ("n",), ())
    stopped = effect(hidden, "shop", CHOSEN, sql_mode=plain)
    assert isinstance(stopped, Stop)
    assert "the server does not log the rows" in stopped.reason
    for sql, mode in [
        (escaped, plain),
        (escaped, None),
        (hidden, 0),
        (f"SET STATEMENT sql_mode=0 FOR {seen}", plain),
    ]:
        found = effect(sql, "shop", CHOSEN, sql_mode=mode)
        assert isinstance(found, Stop), (sql, mode)
        assert "cannot be read" in found.reason


@pytest.mark.parametrize("examples", [60, pytest.param(3000, marks=pytest.mark.wide)])
def test_never_raises(examples: int) -> None:
    @given(st.text(alphabet="t`'\"/*!M#-; \\\n.9ALTERDOPshopTABLEadintc,()", max_size=60))
    @settings(max_examples=examples, deadline=None)
    def is_told(noise: str) -> None:
        for sql in (noise, f"ALTER TABLE t {noise}", f"DROP {noise} t"):
            assert isinstance(of(sql), Harmless | Columns | Stop)

    is_told()
