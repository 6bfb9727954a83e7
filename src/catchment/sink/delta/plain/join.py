"""Fewer files and fewer dead rows: small files of a plain table are joined in tiers, large ones are rewritten.

A join changes no row. It is prepared on one version and committed on the newest: rows that died meanwhile are dead in
the new file, too.
"""

import math
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.sink.delta.files import lake_file, write_parquet
from catchment.sink.delta.layout import SHARD, identity_columns, key_columns
from catchment.sink.delta.plain.actions import Action, Add, commit_info
from catchment.sink.delta.plain.described import described, with_dead
from catchment.sink.delta.plain.log import DeltaLog, LakeFile, Snapshot
from catchment.sink.delta.plain.net import conform
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.plain.vectors import VectorFile, load
from catchment.wire.keys.keys import encode
from catchment.wire.keys.order import last_in_order

# A join takes so many files of a tier, and makes one of the next: a row is written again at most once a tier.
FAN = 16
# From so many rows on a file is not joined with others any more, and rewritten when so many of its rows are dead.
LARGE_ROWS = 1 << 17
DEAD_SHARE = 0.3

Rows = npt.NDArray[np.int64]


class Joined(msgspec.Struct, frozen=True):
    """A file that is written and not committed. `sources`: what it replaces, each with the dead rows of then, and with
    the row of the new file for each row that lived."""

    add: Add
    rows: int
    sources: tuple[tuple[LakeFile, BitMap, Rows], ...]


def due(snapshot: Snapshot) -> list[LakeFile]:
    """The files that are to become one: a full tier of small ones, the smallest first; else a large one with many dead
    rows. There may be none."""
    tiers: dict[int, list[LakeFile]] = {}
    for file in snapshot.files.values():
        if file.live < LARGE_ROWS:
            tiers.setdefault(int(math.log(max(file.live, 1), FAN)), []).append(file)
    for _, files in sorted(tiers.items()):
        if len(files) >= FAN:
            return files
    worn = (f for f in snapshot.files.values() if f.rows >= LARGE_ROWS and f.live < (1 - DEAD_SHARE) * f.rows)
    return list(worn)[:1]


def prepare(directory: Path, shape: TableShape, files: Iterable[LakeFile]) -> Joined | None:
    """Write the rows of some files that live, in order of (shard, key); None when none does. Raises SinkError."""
    schema = plain_schema(shape)
    tables, parts = [schema.empty_table()], []
    for file in files:
        dead = load(directory, file.dead)
        path = directory / file.path
        with lake_file(path):
            held = pq.read_table(path, columns=_present(path, schema), partitioning=None)
        lives = np.ones(file.rows, np.bool_)
        lives[np.asarray(dead.to_array(), np.int64)] = False
        tables.append(conform(held, schema).filter(pa.array(lives)))
        parts.append((file, dead, lives))
    rows = pa.concat_tables(tables)
    if not rows.num_rows:
        return None
    order = last_in_order(encode(rows, identity_columns(shape)))
    target = directory / f"join-{uuid.uuid4().hex}.parquet"
    write_parquet(target, [rows.take(pa.array(order))], schema, (SHARD, *key_columns(shape)))
    add, count = described(target, shape, time.time_ns() // 1_000_000)
    return Joined(msgspec.structs.replace(add, data_change=False), count, _moved(parts, order))


def _present(path: Path, schema: pa.Schema) -> list[str]:
    held = set(pq.read_schema(path).names)
    return [name for name in schema.names if name in held]


def _moved(
    parts: list[tuple[LakeFile, BitMap, npt.NDArray[np.bool_]]], order: Rows
) -> tuple[tuple[LakeFile, BitMap, Rows], ...]:
    """Of each source the row of the new file for each of its rows, -1 for a dead one."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    found, first = [], 0
    for file, dead, lives in parts:
        rows = np.full(file.rows, -1, np.int64)
        count = int(np.count_nonzero(lives))
        rows[lives] = place[first : first + count]
        first += count
        found.append((file, dead, rows))
    return tuple(found)


def commit(log: DeltaLog, joined: Joined) -> Snapshot | None:
    """Put the new file in place of its sources, on the newest version; None when one of them is gone. Then the cleaner
    removes what was written. Raises SinkError."""
    while True:
        on = log.newest()
        actions = None if on is None else _actions(log.directory, on.files, joined)
        if on is None or actions is None:
            return None
        now_ms = time.time_ns() // 1_000_000
        info = commit_info("OPTIMIZE", now_ms)
        after = log.put(on, info, actions)
        if after is not None:
            return after


def _actions(directory: Path, files: Mapping[str, LakeFile], joined: Joined) -> list[Action] | None:
    now_ms = time.time_ns() // 1_000_000
    died = BitMap()
    actions: list[Action] = []
    for source, dead, rows in joined.sources:
        now = files.get(source.add.path)
        if now is None:
            return None
        late = np.asarray((load(directory, now.dead) - dead).to_array(), np.int64)
        died |= BitMap(rows[late].astype(np.uint32))
        actions.append(now.removed(now_ms, data_change=False))
    if len(died) < joined.rows:
        vectors = VectorFile(directory)
        actions.append(with_dead(joined.add, joined.rows, died, vectors))
        vectors.write()
    return actions
