"""The reader's rule of a lake table, as one SQL text for DuckDB and Spark (DESIGN 10).

state = base rows whose (shard, key) is not in changes, and the newest change per (shard, key) unless a delete

Of a table that keeps deleted rows, or versions that have ended, those do not count. One that keeps every change has
changes alone. Rows that a TRUNCATE took do not count either.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.table import ENDED
from catchment.model.treatment import Mode
from catchment.sink.delta.files import FileColumns
from catchment.sink.delta.layout import (
    DELETED,
    EPOCH,
    PART,
    SHARD,
    VERSION_FIELDS,
    arrow_schema,
    identity_columns,
)
from catchment.sink.delta.reading.values import (
    datafusion_typed,
    duckdb_type,
    duckdb_typed,
    spark_text,
    spark_typed,
)
from catchment.sink.reading import double_quoted, literal


class Dialect(NamedTuple):
    """An engine's SQL: how it quotes a name, and what makes it compare texts byte by byte. Keys are told apart so,
    whatever collation its session has. `text`: a text as a literal; `typed`: an expression as a value of a type;
    `unhexed`: the bytes of hexadecimal digits, which are an expression."""

    quote: Callable[[str], str]
    bytewise: str
    text: Callable[[str], str]
    typed: Callable[[str, pa.DataType], str]
    unhexed: str

    def value(self, text: str, kind: pa.DataType) -> str:
        """What a column came with, as `Fill` has it."""
        written = self.text(text)
        return self.unhexed.format(written) if pa.types.is_binary(kind) else self.typed(written, kind)


# Names beside those of columns: no column of a data file can have this one.
_NEWEST = _BASE = PART
# DuckDB's name for a row's place in its file, which a column of the source may have. For such a table an empty OVER
# numbers the rows: in the file's order, unless the setting is turned off (DuckDB, Order Preservation).
_NUMBER = "file_row_number"
_ORDERED = "preserve_insertion_order"
_UNORDERED = f"DuckDB reads this table right only with {_ORDERED} = true; set it"


def rule_sql(
    shape: TableShape, base: str, changes: str | None, dialect: Dialect, origin: bool, net: bool = False
) -> str:
    """Query over two sources (table expressions) with the table's physical columns; `changes` None: there
    are none. `net`: no (shard, key) stands twice among the changes.

    Gives the live columns under the source's names, with `origin` after `_shard` and `_epoch`.
    """
    columns, there = _output(shape, dialect, origin), _there(shape)
    lives = {
        Mode.SOFT_DELETE: f"{_BASE}.{DELETED} IS NOT TRUE",
        Mode.HISTORY: f"{_BASE}.{ENDED} IS NULL",
    }.get(shape.mode, there or "true")
    if changes is None:
        return f"SELECT {columns} FROM {base} AS {_BASE} WHERE {lives}"
    identity = [_bytewise(shape, name, dialect) for name in identity_columns(shape)]
    same = " AND ".join(f"c.{name} = {_BASE}.{name}" for name in identity)
    rank = f"row_number() OVER (PARTITION BY {', '.join(identity)} ORDER BY {EPOCH} DESC)"
    newest = f"(SELECT * FROM (SELECT *, {rank} AS {_NEWEST} FROM {changes}) AS r WHERE {_NEWEST} = 1)"
    return (
        f"SELECT {columns} FROM {base} AS {_BASE}\n"
        f"WHERE {lives} AND NOT EXISTS (SELECT 1 FROM {changes} AS c WHERE {same})\n"
        f"UNION ALL\n"
        f"SELECT {columns} FROM {changes if net else newest} AS n WHERE NOT {DELETED}"
        + (f" AND {there}" if there else "")
    )


def source_schema(shape: TableShape) -> pa.Schema:
    """What the rule asks its sources for; what a file does not have is null."""
    ended = VERSION_FIELDS[:1] if shape.mode is Mode.HISTORY else ()
    return pa.schema([*arrow_schema(shape), *ended])


def output_schema(shape: TableShape, origin: bool) -> pa.Schema:
    """Arrow schema of what the rule gives."""
    physical = arrow_schema(shape)
    live = [pa.field(shape.name_of(c), physical.field(c.physical).type) for c in shape.kept]
    return pa.schema([*([physical.field(SHARD), physical.field(EPOCH)] if origin else []), *live])


def duckdb_source(shape: TableShape, files: Mapping[FileColumns, Sequence[str]]) -> str:
    """A DuckDB table expression over Parquet files: paths by the columns that the files have.

    Columns added later are null in older files. Only files that differ are united. DuckDB 2.0 does not know the size of
    a union, and builds its joins on the wrong side. (A read of 16 M rows took 4.2 s instead of 1.5.)
    """
    parts = []
    for held, paths in files.items():
        names = ", ".join(_duckdb_path(path) for path in paths)
        parts.append(
            f"SELECT {_columns(shape, held)} FROM read_parquet([{names}], hive_partitioning = false)"
        )
    if not parts:
        parts.append(f"SELECT {_columns(shape, FileColumns(frozenset()))} WHERE false")
    return f"({' UNION ALL '.join(parts)})"


def worn_source(shape: TableShape, path: str, held: FileColumns, dead: Sequence[int]) -> str:
    """A DuckDB table expression over the rows of a file that live; `dead`: numbers of the others."""
    listed = ",".join(map(str, dead))
    rows = f"(SELECT unnest(string_split('{listed}', ',')::BIGINT[]))"
    file = f"read_parquet({_duckdb_path(path)}, hive_partitioning = false"
    columns = _columns(shape, held)
    if _NUMBER not in map(str.lower, held.names):
        return f"(SELECT {columns} FROM {file}, {_NUMBER} = true) WHERE {_NUMBER} NOT IN {rows})"
    numbered = f"(SELECT *, row_number() OVER () - 1 AS {PART} FROM {file})) AS r"
    return f"(SELECT {columns} FROM {numbered} WHERE {PART} NOT IN {rows} AND {_in_order()})"


def _in_order() -> str:
    """A condition that holds where DuckDB keeps the order of rows, and fails the query elsewhere."""
    return f"CASE WHEN current_setting({literal(_ORDERED)}) THEN true ELSE error({literal(_UNORDERED)}) END"


def backquoted(name: str) -> str:
    """An identifier as Spark quotes it; braces doubled for the formatter of `SparkSession.sql`."""
    return "`" + name.replace("`", "``").replace("{", "{{").replace("}", "}}") + "`"


def _columns(shape: TableShape, held: FileColumns) -> str:
    """All physical columns; null for those that a file does not hold, and brought to their type from a narrower one."""
    return ", ".join(_column(field, held) for field in source_schema(shape))


def _column(field: pa.Field, held: FileColumns) -> str:
    name = double_quoted(field.name)
    if field.name in held.types:
        return f"{name}::{duckdb_type(field.type)} AS {name}"
    return name if field.name in held.names else f"NULL::{duckdb_type(field.type)} AS {name}"


def _bytewise(shape: TableShape, name: str, dialect: Dialect) -> str:
    text = pa.types.is_string(arrow_schema(shape).field(name).type)
    return dialect.quote(name) + (dialect.bytewise if text else "")


DUCKDB = Dialect(double_quoted, ' COLLATE "binary"', literal, duckdb_typed, "unhex({})")
SPARK = Dialect(backquoted, "", spark_text, spark_typed, "unhex({})")
DATAFUSION = Dialect(double_quoted, "", literal, datafusion_typed, "decode({}, 'hex')")


def _there(shape: TableShape) -> str:
    """A condition that holds for rows that no TRUNCATE took; empty where there was none."""
    taken = (f"{SHARD} IN ({_listed(one.shards)}) AND {EPOCH} < {one.before}" for one in shape.emptied)
    return " AND ".join(f"NOT ({condition})" for condition in taken)


def _output(shape: TableShape, dialect: Dialect, origin: bool) -> str:
    live = [f"{_value(shape, c, dialect)} AS {dialect.quote(shape.name_of(c))}" for c in shape.kept]
    return ", ".join([*([SHARD, EPOCH] if origin else []), *live])


def _value(shape: TableShape, column: LakeColumn, dialect: Dialect) -> str:
    """A column's value. It is null for shards that dropped it while others still have it. Rows that are older than the
    column have what it came with."""
    gone = (
        [f"WHEN {SHARD} IN ({_listed(column.missing)}) THEN NULL"] if column.torn and column.missing else []
    )
    return _told(shape, column.physical, dialect, gone)


def _told(
    shape: TableShape,
    physical: str,
    dialect: Dialect,
    cases: Sequence[str] = (),
    shards: Collection[str] | None = None,
) -> str:
    """What rows have in a column, of some `shards` alone if these are given. What they had in another one that was
    renamed to it, they have in that by the same rule. `cases` come first."""
    found = [*cases]
    for fill in shape.fills:
        mine = [shard for shard in fill.shards if shards is None or shard in shards]
        if fill.column != physical or not mine:
            continue
        schema = arrow_schema(shape)
        kind = schema.field(physical).type
        if not fill.source:
            value = dialect.value(fill.value, kind)
        else:
            value = _told(shape, fill.source, dialect, shards=mine)
            value = value if schema.field(fill.source).type == kind else dialect.typed(value, kind)
        found.append(f"WHEN {SHARD} IN ({_listed(mine)}) AND {EPOCH} < {fill.before} THEN {value}")
    name = dialect.quote(physical)
    return f"CASE {' '.join(found)} ELSE {name} END" if found else name


def _listed(shards: Sequence[str]) -> str:
    return ", ".join(map(literal, shards))


def _duckdb_path(path: str) -> str:
    """A path as a literal; characters of patterns stand in brackets, so that they match themselves."""
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in path)
    return literal(escaped)
