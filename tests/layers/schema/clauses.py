"""The clauses of ALTER TABLE by the grammars of MySQL 8.0 to 9.7 and MariaDB 10.5 to 11.8, and what a feed does with
each. The table is that of test_clauses.py.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

PASSES: Final = "leaves rows and columns as they are"
NULL: Final = "adds the column n, which is NULL in every row"
FOLLOWED: Final = "gives a column another name or definition, and every row keeps its value"
DROPPED: Final = "drops the column c"

# Clauses that both have, that MySQL alone has, from 8.0.15 on or in 9.7, and that MariaDB alone has.
OPTIONS: Final = {
    "both": (
        "COMMENT='x' ENGINE=InnoDB",
        "ENGINE='InnoDB' COMMENT 'x'",
        'ENGINE "innodb"',
        "ENGINE InnoDB, FORCE",
        "AUTO_INCREMENT 7, AVG_ROW_LENGTH=9 MAX_ROWS=9 MIN_ROWS 1",
        "PACK_KEYS=0 CHECKSUM=0 DELAY_KEY_WRITE=0 ROW_FORMAT=DYNAMIC",
        "PACK_KEYS=DEFAULT",
        "STATS_PERSISTENT=1 STATS_AUTO_RECALC=DEFAULT, STATS_SAMPLE_PAGES=9",
        "KEY_BLOCK_SIZE=0",
        "INSERT_METHOD=LAST",
        "CONNECTION='x'",
        "DISABLE KEYS",
        "ENABLE KEYS, ALGORITHM=COPY, LOCK=SHARED",
        "DISABLE KEYS, COMMENT 'y'",
    ),
    "mysql": (
        "TABLESPACE innodb_file_per_table",
        "COMPRESSION='none'",
        "ENCRYPTION='N'",
        "SECONDARY_ENGINE=rapid",
        "SECONDARY_ENGINE=NULL",
    ),
    "mysql 9.7": ("AUTOEXTEND_SIZE=4M",),
    "mariadb": (
        "TRANSACTIONAL=0",
        "PAGE_CHECKSUM=1",
        "PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=3",
        "ENCRYPTED=NO",
        # As SHOW CREATE TABLE writes options of the engine.
        "`PAGE_COMPRESSED`=1 `page_compression_level`=3",
        "`ENCRYPTED`='NO', COMMENT 'x'",
    ),
}
# Of MySQL, too; the servers of tests have no plugin for the first ones, and no engine for the last ones.
NOT_ASKED: Final = (
    "ENCRYPTION='Y'",
    "COMPRESSION='zlib'",
    "SECONDARY_LOAD",
    "SECONDARY_UNLOAD",
)
INDEXES: Final = {
    "both": (
        "ADD INDEX (c)",
        "ADD KEY i USING BTREE (c, a DESC) COMMENT 'x' KEY_BLOCK_SIZE=8",
        "ADD UNIQUE (id, c)",
        "ADD CONSTRAINT u UNIQUE INDEX i (id, c(9))",
        "ADD CONSTRAINT UNIQUE KEY (id, c)",
        "ADD FULLTEXT INDEX f (c)",
        "DROP INDEX ka, ADD INDEX ka (b)",
        "RENAME INDEX ka TO kb",
        "RENAME KEY ka TO kb",
        "DROP KEY ka",
    ),
    "mysql": (
        "ADD INDEX i1 ((CAST(j->'$.a' AS UNSIGNED)))",
        "ADD INDEX i3 ((CAST(j->>'$.a' AS CHAR(10))), ((a >= 1)))",
        "ADD INDEX i (c) INVISIBLE, ALTER INDEX ka INVISIBLE",
        "ADD INDEX i (c) VISIBLE",
        "ADD FULLTEXT f (c) WITH PARSER ngram",
    ),
    "mysql 9.7": ("ADD INDEX i2 ((CAST(j->'$.a' AS UNSIGNED ARRAY)))",),
    "mariadb": (
        "ADD INDEX i (c) IGNORED",
        "ADD INDEX IF NOT EXISTS ka (c)",
        "ALTER INDEX ka IGNORED",
        "ALTER KEY ka NOT IGNORED",
        "DROP INDEX IF EXISTS nothing",
        "RENAME INDEX IF EXISTS ka TO kb",
    ),
    "mariadb 11.8": (
        "ADD v VECTOR(3) NOT NULL DEFAULT x'000000000000000000000000', ADD VECTOR INDEX (v) M=6",
        "ADD v VECTOR(3) NOT NULL, ADD VECTOR INDEX (v) M=6 DISTANCE=euclidean",
        "ADD v VECTOR(3) NOT NULL, ADD VECTOR KEY `i` (`v`) `M`=6 `DISTANCE`='cosine'",
        "ADD v VECTOR(3) NOT NULL, ADD VECTOR (v)",
        "ADD v VECTOR(3) NOT NULL, ADD VECTOR text (`v`)",
    ),
}
CONSTRAINTS: Final = {
    "both": (
        *(f"ADD CONSTRAINT ck CHECK (a {mark} -8)" for mark in (">=", "<>", "!=", ">")),
        "ADD CHECK (a <= 99 OR b LIKE 'x%')",
        "ADD CHECK (a < 99 && NOT a <=> 98 || b REGEXP 'x')",
        "ADD CONSTRAINT CHECK (a IS NULL OR a BETWEEN -9 AND 99)",
        "DROP FOREIGN KEY fk",
        "ADD FOREIGN KEY (s) REFERENCES p (id)",
        "ADD CONSTRAINT f FOREIGN KEY (s) REFERENCES p (id) ON DELETE RESTRICT ON UPDATE NO ACTION",
        "ADD CONSTRAINT FOREIGN KEY f (s) REFERENCES p (id) ON UPDATE RESTRICT",
    ),
    "mysql": ("ADD CONSTRAINT f FOREIGN KEY (s) REFERENCES p (id) MATCH SIMPLE",),
    "mysql 9.7": (
        "ADD CONSTRAINT CHECK (a <> 0) NOT ENFORCED",
        "ADD CONSTRAINT ck CHECK (a >= -8) ENFORCED",
        "ALTER CHECK known NOT ENFORCED",
        "ALTER CONSTRAINT known ENFORCED",
        "DROP CHECK known",
        "DROP CONSTRAINT known",
    ),
    "mariadb": (
        "DROP CONSTRAINT known",
        "ADD CONSTRAINT IF NOT EXISTS ck CHECK (a > -9)",
        "ADD CONSTRAINT f FOREIGN KEY IF NOT EXISTS (s) REFERENCES p (id)",
        "DROP FOREIGN KEY IF EXISTS fk",
        "DROP CONSTRAINT IF EXISTS known",
    ),
}
OF_COLUMNS: Final = {
    "both": ("ALTER a SET DEFAULT 7", "ALTER COLUMN a DROP DEFAULT", "ALTER b SET DEFAULT 'x, y'"),
    "mysql": ("ALTER a SET DEFAULT (1 + 1)",),
    "mysql 9.7": ("ALTER a SET INVISIBLE", "ALTER COLUMN a SET VISIBLE"),
    "mariadb": (
        "ALTER a SET DEFAULT NEXT VALUE FOR numbers",
        "ALTER COLUMN IF EXISTS a SET DEFAULT 7",
        "ADD COLUMN IF NOT EXISTS a INT NOT NULL DEFAULT 7",
    ),
}
PARTITIONS: Final = {
    "both": (
        "COMMENT 'x' PARTITION BY HASH (id) PARTITIONS 2",
        "ADD INDEX i (c), ENGINE=InnoDB PARTITION BY KEY ()",
    ),
}
DROPS: Final = {
    "both": ("DROP c", "DROP COLUMN c", "DROP COLUMN c RESTRICT", "DROP c CASCADE"),
    "mariadb": ("DROP COLUMN IF EXISTS c",),
}
DEFINED: Final = {
    "both": (
        "MODIFY b VARCHAR(20) BINARY",
        "MODIFY b VARCHAR(30) COLLATE utf8mb4_bin",
        "CHANGE s z BIGINT DEFAULT 5 COMMENT 'x'",
        "RENAME COLUMN s TO z",
    ),
    "mysql 9.7": ("MODIFY s BIGINT VISIBLE COLUMN_FORMAT DYNAMIC", "MODIFY s BIGINT CHECK (s <> 98)"),
    "mariadb": (
        "MODIFY s BIGINT CHECK (s <> 98)",
        "MODIFY c VARCHAR(40) COMPRESSED",
        "MODIFY s BIGINT INVISIBLE",
    ),
}
# Declarations of a column that has NULL in every row.
NULLS: Final = {
    "both": (
        "INT NULL CHECK (n <> 7)",
        "INT CHECK (n >= 7 AND n <= 9 OR n LIKE '%7')",
        "INT UNIQUE KEY COMMENT 'x'",
        "INT REFERENCES p (id) ON DELETE RESTRICT",
        "INT SIGNED DEFAULT NULL AFTER a",
        "DATETIME(6) NULL ON UPDATE CURRENT_TIMESTAMP(6)",
        "NATIONAL VARCHAR(5) NULL",
        "NATIONAL CHAR VARYING(5)",
        "NCHAR(5)",
        "NCHAR VARCHAR(5)",
        "CHAR(5) CHARACTER SET latin1 BINARY NULL",
        "CHAR(5) ASCII",
        "CHAR(5) UNICODE",
        "VARCHAR(5) BYTE",
        "LONG VARCHAR",
        "LONG VARBINARY",
        "ENUM('a') BINARY",
        "POINT NULL",
        "GEOMETRY",
        "LINESTRING",
        "POLYGON",
        "MULTIPOINT",
        "MULTILINESTRING",
        "MULTIPOLYGON",
        "GEOMETRYCOLLECTION",
        "JSON",
    ),
    "mysql": (
        "POINT SRID 4326 NULL",
        "GEOMCOLLECTION NULL",
        "INT NULL COLUMN_FORMAT DYNAMIC STORAGE DISK",
    ),
    "mysql 9.7": (
        "INT DEFAULT (NULL)",
        "INT CONSTRAINT ck CHECK (n > 0)",
        "INT NULL CHECK (n <> 7) NOT ENFORCED",
        "INT NULL VISIBLE",
        "INT NOT SECONDARY",
        "VECTOR(3)",
        "VARCHAR(5) COLLATE binary",
    ),
    "mariadb": (
        "TIMESTAMP NULL DEFAULT (NULL)",
        "UUID NULL",
        "INET6",
        "INET4 NULL UNIQUE COMMENT 'x'",
        "VARCHAR(5) COLLATE DEFAULT",
        "POINT REF_SYSTEM_ID=4326",
        "TEXT COMPRESSED",
        "VARBINARY(9) COMPRESSED=zlib",
        "INT INVISIBLE",
    ),
    "mariadb 11.8": ("VECTOR(3) NULL",),
}
# Texts and numbers in parentheses, as tools write them since MySQL takes a default of a TEXT in no other form (8.0.13).
# MySQL 8.0.15 has none of them beside GTIDs.
_IN_PARENTHESES: Final[dict[str, object]] = {
    "INT DEFAULT (7)": 7,
    "INT NOT NULL DEFAULT ('5')": 5,
    "BIGINT UNSIGNED DEFAULT ((18446744073709551615))": (1 << 64) - 1,
    "TINYINT(1) NOT NULL DEFAULT (false)": 0,
    "BIT(8) DEFAULT (5)": b"\5",
    "DECIMAL(9,2) DEFAULT (-1.5)": Decimal("-1.5"),
    "DOUBLE DEFAULT ('5')": 5.0,
    "YEAR DEFAULT ('2020')": 2020,
    "DATE DEFAULT ('2026-02-28')": date(2026, 2, 28),
    "DATETIME(3) DEFAULT ('2026-02-28 01:02:03.5')": datetime(2026, 2, 28, 1, 2, 3, 500000),
    "ENUM('a','b') DEFAULT ('b')": "b",
    "SET('a','b') DEFAULT ('a')": "a",
    "CHAR(5) CHARACTER SET ucs2 DEFAULT ('x')": "x",
    "VARCHAR(9) DEFAULT (_utf8mb4'x')": "x",
    "TEXT NOT NULL DEFAULT ('')": "",
    "LONGTEXT DEFAULT ('[]')": "[]",
}
# Declarations of a column, and the value that it has in every row, as the driver gives it.
VALUES: Final[dict[str, dict[str, object]]] = {
    "both": {
        "BIT(1) NOT NULL DEFAULT b'0'": b"\0",
        "BIT(3) DEFAULT b'101'": b"\5",
        "BIT(12) DEFAULT B'000000000101'": b"\0\5",
        "BIT(12) DEFAULT x'0ff1'": b"\x0f\xf1",
        "BIT(12) DEFAULT 0xff1": b"\x0f\xf1",
        "TINYINT(1) DEFAULT b'1'": 1,
        "INT NOT NULL DEFAULT 0x1f": 31,
        "INT DEFAULT 0b101": 5,
        "BIGINT UNSIGNED DEFAULT 0xffffffffffffffff": (1 << 64) - 1,
        "DECIMAL(9,2) DEFAULT 0x1f": 31,
        "DECIMAL(9,2) DEFAULT b'11'": 3,
        "DOUBLE DEFAULT 0x1f": 31.0,
        "DOUBLE NOT NULL DEFAULT 0.1": 0.1,
        "DOUBLE DEFAULT '-12.345678901234567890'": -12.34567890123456789,
        "FLOAT DEFAULT 0.25": 0.25,
        "TIME NOT NULL DEFAULT '00:00:00'": timedelta(0),
        "TIME(3) DEFAULT '-08:30:00.25'": -timedelta(hours=8, minutes=30, milliseconds=250),
        "VARBINARY(4) NOT NULL DEFAULT ''": b"",
        "BINARY(2) NOT NULL DEFAULT ''": b"\0\0",
        "YEAR DEFAULT 0x7cf": 1999,
        "VARBINARY(4) NOT NULL DEFAULT x'00ff'": b"\0\xff",
        "VARBINARY(4) DEFAULT x''": b"",
        "VARBINARY(4) DEFAULT 0xfff": b"\x0f\xff",
        "VARBINARY(4) DEFAULT b'100000001'": b"\1\1",
        "BINARY(4) DEFAULT x'00ff'": b"\0\xff\0\0",
        "BINARY(4) DEFAULT b'1'": b"\1\0\0\0",
        "BINARY(3) NOT NULL": b"\0\0\0",
        "BLOB NOT NULL": b"",
        "CHAR(5) CHARACTER SET latin1 DEFAULT x'4142'": "AB",
        "CHAR(5) CHARACTER SET utf8mb4 DEFAULT 0x4142": "AB",
        "CHAR(5) ASCII DEFAULT b'1000001'": "A",
        "NCHAR(5) DEFAULT N'x'": "x",
        "NVARCHAR(5) DEFAULT n'ab'": "ab",
        "VARCHAR(5) DEFAULT _utf8mb4'x'": "x",
        "VARCHAR(10) BINARY NOT NULL DEFAULT 'x'": "x",
        "INT DEFAULT 5 CHECK (n > 0)": 5,
        "INT NOT NULL DEFAULT 5 COMMENT 'x' FIRST": 5,
    },
    "mysql": {
        "INT DEFAULT x'1f'": 31,
        "DECIMAL(9,2) DEFAULT x'11'": 17,
        "INT DEFAULT 5 COLUMN_FORMAT DYNAMIC STORAGE DISK": 5,
    },
    "mysql 9.7": {"VECTOR(3) NOT NULL": "", "INT NOT NULL DEFAULT 5 VISIBLE": 5, **_IN_PARENTHESES},
    "mariadb": {
        **_IN_PARENTHESES,
        "BLOB DEFAULT x'00ff'": b"\0\xff",
        "VARCHAR(9) COMPRESSED NOT NULL DEFAULT 'x'": "x",
        "VARBINARY(100) COMPRESSED DEFAULT x'00ff'": b"\0\xff",
        "JSON DEFAULT '{}'": "{}",
    },
    "mariadb 11.8": {
        "VECTOR(3) NOT NULL": bytes(12),
        "VECTOR(3) NOT NULL DEFAULT x'000000000000000000000000'": bytes(12),
        "VECTOR(1) DEFAULT 0x0000803f": b"\0\0\x80\x3f",
    },
}
# What copies the table, with words of the reason. Some servers refuse some of it.
_UNLOGGED: Final = "the server does not log the rows that it fills"
_UNKNOWN: Final = "a statement changed it that Catchment does not follow"
COPIED: Final = {
    "ADD n INT DEFAULT b''": _UNLOGGED,  # MariaDB makes 0 of it, MySQL refuses it
    "ADD n BIT(2) DEFAULT b'111'": _UNLOGGED,  # too many bits
    "ADD n VARCHAR(5) DEFAULT x'41'": _UNLOGGED,  # the table's character set decides
    "ADD n CHAR(5) CHARACTER SET ucs2 DEFAULT x'4142'": _UNLOGGED,
    "ADD n ENUM('a','b') DEFAULT x'61'": _UNLOGGED,
    "ADD n VARBINARY(4) DEFAULT 'abc'": _UNLOGGED,  # the session's character set decides
    "ADD n VARCHAR(5) DEFAULT _ucs2'ab'": _UNLOGGED,
    "ADD n VARCHAR(3) DEFAULT N'x' 'y'": _UNLOGGED,
    "ADD n INT DEFAULT (5 + 0)": _UNLOGGED,
    "ADD n INT DEFAULT (0x1f)": _UNLOGGED,  # bytes or a number
    "ADD n ENUM('a','b','1') DEFAULT (1)": _UNLOGGED,  # the first label
    "ADD n BIT(8) DEFAULT ('5')": _UNLOGGED,
    "ADD n TEXT DEFAULT ('x' 'y')": _UNLOGGED,
    "ADD n INT NOT NULL DEFAULT (NULL)": _UNLOGGED,
    "ADD n TIMESTAMP NULL DEFAULT (CURRENT_TIMESTAMP)": _UNLOGGED,
    "ADD n INT DEFAULT 5 + 1": _UNLOGGED,
    "ADD n CHAR(36) DEFAULT uuid()": _UNLOGGED,
    "ADD n INT DEFAULT NEXT VALUE FOR numbers": _UNLOGGED,
    "ADD n DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)": _UNLOGGED,
    "ADD n TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)": _UNLOGGED,
    "ADD n TIME DEFAULT '1:02:03'": _UNLOGGED,
    "ADD n POINT NOT NULL": _UNLOGGED,
    "ADD n INT GENERATED ALWAYS AS (a + 1) VIRTUAL": _UNLOGGED,
    "ADD n INT AS (a + 1) PERSISTENT": _UNLOGGED,
    "ADD n INT AUTO_INCREMENT UNIQUE": _UNLOGGED,
    "ADD n SERIAL": _UNLOGGED,
    "ADD n BIGINT SERIAL DEFAULT VALUE": _UNLOGGED,
    "ADD n UUID NOT NULL": _UNLOGGED,
    "ADD n UUID DEFAULT UUID()": _UNLOGGED,
    "ADD n INET6 NOT NULL DEFAULT '::1'": _UNLOGGED,
    "ADD n INET4 DEFAULT '10.0.0.1'": _UNLOGGED,
    "ADD n INT PRIMARY KEY": "primary key",
    "ADD n INT KEY": "primary key",
    "ADD n INT WITHOUT SYSTEM VERSIONING": _UNKNOWN,
    "ADD n INT REFERENCES p (id) ON DELETE SET NULL": "foreign key",
    "ADD n XMLTYPE": _UNKNOWN,
    "ADD n INT, ADD PERIOD FOR x (d, e)": _UNKNOWN,
    "ADD SYSTEM VERSIONING": _UNKNOWN,
    "DROP SYSTEM VERSIONING": _UNKNOWN,
    "DROP PERIOD FOR x": _UNKNOWN,
    "DROP PARTITION p0": _UNKNOWN,
    "DROP c PARTITION BY HASH (id), COMMENT 'x'": _UNKNOWN,
    "TRUNCATE PARTITION p0": _UNKNOWN,
    "EXCHANGE PARTITION p0 WITH TABLE o": _UNKNOWN,
    "DROP PRIMARY KEY": "primary key",
    "DROP CONSTRAINT `PRIMARY`": "primary key",
    "ADD CONSTRAINT x PRIMARY KEY (a)": "primary key",
    "ADD CONSTRAINT f FOREIGN KEY (s) REFERENCES p (id) ON UPDATE SET DEFAULT": "foreign key",
    "MODIFY a BIGINT AUTO_INCREMENT UNIQUE": "another definition",
    "MODIFY a BIGINT AS (id)": "another definition",
    "MODIFY a BIGINT PRIMARY KEY": "another definition",
    "MODIFY b VARCHAR(90) CHARACTER SET DEFAULT": "another definition",
    "CONVERT TO CHARACTER SET latin1": _UNKNOWN,
    "DEFAULT CHARACTER SET latin1": _UNKNOWN,
    "COLLATE utf8mb4_bin": _UNKNOWN,
    "ORDER BY a": _UNKNOWN,
    "DISCARD TABLESPACE": _UNKNOWN,
    "IMPORT TABLESPACE": _UNKNOWN,
    "RENAME TO u": "renamed",
    "ENGINE=Aria": "another engine",
    "UNION=(o)": _UNKNOWN,
    "SEQUENCE=1": _UNKNOWN,
    "WITH SYSTEM VERSIONING": _UNKNOWN,
    "IETF_QUOTES=YES": _UNKNOWN,
    "SECONDARY_LOAD PARTITION (p0)": _UNKNOWN,
    "COMMENT='x' FORCE": _UNKNOWN,
    "ADD INDEX i (c) CLUSTERING=YES": _UNKNOWN,
    "ADD INDEX i c": _UNKNOWN,
    "ADD CONSTRAINT ck CHECK a > 0": _UNKNOWN,
    "ADD n INT,, ADD m INT": _UNKNOWN,
    "ADD n INT,": _UNKNOWN,
    "ADD (n INT, m INT) FIRST": _UNKNOWN,
    "DROP c NOW": _UNKNOWN,
}
