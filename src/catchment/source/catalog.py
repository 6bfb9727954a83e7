"""What tables a shard has, from information_schema."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from catchment.model.definition import DefinedColumn, Definition, hidden_name
from catchment.model.errors import Unsupported
from catchment.model.table import Column, Kind, Table, TableId, without_case
from catchment.source.bounds import source_name
from catchment.source.session import Session
from catchment.wire.cells.charsets import NO_CHARACTER
from catchment.wire.cells.types import from_catalog
from catchment.wire.log.metadata import of_expression, of_hash

_SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")

_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS FROM information_schema.TABLES
WHERE TABLE_SCHEMA NOT IN %s AND TABLE_TYPE <> 'VIEW' ORDER BY 1, 2
"""
_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, IS_NULLABLE
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
# SHOW INDEX keeps to the server's own order: the primary key, then unique keys of NOT NULL columns as they were
# defined. The log tells the first of them as the primary key.
_KEYS = "SHOW INDEX FROM {} WHERE Non_unique = 0"
_KEY_NAME, _COLUMN_NAME, _SUB_PART, _INDEX_TYPE = 2, 4, 7, 10
_Found = TypeVar("_Found")
# Of an index: its name, a column, None for an expression, and whether it has the whole column.
Part = tuple[str, str | None, bool]
_DEFAULT_CHARSET = re.compile(r"^\).*? (?:DEFAULT )?CHARSET=(\w+)", re.MULTILINE)

# Seen on MariaDB 10.11, MySQL 8.0 and 9.7: as `?` the catalog shows what lies beyond the basic plane (emoji).
_UNREAD = re.compile(rf"[?{NO_CHARACTER}]")

_STAR_IS_A_NAME = 90000  # seen: 8.0.15 gives all columns for SELECT `*`, 9.7.4 and MariaDB 10.11 that column

_GENERATED = """
SELECT COLUMN_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND IS_GENERATED = 'ALWAYS' ORDER BY ORDINAL_POSITION
"""

_LEFT_OUT = """
SELECT TABLE_SCHEMA, TABLE_NAME, GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION SEPARATOR ', ')
FROM information_schema.COLUMNS
WHERE DATA_TYPE IN ('tinyblob', 'blob', 'mediumblob', 'longblob', 'tinytext', 'text', 'mediumtext', 'longtext')
AND TABLE_SCHEMA NOT IN %s GROUP BY 1, 2
"""


def list_tables(session: Session, chosen: Callable[[TableId], bool]) -> dict[TableId, int]:
    """The chosen tables of a shard with the server's estimate of their rows.

    Raises Unsupported for a chosen sequence, system-versioned table or table of a non-transactional engine.
    """
    found: dict[TableId, int] = {}
    for table, rows in listed_tables(session, chosen).items():
        if isinstance(rows, Unsupported):
            raise rows
        found[table] = rows
    return found


def listed_tables(session: Session, chosen: Callable[[TableId], bool]) -> dict[TableId, int | Unsupported]:
    """As `list_tables`, but with the error of each table that it would raise for."""
    found: dict[TableId, int | Unsupported] = {}
    for schema, name, kind, engine, estimate in session.rows(_TABLES, (_SYSTEM,)):
        table = TableId(schema, name)
        if not chosen(table):
            continue
        found[table] = int(estimate or 0)
        where = f"shard {session.endpoint.shard}, {table}"
        if kind != "BASE TABLE":
            found[table] = Unsupported(
                f"{where}: a {str(kind).lower()} is not carried; exclude it in the feed's tables"
            )
        elif engine != "InnoDB":
            found[table] = Unsupported(
                f"{where}: engine {engine} is not transactional, its copy cannot be exact; "
                f"ALTER TABLE {source_name(table)} ENGINE=InnoDB, or exclude it"
            )
    return found


def parted(
    found: Mapping[TableId, _Found | Unsupported],
) -> tuple[dict[TableId, Unsupported], dict[TableId, _Found]]:
    """The tables that cannot be carried, with their errors, and the others."""
    unusable, usable = {}, {}
    for table, one in found.items():
        if isinstance(one, Unsupported):
            unusable[table] = one
        else:
            usable[table] = one
    return unusable, usable


def read_table(
    session: Session,
    table: TableId,
    reserved: Collection[str] = (),
) -> Table:
    """A table's columns and key as they are now.

    The key is the primary key, else the first of the unique keys that have whole columns only, all NOT NULL. A
    prefix in the primary key counts as its column, as in the log: if prefixes are unique, so are whole values.
    Raises Unsupported when there is no key, or when a column of the key, or its type, is not carried. It also does for
    a name that is `reserved` (in lower case).
    """
    rows = session.rows(_COLUMNS, (table.schema, table.name))
    asks = bool(rows) and session.leaves_generated_out
    generated = session.rows(_GENERATED, (table.schema, table.name)) if asks else []
    keys = unique_keys(session, table) if rows else []
    version = session.mysql_version or (0, 0, 0)
    try:
        return as_declared(table, rows, keys, [name for (name,) in generated], version, reserved)
    except Unsupported as why:
        raise Unsupported(f"shard {session.endpoint.shard}, {why}") from why


def unique_keys(session: Session, table: TableId) -> list[Part]:
    """The parts of a table's unique keys, in the server's order of them."""
    rows = session.rows(_KEYS.format(source_name(table)))
    return [(row[_KEY_NAME], row[_COLUMN_NAME], row[_SUB_PART] is None) for row in rows]


def as_declared(
    table: TableId,
    rows: Sequence[Sequence[Any]],
    keys: Sequence[Part],
    generated: Sequence[str],
    mysql: tuple[int, ...],
    reserved: Collection[str],
) -> Table:
    """A table in the words of the catalog: name, data type, column type, character set and whether it is nullable
    ('YES') of each column, the parts of its unique keys, and the generated columns that the log leaves out. `mysql`:
    its version, zeros for MariaDB. Raises Unsupported as `read_table`, without the shard."""
    where = str(table)
    if not rows:
        raise Unsupported(f"{where}: the table is not there, or the user may not SELECT it")
    if "." in table.schema:
        raise Unsupported(
            f"{where}: a schema with a dot in its name cannot be told from a table's; exclude it"
        )
    if generated:
        raise Unsupported(
            f"{where}: the log of this server leaves generated columns out of UPDATE "
            f"({', '.join(generated)}), so their values cannot be followed; drop them, or exclude the table"
        )
    major, minor, patch = mysql
    version = major * 10000 + minor * 100 + patch
    columns = []
    nullable = set()
    for name, data_type, column_type, charset, is_nullable in rows:
        if without_case(name) in reserved:
            raise Unsupported(
                f"{where}, column {name}: the lake's tables use this name themselves; exclude the table"
            )
        try:
            columns.append(Column(name, from_catalog(data_type, column_type, charset)))
        except Unsupported as error:
            raise Unsupported(f"{where}, column {name}: {error}; exclude the table") from error
        _must_have_its_name_alone(columns[-1], version, where)
        if is_nullable == "YES":
            nullable.add(name)
    indexes: dict[str, list[str | None]] = {}
    partial = {index for index, column, whole in keys if (not whole and index != "PRIMARY") or column is None}
    for index, column, _ in keys:
        indexes.setdefault(index, []).append(column)
    for index, names in indexes.items():
        if index not in partial and not nullable.intersection(names):
            found = Table(table, tuple(columns), tuple(name for name in names if name is not None))
            _must_tell_rows_apart(found, where)
            return found
    raise Unsupported(
        f"{where}: there is no primary key and no unique key of NOT NULL columns; add one or exclude the "
        "table"
    )


def read_definition(session: Session, table: TableId) -> Definition:
    """A table's definition as it is now, for a log that does not describe itself. Raises as `read_table`, and
    Unsupported for labels that the catalog does not tell."""
    key = read_table(session, table).key
    columns = []
    for name, data_type, column_type, charset, nullable in session.rows(_COLUMNS, (table.schema, table.name)):
        if data_type in ("enum", "set") and _UNREAD.search(column_type):
            raise Unsupported(
                f"shard {session.endpoint.shard}, {table}, column {name}: a '?' or U+FFFD in the labels that the "
                "catalog shows may stand for another character; set binlog_row_metadata=FULL on the server"
            )
        columns.append(DefinedColumn(name, column_type, charset or "", nullable == "YES"))
    keys = session.rows(_KEYS.format(source_name(table)))
    hashed = dict.fromkeys(row[_KEY_NAME] for row in keys if row[_INDEX_TYPE] == "HASH")
    columns += [
        DefinedColumn(hidden_name(f"DB_ROW_HASH_{n}"), "bigint unsigned") for n, _ in enumerate(hashed, 1)
    ]
    made = session.row("SHOW CREATE TABLE " + source_name(table))
    charset = _DEFAULT_CHARSET.search(str(made[1])) if made else None
    return Definition(table, tuple(columns), key, charset[1] if charset else "")


def _must_have_its_name_alone(column: Column, version: int, where: str) -> None:
    """Raise Unsupported for a column that the log shows as one of the server's own, or a SELECT as all of them.
    `version`: 0 for MariaDB."""
    if column.name == "*" and 0 < version < _STAR_IS_A_NAME:
        raise Unsupported(
            f"{where}, column *: this MySQL takes the name for all columns, however it is quoted; rename the column or "
            "exclude the table"
        )
    if of_expression(column.name, version):
        kept = "MySQL 8.0 names the columns so that it keeps for indexes over expressions"
    elif of_hash(column.name, column.type, version):
        kept = "MariaDB names the columns so that it keeps for UNIQUE keys of long columns"
    else:
        return
    raise Unsupported(
        f"{where}, column {column.name}: {kept}, and the log does not tell them apart; rename the column or exclude "
        "the table"
    )


def _must_tell_rows_apart(table: Table, where: str) -> None:
    """Raise Unsupported for key columns of which two values are one in the lake."""
    for column in table.key_columns:
        if column.type.kind is Kind.ENUM and "" in column.type.labels:
            raise Unsupported(
                f"{where}, key column {column.name}: the empty label and the invalid value 0 of an ENUM are the same "
                "text; take the label out or exclude the table"
            )
        if column.type.kind is Kind.GEOMETRY:
            raise Unsupported(
                f"{where}, key column {column.name}: a spatial value is no key; exclude the table"
            )


def left_out_columns(session: Session) -> dict[TableId, str]:
    """The columns that row events lack with binlog_row_image=NOBLOB, by table.

    These are BLOB and TEXT of all sizes, with JSON of MariaDB. JSON of MySQL, GEOMETRY and VECTOR are never left out
    (seen on MariaDB 10.11 and 11.8, MySQL 8.0 and 9.7).
    """
    rows = session.rows(_LEFT_OUT, (_SYSTEM,))
    return {TableId(schema, name): str(names) for schema, name, names in rows}
