"""Plain tables under their names in the catalogs of other engines, which then follow the feed by themselves."""

from collections.abc import Callable, Iterable

import msgspec

from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.reading.places import spark_path
from catchment.sink.reading import double_quoted, literal


class _Shown(msgspec.Struct, frozen=True):
    """A column of a plain table: its name in the files, the one that is shown, and what the source says of it."""

    physical: str
    name: str
    comment: str | None = None


def duckdb_query(root: Location, shape: TableShape) -> str:
    """A query over a plain table, with the columns of the source under their names. DuckDB loads its extension `delta`
    by itself."""
    columns = _columns(_shown(shape), double_quoted)
    return f"SELECT {columns} FROM delta_scan({literal(str(table_dir(root, shape.table)))})"


def spark_statement(root: Location, shape: TableShape) -> str:
    """A statement that makes a plain table known to Spark's catalog under the name of the source. Where a column's name
    in the files is another than at the source, a view gives it back."""
    name = f"{_backquoted(shape.table.schema)}.{_backquoted(shape.table.name)}"
    place = spark_path(table_dir(root, shape.table))
    if all(c.physical == shape.name_of(c) for c in shape.kept):
        return f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {_spark_literal(place)}"
    shown = _shown(shape)
    names = ", ".join(f"{_backquoted(one.name)}{_spark_comment(one.comment)}" for one in shown)
    query = f"SELECT {_columns(shown, _backquoted)} FROM delta.{_backquoted(place)}"
    return f"CREATE OR REPLACE VIEW {name} ({names}){_spark_comment(shape.comments.table)} AS {query}"


def _shown(shape: TableShape) -> list[_Shown]:
    """The columns of a plain table, in its order."""
    of_source = {
        c.physical: _Shown(c.physical, shape.name_of(c), shape.comments.of(c.column.name)) for c in shape.kept
    }
    return [of_source.get(name, _Shown(name, name)) for name in plain_schema(shape).names]


def _columns(shown: Iterable[_Shown], quote: Callable[[str], str]) -> str:
    return ", ".join(f"{quote(one.physical)} AS {quote(one.name)}" for one in shown)


def _spark_comment(comment: str | None) -> str:
    return f" COMMENT {_spark_literal(comment)}" if comment else ""


def _backquoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spark_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
