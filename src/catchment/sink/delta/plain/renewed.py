"""What a new copy of a table that keeps its past makes of the plain table: nothing but the differences.

Rows that the new copy has as they are there stay untouched, and so does the past. Others end, or begin, with the epoch
at which the new copy is exact. A share of all keys is compared at a time, as memory holds it.
"""

import math
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.model.table import ENDED
from catchment.model.treatment import Mode
from catchment.sink.delta.conform import conform
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.layout import DELETED, EPOCH, identity_columns
from catchment.sink.delta.log.delta_log import LakeFile
from catchment.sink.delta.plain.amended import Amended, as_told
from catchment.sink.delta.plain.net import Share, load_net, plain_size
from catchment.sink.delta.plain.tail import Limits, Waiting
from catchment.sink.delta.plain.versions_of_rows import with_times
from catchment.wire.keys.keys import KeySet, bucket, encode, hash_rows
from catchment.wire.keys.order import last_in_order

_BATCH_ROWS = 1 << 17
_LASTS = -1
Mask = npt.NDArray[np.bool_]


class OldCopy(msgspec.Struct, frozen=True):
    """The files of a plain table that may have rows of now, with the numbers of dead rows. `read`: with which columns
    rows are read."""

    directory: Location
    files: tuple[LakeFile, ...]
    dead: dict[str, BitMap]
    read: pa.Schema


class Renewing(msgspec.Struct, frozen=True):
    """A table of this shape whose new copy is exact at `epoch`. `amended`: what rows have that no log has brought;
    `schema`: that of the plain table."""

    shape: TableShape
    epoch: int
    amended: Amended
    schema: pa.Schema


class Differing(msgspec.Struct, frozen=True):
    """What a share of keys differs in. `dying`: numbers of rows by file, and these rows as they are there (`died`).
    `brought`: rows of the plain table that come, those of each in files of their own."""

    dying: dict[str, BitMap]
    died: list[pa.Table]
    brought: list[pa.Table]


class _Held(msgspec.Struct, frozen=True):
    """Rows of the old copy. `files` and `numbers` say where each one is."""

    rows: pa.Table
    files: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]

    def taken(self, places: npt.NDArray[np.int64]) -> "_Held":
        """The rows at these places."""
        return _Held(self.rows.take(pa.array(places)), self.files[places], self.numbers[places])


def differing(of: Renewing, old: OldCopy, new: Waiting | None, limits: Limits) -> Iterator[Differing]:
    """How the new copy, which is all of its tail, differs from the rows of now of the old one, a share at a time."""
    shares = _shares(old, new, limits)
    for number in range(shares):
        share = Share(number, shares)
        yield _of_share(of, old, _held(of, old, share), _came(of, old, new, share))


def _shares(old: OldCopy, new: Waiting | None, limits: Limits) -> int:
    """How many parts of all keys memory holds one after another."""
    rows = sum(file.live for file in old.files)
    size = sum(plain_size(old.directory, file.path) for file in old.files)
    if new is not None:
        for name in (*new.chunks, *new.changes):
            size += plain_size(new.pinned.directory, name)
            with lake_parquet(new.pinned.directory / name) as file:
                rows += file.metadata.num_rows
    return max(1, math.ceil(rows / limits.rows), math.ceil(size / limits.bytes))


def _held(of: Renewing, old: OldCopy, share: Share) -> _Held:
    """The rows of a share that the old copy has, and deleted ones among them; of all changes of a key the last one."""
    found = [_Held(old.read.empty_table(), np.empty(0, np.int64), np.empty(0, np.int64))]
    for place, file in enumerate(old.files):
        lives = np.ones(file.rows, np.bool_)
        lives[np.asarray(old.dead[file.path].to_array(), np.int64)] = False
        for first, rows in _batches(old.directory / file.path, old.read):
            mine = lives[first : first + rows.num_rows] & _in(rows, of, share)
            if of.shape.mode is Mode.HISTORY:
                mine &= rows[ENDED].is_null().to_numpy()
            numbers = first + np.flatnonzero(mine)
            found.append(_Held(rows.filter(pa.array(mine)), np.full(len(numbers), place), numbers))
    held = _Held(
        pa.concat_tables([one.rows for one in found]).combine_chunks(),
        np.concatenate([one.files for one in found]),
        np.concatenate([one.numbers for one in found]),
    )
    if of.shape.mode is Mode.APPEND:
        held = held.taken(np.argsort(held.rows[EPOCH].to_numpy(), kind="stable"))
        return held.taken(last_in_order(encode(held.rows, identity_columns(of.shape))))
    return held


def _came(of: Renewing, old: OldCopy, new: Waiting | None, share: Share) -> pa.Table:
    """The rows of a share that the new copy has, in order of key: of chunks those that no change has replaced."""
    parts = [old.read.empty_table()]
    if new is None:
        return parts[0]
    identity = identity_columns(of.shape)
    net = load_net(new.pinned, new.changes, share)
    changed = KeySet(encode(net.keys, identity))
    for name in new.chunks:
        for _, rows in _batches(new.pinned.directory / name, old.read):
            mine = _in(rows, of, share) & ~changed.contains(encode(rows, identity))
            parts.append(rows.filter(pa.array(mine)))
    rows = pa.concat_tables([*parts, conform(net.comes, old.read)])
    return rows.take(pa.array(last_in_order(encode(rows, identity)))).combine_chunks()


def _batches(path: Location, schema: pa.Schema) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a file, with the number of the first of each part."""
    first = 0
    with lake_parquet(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            yield first, conform(pa.Table.from_batches([batch]), schema)
            first += batch.num_rows


def _in(rows: pa.Table, of: Renewing, share: Share) -> Mask:
    """Which rows are of a share's keys."""
    if share.of == 1:
        return np.ones(rows.num_rows, np.bool_)
    found: Mask = bucket(encode(rows, identity_columns(of.shape)), share.of) == share.number
    return found


def _of_share(of: Renewing, old: OldCopy, held: _Held, came: pa.Table) -> Differing:
    identity = identity_columns(of.shape)
    had, told = as_told(held.rows, of.amended), as_told(came, of.amended)
    here, there = encode(told, identity), encode(had, identity)
    deleted = had[DELETED].fill_null(False).to_numpy() if DELETED in had.column_names else None
    lives = np.ones(had.num_rows, np.bool_) if deleted is None else ~deleted
    columns = [column.physical for column in of.shape.kept]
    place = KeySet(there).find(here)
    same = (place >= 0) & np.append(lives, False)[place]
    same[same] = hash_rows(told, columns)[same] == hash_rows(had, columns)[place[same]]
    stays, comes = np.zeros(had.num_rows, np.bool_), KeySet(here).contains(there)
    stays[place[same]] = True
    begun = _dated(told.filter(pa.array(~same)), of.epoch, deleted=False)
    ends = held.taken(np.flatnonzero((comes | lives) & ~stays))
    gone = held.rows.filter(pa.array(lives & ~comes))
    if of.shape.mode is Mode.HISTORY:
        return Differing(_numbers(old, ends), [ends.rows], _versions(of, old, ends.rows, begun))
    if of.shape.mode is Mode.SOFT_DELETE:
        marked = _dated(as_told(gone, of.amended), of.epoch, deleted=True)
        return Differing(_numbers(old, ends), [ends.rows], [_in_order(of, begun, marked)])
    # Of a delete readers take the key alone.
    deletes = _dated(conform(gone.select(identity), of.schema), of.epoch, deleted=True)
    return Differing({}, [], [_in_order(of, begun, deletes)])


def _versions(of: Renewing, old: OldCopy, ends: pa.Table, begun: pa.Table) -> list[pa.Table]:
    """Versions that end, and those that begin."""
    ended = with_times(ends, np.full(ends.num_rows, of.epoch), old.read)
    lasts = np.full(begun.num_rows, _LASTS)
    return [conform(as_told(ended, of.amended), of.schema), with_times(begun, lasts, of.schema)]


def _in_order(of: Renewing, *parts: pa.Table) -> pa.Table:
    """Rows of the plain table in order of key, of which each is there once."""
    rows = pa.concat_tables([conform(part, of.schema) for part in parts])
    return rows.take(pa.array(last_in_order(encode(rows, identity_columns(of.shape))))).combine_chunks()


def _dated(rows: pa.Table, epoch: int, *, deleted: bool) -> pa.Table:
    """Rows as those of a change of this epoch."""
    for name, value in ((EPOCH, epoch), (DELETED, deleted)):
        place = rows.schema.get_field_index(name)
        if place >= 0:
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, pa.repeat(pa.scalar(value, field.type), rows.num_rows))
    return rows


def _numbers(old: OldCopy, dying: _Held) -> dict[str, BitMap]:
    """Of each file the numbers of rows that die."""
    found = {}
    for place in np.unique(dying.files):
        numbers = dying.numbers[dying.files == place]
        found[old.files[place].path] = BitMap(numbers.astype(np.uint32))
    return found
