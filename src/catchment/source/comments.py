"""Comments of tables and columns, for readers of the lake. The log does not tell them; catalogs do, as of now."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from catchment.model.epoch import TableShape
from catchment.model.errors import SourceError
from catchment.model.source import Endpoint
from catchment.model.table import ColumnComment, Comments, TableId
from catchment.source.each_shard import each_shard
from catchment.source.session import Session, connect

# A condition on one schema is one that MariaDB answers without a look at all others.
_TABLES = """
SELECT TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_TYPE = 'BASE TABLE' AND TABLE_COMMENT <> ''
"""
_COLUMNS = """
SELECT TABLE_NAME, COLUMN_NAME, COLUMN_COMMENT FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND COLUMN_COMMENT <> ''
"""

Found = Mapping[TableId, Comments]


def read_comments(session: Session, tables: Iterable[TableId]) -> Found:
    """The comments of some tables and of their columns. Those without any are left out."""
    wanted = set(tables)
    of_tables: dict[TableId, str] = {}
    of_columns: dict[TableId, list[ColumnComment]] = {}
    for schema in sorted({table.schema for table in wanted}):
        of_tables |= {TableId(schema, name): comment for name, comment in session.rows(_TABLES, (schema,))}
        for name, column, comment in session.rows(_COLUMNS, (schema,)):
            of_columns.setdefault(TableId(schema, name), []).append(ColumnComment(column, comment))
    return {
        table: Comments(of_tables.get(table, ""), tuple(of_columns.get(table, ())))
        for table in wanted & (of_tables.keys() | of_columns.keys())
    }


def commented(shape: TableShape, found: Sequence[Found]) -> TableShape:
    """A shape with the comments that its shards have. Of several the first counts. An excluded column has none."""
    told = [of_shard[shape.table] for of_shard in found if shape.table in of_shard]
    first = {one.column: one for comments in reversed(told) for one in comments.columns}
    columns = (first.get(column.column.name) for column in shape.kept)
    table = next((comments.table for comments in told if comments.table), "")
    return replace(shape, comments=Comments(table, tuple(one for one in columns if one is not None)))


def commented_now(shapes: Sequence[TableShape], endpoints: Sequence[Endpoint]) -> tuple[TableShape, ...]:
    """Shapes with the comments that these shards have now. Where one does not answer they stay as they are.

    Comments are for people, and no run waits for them.
    """

    known = {endpoint.shard: endpoint for endpoint in endpoints}

    def ask(shard: str) -> Found:
        with connect(known[shard]) as session:
            return read_comments(session, (shape.table for shape in shapes))

    try:
        found = list(each_shard(known, ask).values())
    except SourceError:
        return tuple(shapes)
    return tuple(commented(shape, found) for shape in shapes)
