"""The keys of a lake table that changed behind an epoch.

All that changed since came to the tail, whatever was settled since: its log names the files, which stay for the
feed's `sink.keep`. Rows that say of themselves that they are newer are taken, too, whether the tail knows them or not.
"""

from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from catchment import world
from catchment.model.epoch import EpochRow
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.files import by_columns, exists
from catchment.sink.delta.layout import EPOCH, SHARD, epoch_app, former_types, key_columns
from catchment.sink.delta.log.actions import Line
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.reading.duckdb_files import let_read
from catchment.sink.delta.reading.lake import state
from catchment.sink.delta.reading.reach import readable_since
from catchment.sink.delta.reading.rule import duckdb_source, output_schema
from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.delta.tail.older import places
from catchment.sink.reading import double_quoted

# Beyond it the keys go to the disk while they are put in order.
_MEMORY = "1GB"
# An object store answers one after the other too slowly: an hour may have a commit each second.
_THREADS = 8
_AT_ONCE = 64


def changed_keys(
    root: Location, row: EpochRow, table: TableId, since: int, rows: int
) -> Iterator[Mapping[str | None, pa.Table]]:
    """As the port has it (`sink.port.Sink.changed`)."""
    now = state(root, row, table, origin=True)
    return _parts(now, _came_since(root, row, now, since), since, rows)


def _parts(
    now: DeltaState, came: Sequence[str], since: int, rows: int
) -> Iterator[Mapping[str | None, pa.Table]]:
    columns = {c.column.name: c for c in now.shape.kept}
    shown = {name: now.shape.name_of(columns[name]) for name in now.shape.key}
    schema = output_schema(now.shape, origin=True)
    wanted = pa.schema([schema.field(SHARD), *(pa.field(n, schema.field(s).type) for n, s in shown.items())])
    query = _query(now, came, since, list(shown.values()))
    with TemporaryDirectory(prefix="catchment-keys-") as spill, duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = 'UTC'; SET threads = 1; SET memory_limit = '{_MEMORY}'")
        connection.execute(f"SET temp_directory = '{spill}'")
        let_read(connection, [*now.files, *came])
        try:
            for batch in connection.sql(query).to_arrow_reader(rows):
                yield _by_shard(pa.Table.from_batches([batch]).rename_columns(wanted.names).cast(wanted))
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            raise SinkError(f"{now.shape.table}: what changed in the lake cannot be read: {error}") from error


def _came_since(root: Location, row: EpochRow, now: DeltaState, since: int) -> tuple[str, ...]:
    """The files that came to the tail behind an epoch. Raises SinkError where the log, or a file, is gone."""
    feed, table = row.manifest.feed, now.shape.table
    directory = places(root, table, now.shape.generation).tail
    log, app = DeltaLog(directory), epoch_app(feed, table)
    found: dict[str, None] = {}
    for lines in _commits(log, log.newest(), app, since):
        if lines is None:
            raise _too_old(root, feed, table, since)
        carried = [line.txn.version for line in lines if line.txn is not None and line.txn.app_id == app]
        if carried and carried[0] <= since:
            break
        found |= dict.fromkeys(line.add.file for line in lines if line.add is not None)
    with world.pool(_THREADS, "files") as pool:
        whole = all(pool.map(lambda path: exists(directory / path), found))
    if not whole:
        raise _too_old(root, feed, table, since)
    return tuple(str(directory / path) for path in found)


def _commits(log: DeltaLog, newest: Snapshot | None, app: str, since: int) -> Iterator[list[Line] | None]:
    """The commits of a tail, the newest first; None where one is gone. None at all where nothing came since."""
    if newest is None or newest.transactions.get(app, 0) <= since:
        return
    with world.pool(_THREADS, "commits") as pool:
        for last in range(newest.version, -1, -_AT_ONCE):
            yield from pool.map(log.lines_of, range(last, max(last - _AT_ONCE, -1), -1))


def _too_old(root: Location, feed: str, table: TableId, since: int) -> SinkError:
    return SinkError(
        f"{table}: what changed since epoch {epoch_text(since)} is not known any more: the lake keeps it for "
        f"sink.keep, and until an erasure; {readable_since(root, feed, [table])}: give one of these, or compare the "
        "whole table"
    )


def _query(now: DeltaState, came: Sequence[str], since: int, shown: Sequence[str]) -> str:
    """Each (shard, key) once, in order of the key, so that shards come side by side."""
    numbered = [f"k{number}" for number in range(len(shown))]

    def keys(names: Sequence[str], source: str) -> str:
        named = ", ".join(f"{double_quoted(n)} AS {k}" for n, k in zip(names, numbered, strict=True))
        return f"SELECT {SHARD} AS s, {named} FROM {source} AS t WHERE {EPOCH} > {since}"

    files = duckdb_source(now.shape, by_columns(came, former_types(now.shape)))
    parts = f"{keys(key_columns(now.shape), files)} UNION ALL {keys(shown, f'({now.sql()})')}"
    listed = ", ".join(numbered)
    return f"SELECT DISTINCT s, {listed} FROM ({parts}) AS c ORDER BY {listed}, s"


def _by_shard(keys: pa.Table) -> dict[str | None, pa.Table]:
    shards, columns = keys[SHARD], keys.drop_columns([SHARD])
    return {
        shard: columns.filter(pc.is_null(shards) if shard is None else pc.equal(shards, shard))
        for shard in shards.unique().to_pylist()
    }
