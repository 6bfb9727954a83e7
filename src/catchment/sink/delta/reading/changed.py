"""What changed in a table between two of its settled epochs, from Delta's change data feed."""

from typing import TYPE_CHECKING

import duckdb
import msgspec
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from catchment.model.epoch import EpochRow, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError
from catchment.model.location import Location, location
from catchment.model.table import TableId
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETED,
    VERSION_FIELDS,
    Change,
    epoch_app,
)
from catchment.sink.delta.log.actions import Line
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.opened import delta_table
from catchment.sink.delta.plain.shape import tells_changes
from catchment.sink.delta.reading.rule import output_schema
from catchment.sink.delta.tail.come import come
from catchment.sink.delta.tail.older import places
from catchment.sink.frames import pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas
    import polars

_ADDED = (
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(COMMIT_VERSION, pa.int64()),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", tz="UTC")),
)


class DeltaChanges(msgspec.Struct, frozen=True):
    """`catchment.sink.reading.TableChanges`: versions of the plain table in `directory`, from `first` to `last`."""

    shape: TableShape
    since: int | None
    until: int
    directory: str
    first: int
    last: int

    def __repr__(self) -> str:
        begin = "its beginning" if self.since is None else f"epoch {epoch_text(self.since)}"
        return f"TableChanges({self.shape.table}, behind {begin}, up to epoch {epoch_text(self.until)})"

    def duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """As the port has it."""
        return (connection or duckdb.connect()).from_arrow(self.arrow())

    def pandas(self) -> "pandas.DataFrame":
        """As the port has it."""
        return pandas_frame(self.arrow())

    def polars(self) -> "polars.DataFrame":
        """As the port has it."""
        return polars_frame(self.arrow())

    def arrow(self) -> pa.Table:
        """As the port has it. Raises SinkError where the files are there no longer."""
        of_mode = {
            Mode.MIRROR: (),
            Mode.HISTORY: VERSION_FIELDS,
        }.get(self.shape.mode, (pa.field(DELETED, pa.bool_()),))
        schema = pa.schema([*_ADDED, *of_mode, *output_schema(self.shape, origin=True)])
        if self.since is not None and self.first > self.last:
            return schema.empty_table()
        try:
            table = delta_table(location(self.directory), self.last)
            rows = self._inserts(table) if self.since is None else self._told(table)
        except Exception as error:  # arro3, which delta-rs reads with, raises no kind of its own
            raise SinkError(
                f"{self.shape.table}: what changed behind epoch {epoch_text(self.since or 0)} cannot be read: {error}; "
                "change data stays for the feed's sink.keep and some hours: begin again without since"
            ) from error
        physical = {self.shape.name_of(c): c.physical for c in self.shape.kept}
        values = [
            rows[name] if name in rows.column_names else pa.nulls(rows.num_rows, field.type)
            for name, field in ((physical.get(field.name, field.name), field) for field in schema)
        ]
        return pa.table(values, names=schema.names).cast(schema).sort_by(COMMIT_VERSION)

    def _told(self, table: DeltaTable) -> pa.Table:
        return pa.table(table.load_cdf(starting_version=self.first, ending_version=self.last).read_all())

    def _inserts(self, table: DeltaTable) -> pa.Table:
        rows = pa.table(QueryBuilder().register("plain", table).execute("SELECT * FROM plain").read_all())
        timestamp = next(entry["timestamp"] for entry in table.history(1))
        values = (Change.INSERT.value, self.last, timestamp * 1000)
        for place, (field, value) in enumerate(zip(_ADDED, values, strict=True)):
            rows = rows.add_column(place, field, pa.repeat(pa.scalar(value, field.type), rows.num_rows))
        return rows


def changes(
    root: Location, feed: str, table: TableId, since: EpochRow | None, until: EpochRow
) -> DeltaChanges:
    """The changes of a table behind an epoch, up to another. Both were settled, or brought nothing since one that was.
    Raises SinkError."""
    shape = until.manifest.shape(table)
    at = places(root, table, shape.generation)
    log, app = DeltaLog(at.plain), epoch_app(feed, table)
    last = _settled_at(log, at.tail, until, table, app)
    found = DeltaChanges(shape, None, until.commit.epoch, str(at.plain), 0, last.version)
    if since is None:
        return found
    then = places(root, table, since.manifest.shape(table).generation)
    before = _settled_at(log, then.tail, since, table, app)
    found = msgspec.structs.replace(found, since=since.commit.epoch, first=before.version + 1)
    _must_tell(log, found)
    return found


def newest_settled(root: Location, feed: str, table: TableId) -> int:
    """The epoch that the plain table is. Raises SinkError before its first."""
    plain = DeltaLog(places(root, table).plain).newest()
    found = None if plain is None else plain.transactions.get(epoch_app(feed, table))
    if found is None:
        raise SinkError(f"{table}: nothing is settled yet; a feed settles each sink.settle, and when it ends")
    return found


def _settled_at(log: DeltaLog, tail: Location, row: EpochRow, table: TableId, app: str) -> Snapshot:
    """The version of the plain table that is exactly an epoch. Raises SinkError where none is."""
    epoch = row.commit.epoch
    found = log.carrying(app, epoch)
    carried = None if found is None else come(DeltaLog(tail), table, app, epoch, row.commit.versions)
    if found is None or not carried:
        raise SinkError(
            f"{table}: what it was as of epoch {epoch_text(epoch)} cannot be told any more: change data stays for the "
            "feed's sink.keep and some hours; begin again without since"
        )
    if found.transactions[app] < carried:
        raise SinkError(
            f"{table}: epoch {epoch_text(epoch)} was committed, and not settled as such; the one before it that was is "
            f"{epoch_text(found.transactions[app])}: give that one, or the until of changes taken before"
        )
    return found


def _must_tell(log: DeltaLog, asked: DeltaChanges) -> None:
    """Raise SinkError where one of the versions was written without change data."""
    if asked.first > asked.last:
        return
    begin = log.at(asked.first)
    told = begin is not None and tells_changes(begin.metadata)
    later = (line for version in range(asked.first + 1, asked.last + 1) for line in _lines(log, version))
    if not told or any(line.meta_data is not None and not tells_changes(line.meta_data) for line in later):
        raise SinkError(
            f"{asked.shape.table}: its versions from {asked.first} to {asked.last} were not all written with change "
            "data; set sink.changes: true, and begin with an epoch that was settled since. A table that has a column "
            f"{CHANGE_TYPE}, {COMMIT_VERSION} or {COMMIT_TIMESTAMP} of its own never has change data"
        )


def _lines(log: DeltaLog, version: int) -> list[Line]:
    return log.lines_of(version) or []
