"""One table of a lake as of one epoch, in DuckDB, Arrow, pandas, polars or Spark."""

from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pyarrow as pa

from catchment.model.chunk import chunk_key
from catchment.model.epoch import TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.treatment import Mode
from catchment.sink.delta.files import by_columns
from catchment.sink.delta.layout import former_types
from catchment.sink.delta.reading.delta_rs import by_delta_rs
from catchment.sink.delta.reading.duckdb_files import let_read
from catchment.sink.delta.reading.duckdb_session import session_over
from catchment.sink.delta.reading.places import Tables, Worn
from catchment.sink.delta.reading.rule import (
    DUCKDB,
    SPARK,
    duckdb_source,
    output_schema,
    rule_sql,
    source_schema,
    worn_source,
)
from catchment.sink.delta.reading.spark_files import SparkFiles
from catchment.sink.frames import pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas
    import polars
    from pyspark.sql import DataFrame, SparkSession


class DeltaState(msgspec.Struct, frozen=True):
    """`catchment.sink.reading.TableState`: the files of one version, with absolute paths. They stay for the feed's
    `sink.keep` after others have replaced them. `base`: files of which all rows live; `worn`: the others, which come
    with `tables`. `as_of`: the epoch as of which the rows stand, an earlier one of a table that is stale."""

    shape: TableShape
    epoch: int
    version: int
    base: tuple[str, ...]
    changes: tuple[str, ...]
    origin: bool = True
    worn: tuple[Worn, ...] = ()
    tables: Tables | None = None
    as_of: int = 0

    def __repr__(self) -> str:
        columns = len(self.shape.kept)
        return f"TableState({self.shape.table}, epoch {epoch_text(self.epoch)}, {columns} columns)"

    @property
    def files(self) -> tuple[str, ...]:
        """All files that its rows stand in."""
        return (*self.base, *self.changes, *(one.path for one in self.worn))

    def sql(self) -> str:
        """A DuckDB query over the files; needs no extension."""
        base, changes = self._sources(self.base, self._worn_base), None
        if self.changes or self._worn_changes:
            changes = self._sources(self.changes, self._worn_changes)
        return rule_sql(self.shape, base, changes, DUCKDB, self.origin, self._net)

    def duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """A DuckDB relation; only the columns and rows that a query needs are read."""
        connection = connection or duckdb.connect()
        let_read(connection, self.files)
        return connection.sql(self.sql())

    def arrow(self) -> pa.Table:
        """All rows; DATETIME is timestamp[us] without a zone, TIMESTAMP is in UTC, TIME is microseconds."""
        if self.worn and self.tables is not None:
            return by_delta_rs(self.shape, self.tables, self.origin)
        with session_over(self.files) as connection:
            rows = connection.sql(self.sql()).to_arrow_table()
        return rows.cast(output_schema(self.shape, self.origin))

    def pandas(self) -> "pandas.DataFrame":
        """All rows as a pandas frame with Arrow's types. Raises NotInstalled."""
        return pandas_frame(self.arrow())

    def polars(self) -> "polars.DataFrame":
        """All rows as a polars frame. Raises NotInstalled."""
        return polars_frame(self.arrow())

    def spark(self, session: "SparkSession") -> "DataFrame":
        """A Spark frame. The executors must see the files under the same path. They are taken as files of
        the host or of a mount, whatever file system the session's `fs.defaultFS` is."""
        files = SparkFiles(session, source_schema(self.shape), former_types(self.shape))
        parts: dict[str, Any] = {"base": files.none()}
        if self.base:
            parts["base"] = files.rows(self.base)
        if self._worn_base:
            parts["base"] = parts["base"].unionByName(files.alive(self.worn))
        if self.changes:
            parts["changes"] = files.rows(self.changes)
        if self._worn_changes:
            alive = files.alive(self.worn)
            parts["changes"] = parts["changes"].unionByName(alive) if self.changes else alive
        changes = "{changes}" if "changes" in parts else None
        return session.sql(rule_sql(self.shape, "{base}", changes, SPARK, self.origin, self._net), **parts)

    def _sources(self, paths: tuple[str, ...], worn: tuple[Worn, ...]) -> str:
        former = former_types(self.shape)
        held = [next(iter(by_columns([one.path], former))) for one in worn]
        sources = [
            worn_source(self.shape, one.path, columns, one.positions())
            for one, columns in zip(worn, held, strict=True)
        ]
        if paths or not sources:
            sources.append(duckdb_source(self.shape, by_columns(paths, former)))
        return sources[0] if len(sources) == 1 else f"({' UNION ALL '.join(f'FROM {s}' for s in sources)})"

    @property
    def _worn_base(self) -> tuple[Worn, ...]:
        return () if self.shape.mode is Mode.APPEND else self.worn

    @property
    def _worn_changes(self) -> tuple[Worn, ...]:
        return self.worn if self.shape.mode is Mode.APPEND else ()

    @property
    def _net(self) -> bool:
        """Whether no key stands twice among the changes. In one file none does, unless a chunk of collated keys and the
        log of its epoch have brought the same row (DESIGN 4)."""
        one = len(self.changes) == 1 and self.shape.mode is not Mode.APPEND
        return one and chunk_key(self.shape.definition).ordered
