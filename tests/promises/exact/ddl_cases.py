"""What DDL and rows may come in one epoch, by kinds of DDL that a feed follows."""

from tests.promises.exact.cases import Kind
from tests.world.servers.chosen import on_mysql

_NUMBERS = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
)
_THEN = "DELETE FROM t WHERE id = 1; INSERT INTO t (id) VALUES (77)"

_COLUMN = "ALTER TABLE t ADD COLUMN m INT DEFAULT 4"
TRUNCATED = Kind(
    begin=_NUMBERS,
    cases={
        "emptied": "TRUNCATE t",
        "emptied behind rows": "UPDATE t SET n = 1 WHERE id = 1; DELETE FROM t WHERE id = 2;"
        "INSERT INTO t VALUES (9, 9); TRUNCATE TABLE t",
        "emptied before rows": "TRUNCATE TABLE t; INSERT INTO t VALUES (2, 2), (4, 4)",
        "emptied among rows": "INSERT INTO t VALUES (4, 4); UPDATE t SET n = 1 WHERE id = 1; TRUNCATE t;"
        "INSERT INTO t VALUES (1, 1), (5, 5), (6, 6); DELETE FROM t WHERE id = 6",
        "emptied twice": "TRUNCATE t; INSERT INTO t VALUES (1, 1), (7, 7); TRUNCATE t; INSERT INTO t VALUES (8, 8)",
        "emptied before a column": f"TRUNCATE t; INSERT INTO t VALUES (1, 1); {_COLUMN};"
        "INSERT INTO t VALUES (2, 2, 2)",
        "emptied behind a column": f"INSERT INTO t VALUES (8, 8); {_COLUMN}; TRUNCATE t;"
        "INSERT INTO t (id) VALUES (1)",
        "emptied between columns": f"{_COLUMN}; TRUNCATE t; ALTER TABLE t DROP n",
    },
    then="DELETE FROM t WHERE id = 1; INSERT INTO t (id) VALUES (1), (77)",
)

_FILLED = "ALTER TABLE t ADD COLUMN m INT NOT NULL DEFAULT 4"
FILLED = Kind(
    begin=_NUMBERS,
    cases={
        "filled": _FILLED,
        "filled behind rows": f"UPDATE t SET n = 1 WHERE id = 1; DELETE FROM t WHERE id = 2; {_FILLED}",
        "filled before rows": f"{_FILLED}; UPDATE t SET n = 1 WHERE id = 1;"
        "INSERT INTO t VALUES (4, 4, 9), (5, 5, DEFAULT)",
        "filled among rows": f"INSERT INTO t VALUES (4, 4); UPDATE t SET n = 1 WHERE id = 1; {_FILLED};"
        "DELETE FROM t WHERE id = 2; UPDATE t SET m = 8 WHERE id IN (3, 4); INSERT INTO t VALUES (2, 2, 2)",
        "filled several": "ALTER TABLE t ADD COLUMN a INT DEFAULT 1, ADD COLUMN m INT NOT NULL DEFAULT 3, DROP n",
    },
    then=_THEN,
)
# Rows may get NULL instead of the value.
NULLABLE = Kind(
    begin=_NUMBERS,
    cases={
        "filled and NULL": "ALTER TABLE t ADD COLUMN m INT DEFAULT 4; UPDATE t SET m = NULL WHERE id = 1",
        "filled twice": f"INSERT INTO t VALUES (4, 4); {_FILLED}; INSERT INTO t VALUES (5, 5, 5);"
        "ALTER TABLE t DROP m; ALTER TABLE t ADD COLUMN m INT DEFAULT 6; UPDATE t SET n = 1 WHERE id = 1",
        "filled twice behind rows": f"INSERT INTO t VALUES (4, 4); {_FILLED}; ALTER TABLE t DROP m;"
        "ALTER TABLE t ADD COLUMN m INT DEFAULT 6",
        "filled and dropped": f"{_FILLED}; ALTER TABLE t DROP m; ALTER TABLE t ADD COLUMN m INT;"
        "INSERT INTO t VALUES (4, 4, 4)",
        "filled and another type": f"{_FILLED}; UPDATE t SET m = 9 WHERE id = 1;"
        "ALTER TABLE t DROP m, ADD COLUMN m VARCHAR(9) DEFAULT 'x'; INSERT INTO t VALUES (4, 4, 'y')",
        "filled in another case": "ALTER TABLE t ADD COLUMN M INT DEFAULT 4; INSERT INTO t (id, m) VALUES (4, 5)",
    },
    then=f"UPDATE t SET m = NULL WHERE id = 3; {_THEN}",
    single=("filled twice", "filled twice behind rows", "filled and dropped", "filled and another type"),
)

# Defaults as tools write them, of which a column of bytes is no text.
_BYTES = "n VARBINARY(4) NOT NULL DEFAULT x'00ff'"
WRITTEN = Kind(
    begin=("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"),
    cases={
        "with bytes": f"ALTER TABLE t ADD {_BYTES}",
        "with bytes among rows": f"INSERT INTO t VALUES (4, 4); ALTER TABLE t ADD {_BYTES}; "
        "UPDATE t SET n = x'fe' WHERE id = 1; INSERT INTO t VALUES (5, 5, '')",
        "written so": "ALTER TABLE t ADD n BINARY(4) DEFAULT x'00ff', ADD e BINARY(3) NOT NULL,"
        " ADD h INT NOT NULL DEFAULT 0x1f, ADD i DECIMAL(9,2) DEFAULT b'11',"
        " ADD k TINYINT(1) DEFAULT b'1', ADD l VARBINARY(4) DEFAULT 0xfff; UPDATE t SET a = 1 WHERE id = 1",
        "fractions written so": "ALTER TABLE t ADD n DOUBLE NOT NULL DEFAULT 0.1, ADD e FLOAT DEFAULT '-0.25',"
        " ADD h VARBINARY(9) DEFAULT '';"
        " UPDATE t SET a = 1 WHERE id = 1",
        "texts written so": "ALTER TABLE t ADD n VARCHAR(10) BINARY NOT NULL DEFAULT 'x',"
        " ADD e CHAR(5) ASCII DEFAULT x'4142',"
        " ADD f NCHAR(5) DEFAULT N'x', ADD g CHAR(5) CHARACTER SET latin1 BINARY NULL; UPDATE t SET a = 1 WHERE id = 1",
        "shapes": "ALTER TABLE t ADD n POINT NULL, ADD m GEOMETRYCOLLECTION NULL;"
        "UPDATE t SET n = POINT(1, 2) WHERE id = 1;"
        "INSERT INTO t VALUES (5, 5, NULL, ST_GeomFromText('GEOMETRYCOLLECTION(POINT(3 4))'))",
        "several in parentheses": "ALTER TABLE t ADD (n INT DEFAULT b'101', m INT CHECK (m <> 7), INDEX (n)), DROP a",
        "partitioned behind it": "ALTER TABLE t ADD n INT NOT NULL DEFAULT 0x1f PARTITION BY HASH (id) PARTITIONS 2",
    },
    then="DELETE FROM t WHERE id = 2; UPDATE t SET id = 77 WHERE id = 3",
)

# Types of MariaDB that its log shows as BINARY: the statement says what they are.
_UUID = "'123e4567-e89b-12d3-a456-426614174000'"
_WITH = f"UPDATE t SET u = {_UUID}, v = '2001:db8::1', w = '10.0.0.1' WHERE id = 1"
_AS_BINARY = "ALTER TABLE t ADD u UUID NULL, ADD v INET6 NULL AFTER id, ADD w INET4"
SHOWN_AS_BINARY = Kind(
    begin=(
        "CREATE TABLE t (id INT PRIMARY KEY, b BINARY(16), k UUID)",
        f"INSERT INTO t VALUES (1, REPEAT('ab', 8), {_UUID}), (2, NULL, NULL), (3, 'x', UUID())",
    ),
    cases={
        "untold": _AS_BINARY,
        "untold among rows": f"INSERT INTO t VALUES (4, 'y', NULL); {_AS_BINARY}; {_WITH};"
        f"INSERT INTO t (id, u, w) VALUES (5, {_UUID}, '10.0.0.2'); DELETE FROM t WHERE id = 2",
        "untold, then bytes": f"{_AS_BINARY}; {_WITH}; ALTER TABLE t ADD c BINARY(16) NULL;"
        "UPDATE t SET c = b, k = NULL",
        "untold renamed": "UPDATE t SET b = 'z' WHERE id = 2; ALTER TABLE t RENAME COLUMN k TO l;"
        "UPDATE t SET l = UUID() WHERE id = 1; INSERT INTO t VALUES (4, 'y', UUID())",
        "untold dropped for bytes": "DELETE FROM t WHERE id = 2; ALTER TABLE t DROP k;"
        "ALTER TABLE t ADD k BINARY(16) NULL;"
        "UPDATE t SET k = b",
        "bytes dropped for an untold one": "ALTER TABLE t DROP b, ADD b UUID NULL; UPDATE t SET b = k WHERE id = 1",
        "untold added and dropped": f"{_AS_BINARY}; {_WITH}; ALTER TABLE t DROP u; UPDATE t SET v = '::2' WHERE id = 2",
    },
    then="DELETE FROM t WHERE id = 3; INSERT INTO t (id) VALUES (77); UPDATE t SET id = 78 WHERE id = 1",
    single=("untold dropped for bytes", "bytes dropped for an untold one"),
)

TEXT = "ALTER TABLE t MODIFY v VARCHAR(50) CHARACTER SET utf8mb4"
LABELS = "ALTER TABLE t MODIFY e ENUM('x','y','z') NOT NULL DEFAULT 'z'"
LONG = "('a longer text 😀')"
WIDE = "ALTER TABLE t MODIFY n BIGINT, CHANGE COLUMN d d DECIMAL(12,4)"
BIG = "n = 1234567890123456789, d = 12345678.1234"
WIDENED = Kind(
    begin=(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARCHAR(5) CHARACTER SET utf8mb3, e ENUM('x','y') NOT NULL,"
        " d DECIMAL(6,2), b VARBINARY(4) NOT NULL) CHARACTER SET utf8mb4",
        "INSERT INTO t VALUES (1, 10, 'one', 'x', 1.5, 'a'), (2, 20, 'zwölf', 'y', -9999.99, 'bbbb'),"
        " (3, NULL, NULL, 'x', NULL, '')",
    ),
    cases={
        "longer": TEXT,
        "longer behind rows": f"UPDATE t SET v = 'abcde' WHERE id = 1; DELETE FROM t WHERE id = 2; {TEXT}",
        "longer before rows": f"{TEXT}; UPDATE t SET v = {LONG} WHERE id = 1;"
        f"INSERT INTO t (id, v, b) VALUES (4, {LONG}, '')",
        "longer among rows": f"INSERT INTO t (id, v, b) VALUES (4, 'four', ''); {TEXT};"
        f"UPDATE t SET v = {LONG} WHERE id IN (3, 4)",
        "to a large text": "UPDATE t SET n = 5; ALTER TABLE t MODIFY v MEDIUMTEXT;"
        "UPDATE t SET v = REPEAT('é', 70000)",
        "longer twice": f"INSERT INTO t (id, v, b) VALUES (4, 'four', ''); {TEXT};"
        f"UPDATE t SET v = {LONG} WHERE id = 1; ALTER TABLE t MODIFY v TEXT CHARACTER SET utf8mb4 FIRST;"
        "UPDATE t SET v = REPEAT('x', 60) WHERE id = 2",
        "labels": f"UPDATE t SET e = 'y' WHERE id = 1; {LABELS}; UPDATE t SET e = 'z' WHERE id = 2",
        "bytes": "ALTER TABLE t MODIFY b VARBINARY(9) NOT NULL; UPDATE t SET b = 'nine byte' WHERE id = 2;"
        "ALTER TABLE t MODIFY b BLOB NOT NULL; UPDATE t SET b = REPEAT('z', 1000) WHERE id = 3",
        "NULL allowed": "ALTER TABLE t CHANGE b b VARBINARY(4) COMMENT 'now with none' AFTER id;"
        "UPDATE t SET b = NULL",
        "no more NULL": "UPDATE t SET n = 0 WHERE n IS NULL; ALTER TABLE t MODIFY n INT NOT NULL DEFAULT 7, ADD k INT",
        "wider": WIDE,
        "wider behind rows": f"UPDATE t SET n = 7, d = -1 WHERE id = 1; DELETE FROM t WHERE id = 2; {WIDE}",
        "wider before rows": f"{WIDE}; UPDATE t SET {BIG} WHERE id = 1; INSERT INTO t (id, n, b) VALUES (4, -4, '')",
        "wider among rows": f"INSERT INTO t (id, n, d, b) VALUES (4, 4, 4, ''), (5, NULL, NULL, ''); {WIDE};"
        f"UPDATE t SET {BIG} WHERE id IN (1, 3); DELETE FROM t WHERE id = 2",
        "wider twice": "ALTER TABLE t MODIFY d DECIMAL(8,3); UPDATE t SET d = 99999.999 WHERE id = 1;"
        "ALTER TABLE t MODIFY d DECIMAL(9,3); UPDATE t SET d = 123456.5 WHERE id = 2;"
        f"{WIDE}; UPDATE t SET {BIG}",
        "wider and dropped": f"{WIDE}; UPDATE t SET {BIG}; ALTER TABLE t DROP v, MODIFY n BIGINT FIRST;"
        "ALTER TABLE t ADD v INT",
        "longer and dropped": f"{TEXT}; UPDATE t SET v = {LONG}; ALTER TABLE t DROP v; ALTER TABLE t ADD v INT;"
        "UPDATE t SET v = 4",
    },
    then="DELETE FROM t WHERE id = 1; INSERT INTO t (id, b) VALUES (77, 'b')",
    single=("wider and dropped", "longer and dropped"),
)

RENAME = "ALTER TABLE t RENAME COLUMN a TO c"
FURTHER = "ALTER TABLE t RENAME COLUMN c TO d"
_BACK = "ALTER TABLE t RENAME COLUMN c TO a"
RENAMED = Kind(
    begin=(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(9)) CHARACTER SET utf8mb4",
        "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, NULL)",
    ),
    cases={
        "renamed": RENAME,
        "renamed behind rows": f"UPDATE t SET a = 1 WHERE id = 1; DELETE FROM t WHERE id = 2; {RENAME}",
        "renamed before rows": f"{RENAME}; UPDATE t SET v = 'x' WHERE id = 1; INSERT INTO t VALUES (4, 4, 'y')",
        "renamed among rows": f"INSERT INTO t VALUES (4, 4, 'y'); UPDATE t SET v = 'n' WHERE id = 1; {RENAME};"
        "DELETE FROM t WHERE id = 2; UPDATE t SET c = 8 WHERE id = 3; INSERT INTO t VALUES (2, 2, 'z')",
        "by CHANGE": "UPDATE t SET a = 9 WHERE id = 2; ALTER TABLE t CHANGE COLUMN a größe INT FIRST",
        "a text renamed": "ALTER TABLE t CHANGE v w VARCHAR(9); UPDATE t SET w = 'more' WHERE id = 1",
        "renamed and wider": "UPDATE t SET a = 5 WHERE id = 3; ALTER TABLE t CHANGE a c BIGINT, CHANGE v w VARCHAR(50);"
        "UPDATE t SET c = 1234567890123, w = 'a longer text' WHERE id = 1",
        "renamed twice": f"{RENAME}; UPDATE t SET c = 5 WHERE id = 1; {FURTHER}",
        "renamed twice behind rows": f"UPDATE t SET a = 5 WHERE id = 1; {RENAME}; {FURTHER}",
        "renamed twice before rows": f"{RENAME}; {FURTHER}; UPDATE t SET v = 'x' WHERE id = 1",
        "renamed twice and wider": f"{RENAME}; UPDATE t SET c = 5 WHERE id = 1; ALTER TABLE t MODIFY c BIGINT;"
        f"UPDATE t SET c = 1234567890123 WHERE id = 2; {FURTHER}",
        "renamed back": f"UPDATE t SET a = 2 WHERE id = 2; {RENAME}; UPDATE t SET c = 5 WHERE id = 1; {_BACK};"
        "INSERT INTO t VALUES (4, 4, 'y')",
        "renamed back behind rows": f"{RENAME}; UPDATE t SET c = 5 WHERE id = 1; {_BACK}",
        "renamed back and forth": f"{RENAME}; {_BACK}; {RENAME}",
        "renamed beside others": "INSERT INTO t VALUES (4, 4, 'y'); ALTER TABLE t RENAME COLUMN a TO c,"
        " ADD COLUMN e INT NOT NULL DEFAULT 5, MODIFY v VARCHAR(30), ADD INDEX (id, v);"
        "UPDATE t SET e = 6 WHERE id = 1",
        "renamed and the name again": "ALTER TABLE t RENAME COLUMN a TO c, ADD COLUMN a INT DEFAULT 4;"
        "UPDATE t SET a = 1 WHERE id = 2",
        "renamed to a name that goes": "UPDATE t SET a = 3 WHERE id = 3; ALTER TABLE t DROP v, RENAME COLUMN a TO v",
        "added and renamed": "ALTER TABLE t ADD COLUMN m INT NOT NULL DEFAULT 6; UPDATE t SET m = 1 WHERE id = 1;"
        "ALTER TABLE t RENAME COLUMN m TO n; INSERT INTO t VALUES (4, 4, 'y', 9)",
        "added and renamed behind rows": "UPDATE t SET a = 1 WHERE id = 1; ALTER TABLE t ADD COLUMN m INT DEFAULT 6;"
        "ALTER TABLE t RENAME COLUMN m TO n",
        "renamed and dropped": f"UPDATE t SET a = 1; {RENAME}; UPDATE t SET c = 2; ALTER TABLE t DROP c",
    },
    then=_THEN,
    # Two shards cannot take a name from a column and give it to another in one epoch.
    single=("renamed and the name again", "renamed to a name that goes"),
)

_TWO = (
    "CREATE TABLE t (id INT PRIMARY KEY, c INT)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
)
ADDED = Kind(
    begin=_TWO,
    cases={
        "added": "ALTER TABLE t ADD n INT",
        "added among rows": "INSERT INTO t VALUES (3, 3); ALTER TABLE t ADD COLUMN n INT NULL DEFAULT NULL FIRST;"
        "UPDATE t SET n = 1 WHERE id = 1; INSERT INTO t (id, n) VALUES (4, 44); DELETE FROM t WHERE id = 2",
        "added several": "ALTER TABLE t ADD n VARCHAR(9) CHARACTER SET latin1 AFTER id, ADD m DECIMAL(9,2) COMMENT 'x',"
        " ADD INDEX (n), ALGORITHM=COPY; INSERT INTO t (id, n, m) VALUES (3, 'ü', 1.5)",
        "added and dropped": "ALTER TABLE t ADD n INT; INSERT INTO t (id, n) VALUES (3, 33);"
        "UPDATE t SET n = 11 WHERE id = 1; ALTER TABLE t DROP c",
        "added before another": "ALTER TABLE t ADD n INT; INSERT INTO t (id, n) VALUES (3, 33);"
        "UPDATE t SET n = 11 WHERE id = 1; ALTER TABLE t ADD m INT",
        "added before both": "ALTER TABLE t ADD n INT; INSERT INTO t (id, n) VALUES (3, 33);"
        "UPDATE t SET n = 11 WHERE id = 1; ALTER TABLE t DROP c, ADD m INT",
    },
    then="DELETE FROM t WHERE id = 1; INSERT INTO t (id, n) VALUES (77, 44)",
)
# A log that does not name columns cannot tell this one.
ESCAPED = Kind(
    _TWO,
    {
        "added where backslashes are plain": "SET sql_mode = 'NO_BACKSLASH_ESCAPES';"
        "ALTER TABLE t COMMENT 'x\\', ADD n INT COMMENT 'y\\'; INSERT INTO t VALUES (3, 3, 3)",
    },
    ADDED.then,
)
DROPPED = Kind(
    begin=_TWO,
    cases={
        "dropped": "ALTER TABLE t DROP c",
        "dropped among rows": "INSERT INTO t VALUES (3, 3); UPDATE t SET c = 9 WHERE id = 1;"
        "ALTER TABLE t DROP COLUMN c; INSERT INTO t VALUES (4); DELETE FROM t WHERE id = 2",
        "dropped in another case": "INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP COLUMN C; ALTER TABLE t ADD c INT",
        "dropped and the same again": "INSERT INTO t VALUES (3, 3), (4, 4); ALTER TABLE t DROP c;"
        "DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (5); ALTER TABLE t ADD c INT;"
        "INSERT INTO t VALUES (3, 33), (6, 6)",
        "dropped for another type": "INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c, ADD c BIGINT;"
        "INSERT INTO t VALUES (4, 4)",
        "dropped for another type and back": "INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c, ADD c BINARY(3);"
        "UPDATE t SET c = 'x' WHERE id = 1; ALTER TABLE t DROP c; INSERT INTO t VALUES (4); ALTER TABLE t ADD c INT;"
        "INSERT INTO t VALUES (5, 5)",
        "dropped for another type and no row": "INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c, ADD c BINARY(3)",
        "dropped behind an XA transaction": "INSERT INTO t VALUES (3, 3); XA START 'x'; INSERT INTO t VALUES (4, 4);"
        "XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'; ALTER TABLE t DROP c, ADD c VARCHAR(9);"
        "INSERT INTO t VALUES (5, 'x')",
    },
    then=_THEN,
    single=(
        "dropped in another case",
        "dropped and the same again",
        "dropped for another type",
        "dropped for another type and back",
        "dropped for another type and no row",
        "dropped behind an XA transaction",
    ),
)
OF_MARIADB = () if on_mysql() else (SHOWN_AS_BINARY,)
ALL = (TRUNCATED, FILLED, NULLABLE, WRITTEN, WIDENED, RENAMED, ADDED, DROPPED, *OF_MARIADB)
