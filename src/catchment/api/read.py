"""Read lake tables: the state as of an epoch, in DuckDB, Arrow, pandas, polars or Spark.

The epochs table says which version of each table is an epoch's; a version is one exact state (DESIGN 10). All
tables read at one epoch belong together.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import duckdb
import msgspec
import pyarrow as pa
from deltalake import DeltaTable

from catchment.api.epochs import Lake, committed, readable_since
from catchment.api.moment import At, Epoch
from catchment.api.rule import DUCKDB, SPARK, duckdb_source, output_schema, rule_sql
from catchment.model.chunk import chunk_key
from catchment.model.epoch import EpochRow, Part, TableShape, epoch_text
from catchment.model.errors import ConfigError, NotInstalled, SinkError
from catchment.model.table import TableId
from catchment.sink.delta.commit import file_lists, open_table
from catchment.sink.delta.files import by_columns
from catchment.sink.delta.history import oldest_version
from catchment.sink.delta.layout import arrow_schema, epoch_app, table_dir

if TYPE_CHECKING:
    import pandas
    import polars
    from pyspark.sql import DataFrame, SparkSession


class TableState(msgspec.Struct, frozen=True):
    """One table as of one epoch: files that are read when asked for, in the engine asked for.

    Rows have the source's columns and, with `origin`, first `_shard` and `_epoch` (the epoch of the row's
    last change). They come in no order. The files stay for the feed's `sink.keep` after a fold replaced them.
    Paths of files are absolute.
    """

    shape: TableShape
    epoch: int
    version: int
    base: tuple[str, ...]
    changes: tuple[str, ...]
    origin: bool = True

    def __repr__(self) -> str:
        columns = sum(column.live for column in self.shape.columns)
        return f"TableState({self.shape.table}, epoch {epoch_text(self.epoch)}, {columns} columns)"

    def sql(self) -> str:
        """A DuckDB query over the files; needs no extension."""
        changes = duckdb_source(self.shape, by_columns(self.changes)) if self.changes else None
        base = duckdb_source(self.shape, by_columns(self.base))
        return rule_sql(self.shape, base, changes, DUCKDB, self.origin, self._net)

    def duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """A DuckDB relation; only the columns and rows that a query needs are read."""
        return (connection or duckdb.connect()).sql(self.sql())

    def arrow(self) -> pa.Table:
        """All rows; DATETIME is timestamp[us] without a zone, TIMESTAMP is in UTC, TIME is microseconds."""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            rows = connection.sql(self.sql()).to_arrow_table()
        return rows.cast(output_schema(self.shape, self.origin))

    def pandas(self) -> "pandas.DataFrame":
        """All rows as a pandas frame with Arrow's types: pandas' own would round integers where a NULL is among them.
        Raises NotInstalled."""
        with _needed("pandas"):
            import pandas

        return self.arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def polars(self) -> "polars.DataFrame":
        """All rows as a polars frame. Raises NotInstalled."""
        with _needed("polars"):
            import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def spark(self, session: "SparkSession") -> "DataFrame":
        """A Spark frame. The executors must see the files under the same path. They are taken as files of the host or
        of a mount, whatever file system the session's `fs.defaultFS` is."""
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(arrow_schema(self.shape), prefer_timestamp_ntz=True)
        # Paths, not patterns: of one with a colon Hadoop's globbing makes a URISyntaxException, however it is escaped.
        files = session.read.schema(schema).option("__globPaths__", "false")
        parts: dict[str, Any] = {"base": session.createDataFrame([], schema)}
        if self.base:
            parts["base"] = files.parquet(*map(_spark_path, self.base))
        if self.changes:
            parts["changes"] = files.parquet(*map(_spark_path, self.changes))
        changes = "{changes}" if self.changes else None
        return session.sql(rule_sql(self.shape, "{base}", changes, SPARK, self.origin, self._net), **parts)

    @property
    def _net(self) -> bool:
        """Whether no key stands twice among the changes. In one file none does, unless a chunk of collated keys and the
        log of its epoch have brought the same row (DESIGN 4)."""
        return len(self.changes) == 1 and chunk_key(self.shape.definition).ordered


@overload
def read(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
    lake: Lake,
    table: str | TableId,
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    origin: bool = True,
) -> TableState: ...


@overload
def read(
    lake: Lake,
    table: Sequence[str | TableId],
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    origin: bool = True,
) -> tuple[TableState, ...]: ...


def read(
    lake: Lake,
    table: str | TableId | Sequence[str | TableId],
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    origin: bool = True,
) -> TableState | tuple[TableState, ...]:
    """State of `table` (`schema.name`) as of a committed epoch, the newest by default; of several, all at the same.

    `epoch`: exactly that one, as its text or number. `at`: the newest at or before a time, a duration back (`"-10min"`)
    or an epoch. A time is `"2026-11-22 04:00"`, UTC if it names no offset, or a datetime with its zone.

    `lake` is the lake's directory, a feed or the path of a feed file, whose secrets are not needed. `feed` names one
    where several feeds of the directory have the table. Raises ConfigError for an unknown table, epoch or feed and for
    a directory that is no lake. Raises SinkError when a feed's lake or the files are not there (any more).
    """
    names = [table] if isinstance(table, str | TableId) else table
    root, row = committed(lake, epoch, at=at, feed=feed, tables=names)
    states = (state(root, row, t if isinstance(t, TableId) else _named(row, t), origin) for t in names)
    return next(states) if isinstance(table, str | TableId) else tuple(states)


def tables_at(
    lake: Lake, epoch: Epoch | None = None, *, at: At | None = None, feed: str | None = None
) -> dict[str, int]:
    """Delta version of every table (`schema.name`) as of a committed epoch, the newest by default."""
    return dict(committed(lake, epoch, at=at, feed=feed)[1].commit.versions)


def state(root: Path, row: EpochRow, table: TableId, origin: bool = True) -> TableState:
    """State of a table as of a committed epoch's row."""
    shapes = {s.table: s for s in row.manifest.shapes}
    version = row.commit.versions.get(str(table))
    if table not in shapes or version is None:
        known = ", ".join(sorted(row.commit.versions)) or "none"
        raise ConfigError(
            f"{root}: no table {table} as of epoch {epoch_text(row.commit.epoch)}; tables are: {known}"
        )
    directory = table_dir(root, table)
    handle = _as_of(root, row, table, version)
    files = file_lists(handle)
    base, changes = (tuple(str(directory / f["path"]) for f in files[p]) for p in (Part.BASE, Part.CHANGES))
    return TableState(shapes[table], row.commit.epoch, handle.version(), base, changes, origin)


def _as_of(root: Path, row: EpochRow, table: TableId, version: int) -> DeltaTable:
    """The newest version, as long as no later epoch has come to the table; else the version that the epoch names. So
    folds since, which change no row, serve at once, also while the source is at rest."""
    directory = table_dir(root, table)
    newest = open_table(directory)
    if newest is None:
        raise SinkError(f"{table}: the lake has no Delta table at {directory}, but an epoch names it")
    carried = newest.transaction_version(epoch_app(row.manifest.feed, table)) or 0
    if carried <= row.commit.epoch and newest.version() >= version:
        return newest
    older = _older(directory, version, newest.version())
    if older is None:
        raise SinkError(
            f"{table} cannot be read as of epoch {epoch_text(row.commit.epoch)} any more: files that a fold replaced "
            f"stay for the feed's sink.keep; {readable_since(root, row.manifest.feed, [table])}"
        )
    return older


def _older(directory: Path, version: int, newest: int) -> DeltaTable | None:
    """The table at an older version; None when the cleaner has removed files of it, or Delta its log entries."""
    try:
        table = open_table(directory, version)
        paths = [] if table is None else pa.table(table.get_add_actions())["path"].to_pylist()
        if all((directory / path).exists() for path in paths):
            return table
    except SinkError:
        if oldest_version(directory, newest, version) <= version:
            raise
        return None
    return table if oldest_version(directory, newest, version) <= version else None


def _named(row: EpochRow, name: str) -> TableId:
    """The table of an epoch that has this name, whatever dots are in its schema's; else what the name says."""
    for shape in row.manifest.shapes:
        if str(shape.table) == name:
            return shape.table
    try:
        return TableId.parse(name)
    except ValueError as fault:
        raise ConfigError(str(fault)) from None


def _spark_path(path: str) -> str:
    """A path as Hadoop's Path takes it: of the host's files, nothing of it percent-encoded."""
    return f"file://{path}"


@contextmanager
def _needed(package: str) -> Iterator[None]:
    """Say which extra has a package that the block imports."""
    try:
        yield
    except ModuleNotFoundError as fault:
        if fault.name != package:
            raise
        raise NotInstalled(
            f"{package}() needs {package}, which is not installed: pip install 'catchment[{package}]'"
        ) from None
