"""Fewer files and fewer dead rows: small files of a plain table are joined in tiers, large ones are rewritten.

A join changes no row. It is prepared on one version and committed on the newest: rows that died meanwhile are dead in
the new file, too.
"""

import uuid
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from catchment import world
from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.model.treatment import Mode
from catchment.sink.delta.conform import conform
from catchment.sink.delta.files import Written, delete, lake_parquet, write_parquet
from catchment.sink.delta.layout import identity_columns
from catchment.sink.delta.log.actions import Action, Add, commit_info
from catchment.sink.delta.log.commit import fenced
from catchment.sink.delta.log.condemned import condemned
from catchment.sink.delta.log.delta_log import LakeFile, Snapshot
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.plain.arranged import clustered
from catchment.sink.delta.plain.described import described, with_dead
from catchment.sink.delta.plain.foreign import foreign_change
from catchment.sink.delta.plain.rows import rows_of
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.plain.vectors import VectorFile, load
from catchment.wire.keys.keys import encode
from catchment.wire.keys.order import last_in_order

Rows = npt.NDArray[np.int64]


class Source(msgspec.Struct, frozen=True):
    """A file that another is to replace, with its dead rows of then. `moved`: the row of the new file for each of its
    rows, -1 for a dead one."""

    file: LakeFile
    dead: BitMap
    moved: Rows


class Made(msgspec.Struct, frozen=True):
    """A new file, and what it is made of."""

    file: Written
    sources: tuple[Source, ...]


class Joined(msgspec.Struct, frozen=True):
    """A file that is written and not committed, and what it replaces. `condemned`: what the version said on which it
    was begun."""

    add: Add
    rows: int
    sources: tuple[Source, ...]
    condemned: int


def prepare(directory: Location, shape: TableShape, on: Snapshot, files: Sequence[LakeFile]) -> Joined | None:
    """Write the rows of some files of one partition of a version that live, those of several in order; None when none
    lives.

    Raises SinkError.
    """
    if not any(file.live for file in files):
        return None
    target = directory / f"join-{uuid.uuid4().hex}.parquet"
    write = _rewrite if len(files) == 1 else _merge
    made = write(target, shape, files)
    add = described(made.file, shape, world.now_us() // 1000)
    count, values = made.file.footer.num_rows, files[0].add.partition_values
    add = msgspec.structs.replace(add, data_change=False, partition_values=values)
    return Joined(add, count, made.sources, condemned(on))


def _rewrite(target: Location, shape: TableShape, files: Sequence[LakeFile]) -> Made:
    """Write the rows of one file that live as they stand, a row group at a time."""
    (file,) = files
    dead = load(target.parent, file.dead)
    living = BitMap(range(file.rows)) - dead
    schema = plain_schema(shape)
    written = write_parquet(target, rows_of(target.parent / file.path, living, schema), schema)
    lives = _mask(file, dead)
    return Made(written, (Source(file, dead, np.where(lives, np.cumsum(lives) - 1, -1)),))


def _merge(target: Location, shape: TableShape, files: Sequence[LakeFile]) -> Made:
    """Write the rows of several files that live, in order."""
    schema = plain_schema(shape)
    tables, vectors = [schema.empty_table()], [load(target.parent, file.dead) for file in files]
    for file, dead in zip(files, vectors, strict=True):
        with lake_parquet(target.parent / file.path) as held:
            tables.append(conform(held.read(), schema).filter(pa.array(_mask(file, dead))))
    rows = pa.concat_tables(tables)
    order = clustered(rows, shape, _order(rows, identity_columns(shape), shape.mode))
    written = write_parquet(target, [rows.take(pa.array(order))], schema)
    return Made(written, tuple(_moved(files, vectors, order)))


def _order(rows: pa.Table, identity: Sequence[str], mode: Mode) -> Rows:
    """Rows in order of (shard, key), those of one key as they come; as they come where all changes are kept."""
    if mode is Mode.APPEND:
        return np.arange(rows.num_rows)
    keys = encode(rows, identity)
    if mode is not Mode.HISTORY:
        order = last_in_order(keys)
        if len(order) == rows.num_rows:
            return order
        # Damage put a key there several times. Each row stays for a verify to mend: a join changes no row.
    return np.asarray(pc.sort_indices(keys.to_binary()), np.int64)  # a stable sort


def _mask(file: LakeFile, dead: BitMap) -> npt.NDArray[np.bool_]:
    """Of each row of a file whether it lives."""
    lives = np.ones(file.rows, np.bool_)
    lives[np.asarray(dead.to_array(), np.int64)] = False
    return lives


def _moved(files: Sequence[LakeFile], vectors: Sequence[BitMap], order: Rows) -> Iterator[Source]:
    """The sources of a file whose rows are those that lived, taken one file after the other, in this order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = 0
    for file, dead in zip(files, vectors, strict=True):
        lives = _mask(file, dead)
        moved = np.full(file.rows, -1, np.int64)
        moved[lives] = place[first : first + file.live]
        first += file.live
        yield Source(file, dead, moved)


def commit(order: SettleOrder, joined: Joined) -> Snapshot | None:
    """Put the new file in place of its sources, on the newest version; None when one of them is gone, or when the
    cleaner may take the new one. Then that is deleted: it may have rows that were erased meanwhile.

    Raises LeaseLost when a later runner wrote the table, SinkError.
    """
    log = order.plain
    while True:
        on = log.newest()
        if on is not None:
            must_lead(on, order.feed, order.fence, str(order.shape.table))
        known = on is not None and foreign_change(log, on) is None  # what others changed, a settle takes back
        actions = _actions(log.directory, on, joined) if on is not None and known else None
        if on is None or actions is None:
            delete(log.directory / joined.add.file)
            return None
        info = commit_info("OPTIMIZE", world.now_us() // 1000)
        after = log.put(on, info, [fenced(order.feed, order.fence), *actions])
        if after is not None:
            return after


def _actions(directory: Location, on: Snapshot, joined: Joined) -> list[Action] | None:
    if condemned(on) != joined.condemned:
        return None
    now_ms = world.now_us() // 1000
    died = BitMap()
    actions: list[Action] = []
    for source in joined.sources:
        now = on.files.get(source.file.path)
        if now is None:
            return None
        late = np.asarray((load(directory, now.dead) - source.dead).to_array(), np.int64)
        died |= BitMap(source.moved[late].astype(np.uint32))
        actions.append(now.removed(now_ms, data_change=False))
    if len(died) < joined.rows:
        vectors = VectorFile(directory, on.metadata.configuration)
        actions.append(with_dead(joined.add, joined.rows, died, vectors))
        vectors.write()
    return actions
