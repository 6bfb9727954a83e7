"""How tables are declared on a shard, where a type leaves it open: how long texts and bytes may be."""

from collections.abc import Iterable

from catchment.model.table import TableId, Wording
from catchment.source.session import Session

# A condition on one schema is one that MariaDB answers without a look at all others.
_COLUMNS = """
SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND DATA_TYPE IN ('char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext',
    'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')
"""
# MariaDB has NULL for none, MySQL an empty text.
_COMPUTED = """
SELECT DISTINCT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND GENERATION_EXPRESSION <> ''
"""
_TABLES = "SELECT TABLE_NAME, TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"


def read_wordings(session: Session, tables: Iterable[TableId]) -> dict[TableId, Wording]:
    """The wording of some tables as they are now. The character set is empty where the collation does not name it."""
    wanted = set(tables)
    columns: dict[TableId, dict[str, str]] = {table: {} for table in wanted}
    charsets: dict[TableId, str] = {}
    computed: set[TableId] = set()
    for schema in sorted({table.schema for table in wanted}):
        for name, column, declared in session.rows(_COLUMNS, (schema,)):
            columns.setdefault(TableId(schema, name), {})[column] = declared
        for name, collation in session.rows(_TABLES, (schema,)):
            charsets[TableId(schema, name)] = _charset_of(str(collation or ""))
        computed |= {TableId(schema, name) for (name,) in session.rows(_COMPUTED, (schema,))}
    return {table: Wording(columns[table], charsets.get(table, ""), table in computed) for table in wanted}


def _charset_of(collation: str) -> str:
    """`latin1_bin` is of latin1; `uca1400_ai_ci` is of many (MariaDB 10.10)."""
    name = collation.partition("_")[0]
    return {"utf8": "utf8mb3", "uca1400": ""}.get(name, name)
