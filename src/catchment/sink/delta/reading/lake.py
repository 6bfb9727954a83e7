"""A Delta lake as people read it.

The epochs table says which version of each table is an epoch's; a version is one exact state (DESIGN 10).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from catchment.model.epoch import EpochRow, Part, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError, SinkRestored
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.model.treatment import Mode
from catchment.sink.delta.epochs.table import EpochsTable, feeds
from catchment.sink.delta.kept.record import KeptEpochs
from catchment.sink.delta.layout import (
    PART,
    epoch_app,
    epochs_dir,
    settled_app,
)
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.plain.complete import is_complete, last_complete
from catchment.sink.delta.plain.generation import generation
from catchment.sink.delta.plain.older_copy import older_copy
from catchment.sink.delta.reading.catalogs import duckdb_query, spark_statement
from catchment.sink.delta.reading.changed import DeltaChanges, changes, newest_settled
from catchment.sink.delta.reading.exact import exact
from catchment.sink.delta.reading.past import is_kept, nearest, version_at
from catchment.sink.delta.reading.places import Tables, Worn
from catchment.sink.delta.reading.reach import readable, readable_since
from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.delta.tail.dated import with_epochs
from catchment.sink.delta.tail.older import Places, places


class DeltaReading:
    """`catchment.sink.reading.Reading` over the lake at `root`, an absolute path or an address."""

    def __init__(self, root: Location) -> None:
        self._root = root

    def feeds(self) -> list[str]:
        """As the port has it."""
        return feeds(self._root)

    def epochs(self, feed: str) -> EpochsTable:
        """As the port has it."""
        return EpochsTable(self._root, feed)

    def readable(self, feed: str, rows: Sequence[EpochRow]) -> list[bool]:
        """As the port has it."""
        kept = set(self.kept(feed))
        found = zip(rows, readable(self._root, feed, rows), strict=True)
        return [whole or row.commit.epoch in kept for row, whole in found]

    def kept(self, feed: str) -> tuple[int, ...]:
        """As the port has it."""
        return KeptEpochs(self._root, feed).epochs()

    def readable_since(self, feed: str, tables: Iterable[TableId]) -> str:
        """As the port has it."""
        return readable_since(self._root, feed, tables)

    def state(self, row: EpochRow, table: TableId, *, origin: bool) -> DeltaState:
        """As the port has it."""
        return state(self._root, row, table, origin=origin)

    def changes(
        self, feed: str, table: TableId, since: EpochRow | None, until: EpochRow | None
    ) -> DeltaChanges:
        """As the port has it."""
        if until is None:
            until = self._newest_settled(feed, table)
        if until is None:
            raise SinkError(
                f"{table}: it is an epoch that the epochs table lacks; put back a copy of the lake"
            )
        known = self.epochs(feed)
        since = None if since is None else exact(known, since, table)
        return changes(self._root, feed, table, since, exact(known, until, table))

    def _newest_settled(self, feed: str, table: TableId) -> EpochRow | None:
        """The newest epoch whose changes the plain table has. While a settle put rows of some shards in their place the
        table was stale. Then it is the next one at which it was not."""
        known = self.epochs(feed)
        found, newest = known.at(newest_settled(self._root, feed, table)), known.newest()
        stale = found is not None and found.manifest.stale_since(table) is not None
        if not stale or newest is None or newest.manifest.stale_since(table) is not None:
            return found
        shape = next((one for one in newest.manifest.shapes if one.table == table), None)
        settled = found is not None and shape is not None and not _has_come(self._root, feed, shape, found)
        return newest if settled else found

    def following_query(self, shape: TableShape) -> str:
        """As the port has it: over the plain table."""
        return duckdb_query(self._root, shape)

    def spark_statement(self, shape: TableShape) -> str:
        """As the port has it: of the plain table."""
        return spark_statement(self._root, shape)

    def views_file(self, feed: str) -> Path:
        """As the port has it: beside the epochs table."""
        file = epochs_dir(self._root).parent / f"views-{feed}.sql"
        if not isinstance(file, Path):
            raise SinkError(
                f"{self._root}: no file of views is written to an object store; keep what catchment views prints"
            )
        return file


def state(root: Location, row: EpochRow, table: TableId, *, origin: bool) -> DeltaState:
    """A table of the lake at `root` as of an epoch that has it. A stale one is read as of the last at which it was
    exact. Raises SinkError where it cannot be read any more."""
    asked, row = row, exact(EpochsTable(root, row.manifest.feed), row, table)
    shape = row.manifest.shape(table)
    at = places(root, table, shape.generation)
    plain, tail = _newest(at, row, shape) or _then(at, row, shape) or _kept(root, at, asked, row, table)
    settled = _settled(plain, row, table)
    # Of others the plain table's files have the values, or lack the rows, and the tail's rows are newer.
    shape = replace(
        shape,
        fills=tuple(fill for fill in shape.fills if fill.before > settled),
        emptied=tuple(one for one in shape.emptied if one.before > settled),
    )
    waited = [] if tail is None else with_epochs(at.tail, tail)
    waiting = [file for epoch, file in waited if epoch > settled]
    later = {
        part: tuple(str(at.tail / f.path) for f in waiting if f.add.partition_values[PART] == part.value)
        for part in Part
    }
    tail_version = None if tail is None else tail.version
    version = row.commit.versions[str(table)] if tail is None else tail.version
    found = DeltaState(shape, asked.commit.epoch, version, later[Part.BASE], later[Part.CHANGES], origin)
    found = replace(found, as_of=row.commit.epoch)
    if plain is None:
        return found
    directory = at.plain
    whole = tuple(str(directory / file.path) for file in plain.files.values() if file.dead is None)
    worn = tuple(
        Worn(str(directory), str(directory / file.path), file.dead)
        for file in plain.files.values()
        if file.dead is not None
    )
    tables = Tables(str(directory), plain.version, str(at.tail), tail_version, settled)
    found = replace(found, worn=worn, tables=tables)
    if shape.mode is Mode.APPEND:
        return replace(found, base=(), changes=(*whole, *found.base, *found.changes))
    return replace(found, base=(*whole, *found.base))


def _has_come(root: Location, feed: str, shape: TableShape, since: EpochRow) -> bool:
    """Whether a later epoch has come to a table."""
    tail = DeltaLog(places(root, shape.table, shape.generation).tail).newest()
    return tail is None or tail.transactions.get(epoch_app(feed, shape.table), 0) > since.commit.epoch


def _newest(at: Places, row: EpochRow, shape: TableShape) -> tuple[Snapshot | None, Snapshot] | None:
    """Both tables at their newest versions, as long as no later epoch has come to the table. So what is settled
    and joined since, which changes no row, serves at once, also while the source is at rest.
    """
    feed, table = row.manifest.feed, shape.table
    log = DeltaLog(at.plain)
    plain = log.newest()
    while True:
        # The plain table first: what it has more than the tail tells, it got later.
        tail = DeltaLog(at.tail).newest()
        if tail is None:
            raise SinkError(f"{table}: the lake has no Delta table at {at.tail}, but an epoch names it")
        carried = tail.transactions.get(epoch_app(feed, table), 0)
        if carried > row.commit.epoch or tail.version < row.commit.versions[str(table)]:
            return None
        if generation(plain, feed, table) > shape.generation:
            return None
        trimmed, settled = tail.transactions.get(settled_app(feed, table), 0), _settled(plain, row, table)
        if trimmed <= settled:
            return _of_generation(plain, feed, shape), tail
        # A tail is trimmed after the plain table got its rows, so a look that comes after the tail's sees them.
        known, plain = plain, log.newest()
        if plain is known:
            raise SinkRestored(older_copy(table, at.plain, settled, trimmed))


def _then(at: Places, row: EpochRow, shape: TableShape) -> tuple[Snapshot | None, Snapshot] | None:
    """Both tables as they were when the epoch was the newest; None where that is behind the readers' window."""
    feed, epoch, table = row.manifest.feed, row.commit.epoch, shape.table
    log, app = DeltaLog(at.tail), epoch_app(feed, table)
    tail = last_complete(log, app, epoch, row.commit.versions[str(table)])
    plain = _of_generation(DeltaLog(at.plain).carrying(app, epoch), feed, shape)
    if plain is not None and not is_complete(at.plain, plain):
        return None
    trimmed = 0 if tail is None else tail.transactions.get(settled_app(feed, table), 0)
    return None if tail is None or trimmed > _settled(plain, row, table) else (plain, tail)


def _kept(
    root: Location, at: Places, asked: EpochRow, row: EpochRow, table: TableId
) -> tuple[Snapshot | None, None]:
    """The plain table alone, as `row` has it, where `asked` is a kept epoch. Raises SinkError for others."""
    feed, epoch = row.manifest.feed, asked.commit.epoch
    if is_kept(root, asked):
        plain, whole = version_at(at, row, table)
        if whole:
            return plain, None
    since, sides = readable_since(root, feed, [table]), nearest(root, feed, epoch)
    kept = f"; of those that are kept the nearest: {sides}" if sides else ""
    raise SinkError(
        f"{table} cannot be read as of epoch {epoch_text(epoch)} any more: files that others replaced "
        f"stay for the feed's sink.keep, and an erasure deletes them; {since}{kept}"
    )


def _of_generation(plain: Snapshot | None, feed: str, shape: TableShape) -> Snapshot | None:
    """A plain table, unless it is an earlier copy of the table: then all rows of this one stand in its tail."""
    return None if generation(plain, feed, shape.table) < shape.generation else plain


def _settled(plain: Snapshot | None, row: EpochRow, table: TableId) -> int:
    """The epoch that a version of the plain table is; 0 before the first."""
    return 0 if plain is None else plain.transactions.get(epoch_app(row.manifest.feed, table), 0)
