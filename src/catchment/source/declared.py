"""How tables are declared on a shard: columns, keys, wording and comments, as its catalog has them now.

Many tables of a schema are asked for together.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from catchment.model.errors import Unsupported
from catchment.model.table import ColumnComment, Comments, Table, TableId, Wording
from catchment.source.catalog import Part, as_declared, unique_keys
from catchment.source.session import Session

# A condition on one schema, or on one table, is one that MariaDB answers without a look at all others.
_COLUMNS = """
SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, IS_NULLABLE,
    GENERATION_EXPRESSION <> '' AS COMPUTED, COLUMN_COMMENT
FROM information_schema.COLUMNS WHERE {} ORDER BY TABLE_NAME, ORDINAL_POSITION
"""
# STATISTICS has no order of indexes: it is asked for primary keys alone, which come first.
_PRIMARY = """
SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS
WHERE {} AND INDEX_NAME = 'PRIMARY' ORDER BY TABLE_NAME, SEQ_IN_INDEX
"""
_TABLES = "SELECT TABLE_NAME, TABLE_COLLATION, TABLE_COMMENT FROM information_schema.TABLES WHERE {}"
_OF_SCHEMA, _OF_TABLE = "TABLE_SCHEMA = %s", "TABLE_SCHEMA = %s AND TABLE_NAME = %s"
# Of so many tables of a schema each one is asked for by itself: the server opens all of a schema that is asked for.
_ONE_BY_ONE: Final = 4
# So many tables are remembered as catalogs declare them.
_TABLES_MAX: Final = 10_000
# Of these a type leaves open how long a value may be.
_WORDED = frozenset(
    (
        "char", "varchar", "tinytext", "text", "mediumtext", "longtext",
        "varbinary", "tinyblob", "blob", "mediumblob", "longblob",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Declared:
    """A table as one shard declares it."""

    table: Table
    wording: Wording
    comments: Comments


class _Said(NamedTuple):
    """A table in the words of the catalog: rows of _COLUMNS, its unique keys, and its row of _TABLES."""

    columns: tuple[tuple[Any, ...], ...]
    keys: tuple[Part, ...]
    about: tuple[Any, ...]


def read_declared(
    session: Session, tables: Collection[TableId], reserved: Collection[str] = ()
) -> dict[TableId, Declared | Unsupported]:
    """The tables as they are declared now, with the error of each for which `catalog.read_table` would raise. Many
    tables of a schema cost three statements together, and one for each that has no primary key."""
    return _read(session, tables, reserved, described=True)


def read_tables(
    session: Session, tables: Collection[TableId], reserved: Collection[str] = ()
) -> dict[TableId, Table | Unsupported]:
    """The same for whoever needs columns and keys alone. One statement less."""
    found = _read(session, tables, reserved, described=False)
    return {table: one.table if isinstance(one, Declared) else one for table, one in found.items()}


def _read(
    session: Session, tables: Collection[TableId], reserved: Collection[str], *, described: bool
) -> dict[TableId, Declared | Unsupported]:
    found: dict[TableId, Declared | Unsupported] = {}
    version = session.mysql_version or (0, 0, 0)
    for schema in sorted({table.schema for table in tables}):
        mine = sorted(table for table in tables if table.schema == schema)
        for table, said in _said(session, schema, mine, described=described):
            try:
                found[table] = _declared(table, said, version, session.leaves_generated_out, tuple(reserved))
            except Unsupported as why:
                found[table] = Unsupported(f"shard {session.endpoint.shard}, {why}")
    return found


def _said(
    session: Session, schema: str, tables: Sequence[TableId], *, described: bool
) -> Iterator[tuple[TableId, _Said]]:
    """The tables of a schema, which need not all be there."""
    if len(tables) <= _ONE_BY_ONE:
        for table in tables:
            args = (schema, table.name)
            columns = session.rows(_COLUMNS.format(_OF_TABLE), args)
            about = session.rows(_TABLES.format(_OF_TABLE), args) if described else []
            keys = unique_keys(session, table) if columns else []
            yield table, _Said(tuple(columns), tuple(keys), about[0] if about else ())
        return
    of_schema = _by_table(session.rows(_COLUMNS.format(_OF_SCHEMA), (schema,)))
    primary = _by_table(session.rows(_PRIMARY.format(_OF_SCHEMA), (schema,)))
    of_tables = _by_table(session.rows(_TABLES.format(_OF_SCHEMA), (schema,)) if described else ())
    for table in tables:
        columns = of_schema.get(table.name, [])
        keys = [("PRIMARY", column, True) for _, column in primary.get(table.name, ())]
        if columns and not keys:
            keys = unique_keys(session, table)
        yield table, _Said(tuple(columns), tuple(keys), of_tables.get(table.name, [()])[0])


def _by_table(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    """Rows by the name of their table, which is their first value."""
    found: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row)
    return found


@lru_cache(_TABLES_MAX)
def _declared(
    table: TableId, said: _Said, mysql: tuple[int, ...], leaves_computed_out: bool, reserved: tuple[str, ...]
) -> Declared:
    """What these words declare: a thousand shards that have a table alike have one value of it. Raises Unsupported."""
    computed, wording = [], {}
    comments = []
    for _, name, data_type, column_type, _, _, is_computed, comment in said.columns:
        if is_computed:
            computed.append(name)
        if data_type in _WORDED:
            wording[name] = column_type
        if comment:
            comments.append(ColumnComment(name, comment))
    _, collation, about = said.about or ("", "", "")
    left_out = computed if leaves_computed_out else ()
    return Declared(
        as_declared(table, [row[1:6] for row in said.columns], said.keys, left_out, mysql, reserved),
        Wording(wording, _charset_of(collation or ""), bool(computed)),
        Comments(about or "", tuple(comments)),
    )


def _charset_of(collation: str) -> str:
    """`latin1_bin` is of latin1; `uca1400_ai_ci` is of many (MariaDB 10.10)."""
    name = collation.partition("_")[0]
    return {"utf8": "utf8mb3", "uca1400": ""}.get(name, name)
