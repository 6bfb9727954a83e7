"""A whole lake in SQL text: DuckDB views as of one epoch, DuckDB views that follow the feed, tables for Spark."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from catchment.api.epochs import Committed, Lake, committed
from catchment.api.moment import At, Epoch
from catchment.api.read import state
from catchment.model.epoch import TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError, SinkError
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.reading import Reading, double_quoted, literal

_ENGINES_OWN = ("memory", "system", "temp", "pg_catalog", "information_schema")
_HEADER = """\
-- Views of every table as of epoch {epoch}: a snapshot. They name files, which stay for a while after a settle
-- replaced them; then this text has to be written again. For live reads use catchment.read() from Python.
"""


_FOLLOWING = """\
-- Views of every table that follow the feed: each is one exact epoch of its table, sink.settle behind the source.
-- DuckDB loads its extension delta. Write this text again when columns come or go.
"""
_SPARK = """\
-- Every table as Spark's catalog knows it, with delta-spark: each follows the feed, sink.settle behind the source.
"""


def views(lake: Lake, epoch: Epoch | None = None, *, at: At | None = None, feed: str | None = None) -> str:
    """SQL text that creates a DuckDB schema per source schema and a view per table, all as of one epoch.

    The views are a snapshot: each names the files of its table's version. So they do not follow the feed, and they fail
    once the cleaner has removed a file. For live reads use `read`, which looks up the newest epoch. Raises
    ConfigError for names that are one in DuckDB, and as `read`.
    """
    return _text(committed(lake, epoch, at=at, feed=feed))


def following_views(lake: Lake, *, feed: str | None = None) -> str:
    """SQL text that creates a DuckDB schema per source schema and a view per table. Each view gives the newest settled
    epoch of its table at the time of a query. Raises as `views`."""
    reading, tables = _newest(lake, feed)
    text = [_FOLLOWING, *_duckdb_schemas(shape.table for shape in tables)]
    for shape in tables:
        text.append(_duckdb_view(shape, reading.following_query(shape)))
    return "\n".join(text)


def spark_tables(lake: Lake, *, feed: str | None = None) -> str:
    """SQL text by which Spark's catalog knows every table under its name, once and for all. Raises as `views`."""
    reading, tables = _newest(lake, feed)
    schemas = sorted({shape.table.schema.replace("`", "``") for shape in tables})
    text = [_SPARK, *(f"CREATE SCHEMA IF NOT EXISTS `{schema}`;\n" for schema in schemas)]
    text += [f"{reading.spark_statement(shape)};\n" for shape in tables]
    return "\n".join(text)


def write_views(
    lake: Lake, epoch: Epoch | None = None, *, at: At | None = None, feed: str | None = None
) -> Path:
    """Write the views to `_catchment/views-FEED.sql` in the lake, replaced whole; its path. Each feed that shares the
    lake has a file of its own.

    To be called again after a settle or a change of a table's columns. Raises SinkError when the file cannot be
    written, and as `views`.
    """
    found = committed(lake, epoch, at=at, feed=feed)
    text = _text(found)
    target = found.place.reading.views_file(found.row.manifest.feed)
    fresh = target.with_suffix(f".{os.getpid()}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target)
    except OSError as fault:
        with suppress(OSError):
            fresh.unlink()
        raise SinkError(f"cannot write {target}: {fault.strerror}") from fault
    return target


def _text(found: Committed) -> str:
    row = found.row
    tables = sorted(row.manifest.tables)
    _must_be_told_apart(found.place.path, tables)
    text = [_HEADER.format(epoch=epoch_text(row.commit.epoch)), *_duckdb_schemas(tables)]
    for table in tables:
        of_epoch = state(found, table)
        text.append(_duckdb_view(of_epoch.shape, of_epoch.sql()))
    return "\n".join(text)


def _newest(lake: Lake, feed: str | None) -> tuple[Reading, list[TableShape]]:
    """What reads a lake, and the tables of its newest epoch."""
    found = committed(lake, feed=feed)
    manifest = found.row.manifest
    stale = {one.table for one in manifest.stale}
    shapes = [shape for shape in manifest.shapes if shape.table not in stale]
    shapes += [state(found, table).shape for table in stale]
    shapes.sort(key=lambda shape: shape.table)
    _must_be_told_apart(found.place.path, [shape.table for shape in shapes])
    return found.place.reading, shapes


def _duckdb_schemas(tables: Iterable[TableId]) -> list[str]:
    schemas = sorted({table.schema for table in tables})
    return [f"CREATE SCHEMA IF NOT EXISTS {double_quoted(schema)};\n" for schema in schemas]


def _duckdb_view(shape: TableShape, query: str) -> str:
    """A view with the comments of the source."""
    name, comments = _duckdb_name(shape.table), shape.comments
    lines = [f"CREATE OR REPLACE VIEW {name} AS\n{query};\n"]
    if comments.table:
        lines.append(f"COMMENT ON VIEW {name} IS {literal(comments.table)};\n")
    for column in shape.kept:
        if (comment := comments.of(column.column.name)) is not None:
            shown = double_quoted(shape.name_of(column))
            lines.append(f"COMMENT ON COLUMN {name}.{shown} IS {literal(comment)};\n")
    return "".join(lines)


def _duckdb_name(table: TableId) -> str:
    return f"{double_quoted(table.schema)}.{double_quoted(table.name)}"


def _must_be_told_apart(root: Location, tables: Sequence[TableId]) -> None:
    """Raise ConfigError for names that DuckDB, which does not regard case, cannot keep apart."""
    seen: dict[str, TableId] = {}
    for table in tables:
        other = seen.setdefault(str(table).casefold(), table)
        if other != table:
            raise ConfigError(
                f"{root}: {other} and {table} would be one view, since DuckDB does not tell upper from lower case; "
                "read them with catchment.read()"
            )
        if table.schema.casefold() in _ENGINES_OWN:
            raise ConfigError(
                f"{root}: {table}: DuckDB has a database or schema {table.schema} of its own, where a view "
                "cannot stand; read the table with catchment.read()"
            )
