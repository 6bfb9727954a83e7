"""Where committed epochs are read. A reader has no feed: nothing here or behind it needs a feed's packages."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from catchment.model.epoch import EpochRow, TableShape
from catchment.model.table import TableId

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class TableState(Protocol):
    """One table as of one epoch, read when asked for, in the engine asked for.

    Rows have the source's columns and, with `origin`, first `_shard` and `_epoch` (the epoch of the row's
    last change). They come in no order. What lies behind a state stays for the feed's `sink.keep` after others
    replaced it; then each of these raises SinkError.
    """

    @property
    def shape(self) -> TableShape:
        """Its columns and its key."""
        ...

    @property
    def epoch(self) -> int:
        """The number of the epoch."""
        ...

    @property
    def as_of(self) -> int:
        """As of which epoch the rows stand: that one, or an earlier one of a table that is copied anew (`Stale`)."""
        ...

    @property
    def version(self) -> int:
        """The version of the table at the sink that is read."""
        ...

    @property
    def origin(self) -> bool:
        """Whether rows say where they come from."""
        ...

    def sql(self) -> str:
        """A DuckDB query; needs no extension."""
        ...

    def duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """A DuckDB relation; only the columns and rows that a query needs are read."""
        ...

    def arrow(self) -> "pa.Table":
        """All rows; DATETIME is timestamp[us] without a zone, TIMESTAMP is in UTC, TIME is microseconds."""
        ...

    def pandas(self) -> "pandas.DataFrame":
        """All rows as a pandas frame with Arrow's types: pandas' own would round integers where a NULL is among them.
        Raises NotInstalled."""
        ...

    def polars(self) -> "polars.DataFrame":
        """All rows as a polars frame. Raises NotInstalled."""
        ...

    def spark(self, session: "SparkSession") -> "DataFrame":
        """A Spark frame. What is read must be visible to the executors under the same path."""
        ...


class TableChanges(Protocol):
    """What changed in one table between two epochs, row by row, read when asked for.

    Rows have `_change_type` (`insert`, `update_preimage`, `update_postimage` or `delete`), `_commit_version` and
    `_commit_timestamp`, then `_shard`, `_epoch` and the source's columns. A row that changed twice may stand once.
    """

    @property
    def shape(self) -> TableShape:
        """The columns and the key of `until`."""
        ...

    @property
    def since(self) -> int | None:
        """Behind which epoch the changes are; None: all rows of `until` are inserts."""
        ...

    @property
    def until(self) -> int:
        """Up to which epoch. Give it as `since` next time."""
        ...

    def duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """A DuckDB relation of them."""
        ...

    def arrow(self) -> "pa.Table":
        """All of them, in order of their versions."""
        ...

    def pandas(self) -> "pandas.DataFrame":
        """A pandas frame with Arrow's types. Raises NotInstalled."""
        ...

    def polars(self) -> "polars.DataFrame":
        """A polars frame. Raises NotInstalled."""
        ...


class Epochs(Protocol):
    """The committed epochs of one feed."""

    def newest(self) -> EpochRow | None:
        """The newest one; None before the first."""
        ...

    def last(self, count: int, until: int | None = None) -> list[EpochRow]:
        """The newest `count`, of those up to number `until`; the newest first."""
        ...

    def at(self, epoch: int) -> EpochRow | None:
        """The one of exactly that number; None when it was not committed."""
        ...

    def after(self, epoch: int) -> EpochRow | None:
        """The first one that is known behind a number; None where none is. Its manifest names the one before it."""
        ...

    def cut_by(self, time_us: int) -> EpochRow | None:
        """The newest one that was cut at or before a time (microseconds since 1970); None where none was. Numbers need
        not tell: they are ahead of time after a clock that was ahead is set back."""
        ...


class Reading(Protocol):
    """What feeds have committed to one place. All raise SinkError for what is damaged, or names what is not there."""

    def feeds(self) -> list[str]:
        """Names of the feeds that have committed epochs, in order."""
        ...

    def epochs(self, feed: str) -> Epochs:
        """The epochs of a feed."""
        ...

    def readable(self, feed: str, rows: Sequence[EpochRow]) -> list[bool]:
        """Of each of these epochs, whether every table can be read as of it. Where it is none that is kept, that means
        as of all later ones, too."""
        ...

    def kept(self, feed: str) -> Sequence[int]:
        """The numbers of the epochs that are kept beyond the feed's `sink.keep`, or will be as of now, in order."""
        ...

    def readable_since(self, feed: str, tables: Iterable[TableId]) -> str:
        """For messages: from which epoch on every one of the tables can be read, and up to which."""
        ...

    def state(self, row: EpochRow, table: TableId, *, origin: bool) -> TableState:
        """A table that the epoch has. Raises SinkError where it cannot be read as of the epoch any more."""
        ...

    def changes(
        self, feed: str, table: TableId, since: EpochRow | None, until: EpochRow | None
    ) -> TableChanges:
        """What changed in a table behind `since`, up to `until`, by default the newest epoch that is settled.

        Raises SinkError where the feed does not write changes, or no longer has those.
        """
        ...

    def following_query(self, shape: TableShape) -> str:
        """A DuckDB query over a table as everybody reads it, the newest version at each time."""
        ...

    def spark_statement(self, shape: TableShape) -> str:
        """A statement of Spark SQL by which its catalog knows the table under the name of the source."""
        ...

    def views_file(self, feed: str) -> Path:
        """Where the views of a feed belong."""
        ...


def literal(text: str) -> str:
    """A text as DuckDB has it."""
    return "'" + text.replace("'", "''") + "'"


def double_quoted(name: str) -> str:
    """An identifier as DuckDB quotes it, whose SQL a state gives."""
    return '"' + name.replace('"', '""') + '"'
