"""Plain tables under their names in the catalogs of other engines, which then follow the feed by themselves."""

from collections.abc import Callable

from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import DELETED, EPOCH, SHARD, VERSION_FIELDS, table_dir
from catchment.sink.delta.reading.places import spark_path
from catchment.sink.delta.reading.rule import literal
from catchment.sink.reading import double_quoted


def duckdb_query(root: Location, shape: TableShape) -> str:
    """A query over a plain table, with the columns of the source under their names. DuckDB loads its extension `delta`
    by itself."""
    columns = _columns(shape, double_quoted)
    return f"SELECT {columns} FROM delta_scan({literal(str(table_dir(root, shape.table)))})"


def spark_statement(root: Location, shape: TableShape) -> str:
    """A statement that makes a plain table known to Spark's catalog under the name of the source. Where a column's name
    in the files is another than at the source, a view gives it back."""
    name = f"{_backquoted(shape.table.schema)}.{_backquoted(shape.table.name)}"
    place = spark_path(table_dir(root, shape.table))
    if all(c.physical == shape.name_of(c) for c in shape.kept):
        return f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {_spark_literal(place)}"
    columns = _columns(shape, _backquoted)
    return f"CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM delta.{_backquoted(place)}"


def _backquoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _columns(shape: TableShape, quote: Callable[[str], str]) -> str:
    kept = (f"{quote(c.physical)} AS {quote(shape.name_of(c))}" for c in shape.kept)
    marked = [DELETED] if shape.mode in (Mode.SOFT_DELETE, Mode.APPEND) else []
    times = [field.name for field in VERSION_FIELDS] if shape.mode is Mode.HISTORY else []
    return ", ".join([SHARD, EPOCH, *marked, *kept, *times])


def _spark_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
