"""The changes that a settle takes up, reduced to the last one of each (shard, key) and put in order of key."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.location import Location
from catchment.sink.delta.conform import conform
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.layout import DELETED, EPOCH
from catchment.wire.keys.keys import KeySet, bucket, encode, first_of_each
from catchment.wire.keys.order import last_in_order

_BATCH_ROWS = 1 << 17
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Pinned(msgspec.Struct, frozen=True):
    """A lake table at the version that a settle starts from: all its columns, and those of (shard, key)."""

    directory: Location
    schema: pa.Schema
    identity: tuple[str, ...]


class NetChanges(msgspec.Struct, frozen=True):
    """What changes come to, in order of (shard, key). `keys`: the columns of each key that changed. `comes`: the newest
    row of each that is not deleted in the end. `lost`: what became of the others, if it was asked for."""

    keys: pa.Table
    comes: pa.Table
    lost: "Lost | None" = None


class Lost(msgspec.Struct, frozen=True):
    """Of keys that are deleted in the end: the newest rows that they had among the changes. `deletes`: the first
    delete of each behind its row."""

    rows: pa.Table
    deletes: pa.Table


def plain_size(directory: Location, name: str) -> int:
    """Bytes of a data file's values, not compressed: about what they take in memory."""
    with lake_parquet(directory / name) as file:
        groups = range(file.num_row_groups)
        return sum(file.metadata.row_group(number).total_byte_size for number in groups)


class Share(msgspec.Struct, frozen=True):
    """A part of all keys: those whose hash leaves `number` when it is divided by `of`."""

    number: int = 0
    of: int = 1


def all_changes(pinned: Pinned, files: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of changes files, as they stand."""
    for file in files:
        yield from _held(pinned, pinned.directory / file, Share())


def load_share(pinned: Pinned, files: Sequence[str], share: Share) -> pa.Table:
    """The changes of a share's keys, in the order of epochs."""
    tables = [pinned.schema.empty_table()]
    for file in files:
        tables += _held(pinned, pinned.directory / file, share)
    rows = pa.concat_tables(tables)
    epochs = rows[EPOCH].to_numpy()
    if np.any(epochs[1:] < epochs[:-1]):
        rows = _taken(rows, np.argsort(epochs, kind="stable"))
    return rows


def load_net(pinned: Pinned, files: Sequence[str], share: Share, *, with_lost: bool = False) -> NetChanges:
    """Read changes files and keep the newest change of each (shard, key) of a share."""
    rows = load_share(pinned, files, share)
    newest = _taken(rows, last_in_order(encode(rows, pinned.identity)))
    keys = newest.select(pinned.identity)
    deleted = newest[DELETED].to_numpy()
    comes = newest.filter(pa.array(~deleted)) if deleted.any() else newest
    lost = _lost(rows, keys.filter(pa.array(deleted)), pinned.identity) if with_lost else None
    return NetChanges(keys, comes, lost)


def _taken(rows: pa.Table, places: Rows) -> pa.Table:
    """The rows of these numbers. Arrow takes texts from one chunk ten times as fast as from several."""
    chosen = pa.array(places)
    columns = [column.combine_chunks().take(chosen) for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _lost(rows: pa.Table, gone: pa.Table, identity: Sequence[str]) -> Lost:
    """`rows` in the order of epochs; `gone`: the keys whose last change is a delete."""
    mine = rows.filter(pa.array(KeySet(encode(gone, identity)).contains(encode(rows, identity))))
    had = mine.filter(pc.invert(mine[DELETED]))
    had = had.take(pa.array(last_in_order(encode(had, identity)))).combine_chunks()
    deletes = mine.filter(mine[DELETED])
    place = KeySet(encode(had, identity)).find(encode(deletes, identity))
    since = np.append(had[EPOCH].to_numpy(), -1)[place]  # of a key without a row the last one, which is -1
    deletes = deletes.filter(pa.array(deletes[EPOCH].to_numpy() > since))
    return Lost(had, deletes.take(pa.array(first_of_each(encode(deletes, identity)))).combine_chunks())


def _held(pinned: Pinned, path: Location, share: Share) -> list[pa.Table]:
    """The rows of a file that a share has."""
    with lake_parquet(path) as file:  # read_table takes twice as long for a small file
        if share.of == 1:
            return [conform(file.read(), pinned.schema)]
        found = []
        for batch in file.iter_batches(_BATCH_ROWS):
            mine = bucket(encode(batch, pinned.identity), share.of) == share.number
            found.append(conform(pa.Table.from_batches([batch]).filter(pa.array(mine)), pinned.schema))
        return found
