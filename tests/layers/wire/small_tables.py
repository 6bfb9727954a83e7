"""Tables of one column beside the key, one for each type and for each kind of JSON: small seeds for the fuzzer."""

import tempfile
from pathlib import Path
from typing import Final

from tests.layers.wire.answers import Session, run
from tests.layers.wire.odd_values import ODD
from tests.layers.wire.small_groups import GROUP_NAMES

LONG: Final = 300  # longer literals are left out: what a seed costs goes with its length

# MySQL's binary JSON, by the kind of its root value.
JSON: Final = {
    "json literal": ["CAST('null' AS JSON)", "CAST('true' AS JSON)"],
    "json int16": ["CAST('-5' AS JSON)"],
    "json uint16": ["JSON_EXTRACT(JSON_ARRAY(CAST(5 AS UNSIGNED)), '$[0]')"],
    "json int32": ["CAST('-70000' AS JSON)"],
    "json uint32": ["JSON_EXTRACT(JSON_ARRAY(CAST(70000 AS UNSIGNED)), '$[0]')"],
    "json int64": ["CAST('-5000000000' AS JSON)"],
    "json uint64": ["CAST('18446744073709551615' AS JSON)"],
    "json double": ["CAST('1.5e300' AS JSON)", "CAST('0.1' AS JSON)", "CAST(0e0 AS JSON)"],
    "json string": ["JSON_QUOTE('été \\n\\r')", "JSON_QUOTE(REPEAT('x', 200))"],
    "json decimal": [
        "CAST(-1.25 AS JSON)",
        "CAST(CAST(0.25 AS DECIMAL(2,2)) AS JSON)",
        "CAST(CAST(-7 AS DECIMAL(3,0)) AS JSON)",
    ],
    "json date": ["CAST(DATE'2024-02-29' AS JSON)"],
    "json time": ["CAST(TIME'-10:11:12.5' AS JSON)"],
    "json datetime": ["CAST(TIMESTAMP'2024-02-29 01:02:03.4' AS JSON)"],
    "json opaque": ["CAST(x'00ff10' AS JSON)", "CAST(b'101' AS JSON)", "CAST(REPEAT(x'00', 100) AS JSON)"],
    "json array": ["'[1, [], \"x\", null, 70000, 1.5, {}]'"],
    "json object": ['\'{"a": 1, "bc": {"d": [true]}, "": "e"}\''],
}
# Differences of JSON: the document before, and its change.
DIFFS: Final = {
    "json diff replace": ('[1, 2, "a long text"]', "JSON_REPLACE(c, '$[2]', 'another')"),
    "json diff insert": ('{"a": {"b": [1, 2]}, "long": "long text"}', "JSON_SET(c, '$.a.c', 1.5)"),
    "json diff insert in array": (
        '[[1, 2, 3], "long text, long text"]',
        "JSON_SET(c, '$[0][5]', 'x')",
    ),
    "json diff remove": ('{"a": {"b": [1, 2]}, "long": "long text"}', "JSON_REMOVE(c, '$.a.b[0]')"),
    "json diff remove key": (
        '{"a b": 1, "\\\\"": 2, "long": "long text, long text"}',
        'JSON_REMOVE(c, \'$."a b"\', \'$."\\\\""\')',
    ),
}
# Types that only the seeds have.
_MORE: Final = {
    "datetime(2)": ["'2024-02-29 01:02:03.45'", "'1000-01-01 00:00:00'", "'0000-00-00'"],
    "time(4)": ["'-01:02:03.4567'", "'10:00:00'", "'00:00:00.0001'"],
    "timestamp(1) null": ["'2024-02-29 01:02:03.4'", "'1970-01-01 00:00:01'", "'2037-01-01'"],
}
_CHINESE: Final = {
    "varchar(20) character set gb18030": ["'中😀é'", "_gb18030 x'8139ef30'", "_gb18030 x'8130813084318130'"],
    "enum('中','x','😀') character set gb18030": ["'中'", "'😀'", "'x'"],
}
_LITERALS: Final = {**ODD, **_MORE, **_CHINESE}
MARIADB_TYPES: Final = (*ODD, *_MORE)
VECTOR: Final = "vector(3)"  # MySQL 9
MYSQL_TYPES: Final = (
    *_CHINESE,
    "tinyint",
    "int",
    "bigint unsigned",
    "decimal(10,2)",
    "time(6)",
    "datetime(6)",
    "geometry",
    "text",
)

_NAMED: Final = (
    [(f"t{i}", kind) for i, kind in enumerate((*_LITERALS, VECTOR))]
    + [(f"j{i}", kind) for i, kind in enumerate(JSON)]
    + [(f"d{i}", kind) for i, kind in enumerate(DIFFS)]
)
NAME_OF: Final = dict(_NAMED) | GROUP_NAMES
# What is done to a table of id, a (INT) and b (VARCHAR): columns that are followed by a definition.
ALTERED: Final = "altered"
_ALTERS: Final = (
    "ADD c varchar(20) CHARACTER SET latin1 AFTER a",
    "ADD COLUMN c char(5) NULL",
    "DROP a, ADD n decimal(5,2) unsigned FIRST",
    "ADD c enum('x','é') NULL, ADD d bit(3), ADD KEY (a)",
    "DROP COLUMN b, ADD e datetime(3) NULL AFTER id, ADD f longtext COLLATE utf8mb4_bin",
    "ADD c json /* or not */, DROP a -- the rest",
)
_TABLE_OF: Final = {name: table for table, name in _NAMED}
OF_MARIADB: Final = frozenset(MARIADB_TYPES)
OF_MYSQL: Final = frozenset((*JSON, *DIFFS, *MYSQL_TYPES, "json large array", "json large object"))


def _short(literal: str) -> bool:
    digits = "".join(c if c.isdigit() else " " for c in literal).split()
    return not literal.startswith("repeat") or int(digits[-1]) <= LONG


def write_types(session: Session, schema: str, names: tuple[str, ...], of: str = "") -> None:
    """Rows with all short values of those types, in part updated and deleted; `of` ends the tables' names."""
    for name in names:
        table = f"{schema}.{_TABLE_OF[name]}{of}"
        values = [literal for literal in _LITERALS[name] if _short(literal)]
        if "compressed" in name:
            values.append("repeat('ab', 150)" if "30" not in name and "63" not in name else "repeat('a', 29)")
        rows = ", ".join(f"({n}, {value})" for n, value in enumerate(values))
        rest = ", ".join(f"({n + 50}, {value})" for n, value in enumerate(values))
        run(session, f"CREATE TABLE {table} (id int PRIMARY KEY, c {name})")
        run(
            session, f"INSERT INTO {table} (id, c) VALUES {rows}", f"UPDATE {table} SET id = id + 100 LIMIT 2"
        )
        run(session, f"DELETE FROM {table} LIMIT 2", f"INSERT INTO {table} (id, c) VALUES {rest}")


def write_mysql_types(session: Session, schema: str) -> None:
    """Types of MySQL's log, JSON by kinds, and differences of JSON."""
    run(session, "SET sql_mode = ''")
    write_types(session, schema, MYSQL_TYPES)
    for name, values in JSON.items():
        table = f"{schema}.{_TABLE_OF[name]}"
        run(session, f"CREATE TABLE {table} (id int PRIMARY KEY, c json)")
        for n, value in enumerate(values):
            run(session, f"INSERT INTO {table} VALUES ({n}, {value})")
    for name, (before, after) in DIFFS.items():
        table = f"{schema}.{_TABLE_OF[name]}"
        run(
            session,
            f"CREATE TABLE {table} (id int PRIMARY KEY, c json)",
            f"INSERT INTO {table} VALUES (1, '{before}')",
        )
        run(session, "SET binlog_row_value_options = PARTIAL_JSON", f"UPDATE {table} SET c = {after}")
        run(session, "SET binlog_row_value_options = ''")


def write_vectors(session: Session, schema: str) -> None:
    table = f"{schema}.{_TABLE_OF[VECTOR]}"
    run(session, f"CREATE TABLE {table} (id int PRIMARY KEY, c {VECTOR})")
    run(session, f"INSERT INTO {table} VALUES (1, STRING_TO_VECTOR('[1, -2.5, 0]'))")


def write_statements(session: Session, schema: str) -> None:
    """MariaDB: statements logged as such, with what stands in front of them, and a file that is loaded."""
    run(session, f"CREATE TABLE {schema}.s (id int AUTO_INCREMENT PRIMARY KEY, a varchar(100), b double)")
    run(session, "SET SESSION binlog_format = STATEMENT", "SET @v = 'é'")
    run(session, f"INSERT INTO {schema}.s (a, b) VALUES (@v, RAND())")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows"
        path.write_text("1\tx\t1\n2\ty\t2\n")
        path.chmod(0o644)
        Path(directory).chmod(0o755)
        run(session, f"DELETE FROM {schema}.s", f"LOAD DATA INFILE '{path}' INTO TABLE {schema}.s")
        run(session, "SET SESSION binlog_format = ROW")


def create_altered(session: Session, schema: str, of: str) -> list[str]:
    """Tables that `alter` changes; their names."""
    names = [f"{ALTERED}{n}{of}" for n in range(len(_ALTERS))]
    for name in names:
        run(session, f"CREATE TABLE {schema}.{name} (id int PRIMARY KEY, a int unsigned, b varchar(20))")
    return names


def alter(session: Session, schema: str, of: str) -> None:
    """Change the columns of those tables, and insert a row behind that."""
    for n, actions in enumerate(_ALTERS):
        run(session, f"ALTER TABLE {schema}.{ALTERED}{n}{of} {actions}")
        run(session, f"INSERT INTO {schema}.{ALTERED}{n}{of} (id) VALUES (1)")
