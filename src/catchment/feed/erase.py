"""`catchment erase`: rows of some keys leave all that the sink has of a table. No shard is asked."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from catchment.config import Feed, load
from catchment.model.epoch import EpochRow, TableShape
from catchment.model.errors import ConfigError, SinkError
from catchment.model.table import TableId
from catchment.sink.erasure import Erased, Erasure, Spelling
from catchment.sink.port import Sink
from catchment.sink.registry.sinks import sink_of
from catchment.state import orders, verifications
from catchment.state.lease import newest_fence
from catchment.state.resume import must_have_lake
from catchment.state.store import Store
from catchment.wire.cells.given import keys_of


def erase(
    feed: Feed | str | Path,
    table: str | TableId,
    keys: Iterable[object],
    *,
    shard: str | None = None,
    keep_versions: bool = False,
    spelling: Literal["exact", "any"] | None = None,
) -> Erased:
    """Erase the rows of `keys` from a lake table: from every version, its tail and its change data.

    `feed`: a feed, or the path of its file. A key is a value, or a list of one for each column of the table's key. A
    value is Python's own, or its text as the server shows it; bytes may be hexadecimal digits. `shard`: only rows of
    that one. `keep_versions`: older versions that need the rows stay for `sink.keep`.

    `spelling`: whether texts that differ in case, accents or spaces at the end are the same key. Without it such rows
    stop the erasure before it begins.

    Raises ConfigError for keys that do not fit the table, SinkError for keys that the source still has, and StateError
    while an order to mend the table is open.
    """
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    wanted = table if isinstance(table, TableId) else _table(table)
    sink = sink_of(known)
    with closing(Store.open(known.state.get_secret_value(), known.name, create=False)) as store:
        row = _newest(known, sink, store)
        shape = _shape(row, wanted)
        _must_be_a_shard(row, shard)
        key_columns = shape.definition.key_columns
        erasure = Erasure(
            wanted,
            keys_of(key_columns, _some(list(keys))),
            shard,
            keep_versions,
            None if spelling is None else Spelling(spelling),
        )
        orders.forget_keys(store, wanted)
        verifications.forget_keys(store, wanted)
        return sink.erase(erasure, newest_fence(store))


def _table(name: str) -> TableId:
    try:
        return TableId.parse(name)
    except ValueError as error:
        raise ConfigError(f"{error}; give the table as SCHEMA.TABLE") from None


def _newest(feed: Feed, sink: Sink, store: Store) -> EpochRow:
    row = sink.newest()
    must_have_lake(feed, store, row)
    if row is None:
        raise SinkError(f"feed {feed.name} has not committed an epoch to {feed.sink.path} yet: run it first")
    return row


def _shape(row: EpochRow, table: TableId) -> TableShape:
    """The table as the newest epoch has it. Raises ConfigError where it has none of that name."""
    stale = row.manifest.stale_since(table)
    if stale is not None:
        raise ConfigError(f"{stale}; erase when the feed has copied it again")
    found = next((shape for shape in row.manifest.shapes if shape.table == table), None)
    if found is not None:
        return found
    feed = row.manifest.feed
    left = next((out for out in row.manifest.outside if out.table == table and out.epoch), None)
    if left is not None:
        raise ConfigError(
            f"feed {feed} does not carry {left}; nobody erases single rows of it: remove the table's directories"
        )
    names = ", ".join(sorted(str(shape.table) for shape in row.manifest.shapes))
    raise ConfigError(f"feed {feed} carries no table {table}; its tables are {names}")


def _must_be_a_shard(row: EpochRow, shard: str | None) -> None:
    shards = row.manifest.cut.shards
    if shard is not None and shard not in shards:
        raise ConfigError(
            f"feed {row.manifest.feed} has no shard {shard}; its shards are {', '.join(sorted(shards))}"
        )


def _some(keys: Sequence[object]) -> Sequence[object]:
    if not keys:
        raise ConfigError("no key is given; give the keys of the rows to erase")
    return keys
