"""Read lake tables: the state as of an epoch, in DuckDB, Arrow, polars or Spark.

The epochs table says which version of each table is an epoch's; a version is one exact state (DESIGN 10). All
tables read at one epoch belong together.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pyarrow as pa
from deltalake import DeltaTable

from catchment.api.rule import DUCKDB, SPARK, duckdb_source, output_schema, rule_sql
from catchment.config.feed import Feed
from catchment.config.file import load
from catchment.flow.sink.epochs import EpochRow, EpochsTable, feeds
from catchment.flow.sink.files import by_columns
from catchment.flow.sink.layout import arrow_schema, epoch_app, table_dir
from catchment.flow.sink.tables import file_lists, open_table
from catchment.model.chunk import chunk_key
from catchment.model.epoch import Part, TableShape, epoch_text
from catchment.model.errors import ConfigError, SinkError
from catchment.model.table import TableId

if TYPE_CHECKING:
    import polars
    from pyspark.sql import DataFrame, SparkSession

Lake = str | Path | Feed


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

    def polars(self) -> "polars.DataFrame":
        """All rows as a polars frame."""
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def spark(self, session: "SparkSession") -> "DataFrame":
        """A Spark frame. The files must be visible to the executors under the same path, as files of the host
        or of a mount, whatever file system the session's `fs.defaultFS` is."""
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
        """Whether no key stands twice among the changes: those of one file, unless a chunk of collated keys and
        the log of its epoch have brought the same row (DESIGN 4)."""
        return len(self.changes) == 1 and chunk_key(self.shape.definition).ordered


def read(
    lake: Lake,
    table: str | TableId,
    epoch: int | None = None,
    *,
    feed: str | None = None,
    origin: bool = True,
) -> TableState:
    """State of `table` (`schema.name`) as of a committed epoch, the newest by default.

    `lake` is the lake's directory, a feed or the path of a feed file, whose secrets are not needed; `feed` names
    one where several feeds share the directory. Raises ConfigError for an unknown table, epoch or feed and for a
    directory that is no lake, SinkError when a feed's lake or the files are not there.
    """
    root, row = committed(lake, epoch, feed)
    return state(root, row, table if isinstance(table, TableId) else _named(row, table), origin)


def tables_at(lake: Lake, epoch: int | None = None, *, feed: str | None = None) -> dict[str, int]:
    """Delta version of every table (`schema.name`) as of a committed epoch, the newest by default."""
    return dict(committed(lake, epoch, feed)[1].commit.versions)


def committed(lake: Lake, epoch: int | None, feed: str | None) -> tuple[Path, EpochRow]:
    """The lake's directory, absolute, and a committed epoch's row; raises as `read`."""
    if not isinstance(lake, Feed) and Path(lake).suffix in (".yaml", ".yml"):
        lake = load(lake, secrets=())
    root = Path(lake.sink.path if isinstance(lake, Feed) else lake).absolute()
    name = feed or (lake.name if isinstance(lake, Feed) else _only_feed(root))
    epochs = EpochsTable(root, name)
    row = epochs.newest() if epoch is None else epochs.at(epoch)
    if row is not None:
        return root, row
    newest = None if epoch is None else epochs.newest()
    if newest is not None:
        raise ConfigError(
            f"{root}: {name} has not committed epoch {epoch_text(epoch or 0)}; its newest is "
            f"{epoch_text(newest.commit.epoch)}"
        )
    others = feeds(root)
    if isinstance(lake, Feed) and not others:
        raise SinkError(
            f"feed {name}: the lake {root} holds no epoch; run the feed first, correct sink.path, or mount the lake"
        )
    raise ConfigError(
        f"{root}: {name} has not committed any epoch; feeds that have: {', '.join(others) or 'none'}"
    )


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
    handle = _as_of(directory, row, table, version)
    if handle is None:
        raise SinkError(f"{table}: the lake has no Delta table at {directory}, but an epoch names it")
    files = file_lists(handle)
    base, changes = (tuple(str(directory / f["path"]) for f in files[p]) for p in (Part.BASE, Part.CHANGES))
    return TableState(shapes[table], row.commit.epoch, handle.version(), base, changes, origin)


def _as_of(directory: Path, row: EpochRow, table: TableId, version: int) -> DeltaTable | None:
    """The newest version as long as no later epoch has come to the table: folds since, which change no row, serve at
    once, also while the source is at rest. Else the version that the epoch names."""
    newest = open_table(directory)
    if newest is None:
        return None
    carried = newest.transaction_version(epoch_app(row.manifest.feed, table)) or 0
    later = carried > row.commit.epoch or newest.version() < version
    return open_table(directory, version) if later else newest


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


def _only_feed(root: Path) -> str:
    names = feeds(root)
    if len(names) != 1:
        found = f"feeds {', '.join(names)}; name one" if names else "no committed epoch"
        raise ConfigError(f"{root}: the lake has {found}")
    return names[0]
