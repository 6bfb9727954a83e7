"""Files and actions of one settle: what the changes of some epochs make of a version of a plain table."""

import os
import uuid
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.model.errors import SinkError
from catchment.sink.delta.files import sync_directory, write_parquet
from catchment.sink.delta.layout import SHARD, identity_columns, key_columns
from catchment.sink.delta.plain.actions import Action, Add
from catchment.sink.delta.plain.described import described, with_dead
from catchment.sink.delta.plain.log import Snapshot
from catchment.sink.delta.plain.net import NetChanges, conform
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.plain.tail import Waiting
from catchment.sink.delta.plain.torn import (
    Torn,
    cleared,
    not_cleared,
    rows_with_values,
    torn_in,
    without_values,
)
from catchment.sink.delta.plain.touched import Changed
from catchment.sink.delta.plain.vectors import VectorFile, load


class Made:
    """Files and actions of one settle. `changes`: how many came; `died`: rows that it kills."""

    def __init__(self, plain: Path, tail: Path, shape: TableShape, epoch: int, now_ms: int) -> None:
        self.actions: list[Action] = []
        self.changes = self.died = 0
        self._plain, self._tail, self._shape, self._epoch = plain, tail, shape, epoch
        self._torn = torn_in(shape)
        self._now_ms = now_ms
        self._vectors = VectorFile(plain)

    def take(self, on: Snapshot | None, found: Waiting | None) -> None:
        """Kill what the changes replace, in files of the table and in new chunks, and bring what lives."""
        stale = self._torn if on is None else not_cleared(self._torn, on.metadata)
        files = on.files.values() if on is not None else ()
        chunks = [self._chunk(path) for path in (found.chunks if found is not None else ())]
        before = {file.path: load(self._plain, file.dead) for file in files}
        dead = {path: rows.copy() for path, rows in before.items()} | {
            add.path: BitMap() for add, _ in chunks
        }
        for net in found.nets() if found is not None else ():
            self._apply(net, dead)
        self._clear(before, dead, stale)
        self._clear([add.path for add, _ in chunks], dead, self._torn)
        for file in files:
            if len(dead[file.path]) > len(before[file.path]):
                self.actions.append(file.removed(self._now_ms, data_change=True))
                self._add(file.add, file.rows, before[file.path], dead[file.path])
        for add, rows in chunks:
            self._add(add, rows, BitMap(), dead[add.path])
        self._vectors.write()

    def _apply(self, net: NetChanges, dead: dict[str, BitMap]) -> None:
        """Kill what net changes replace, and bring what lives of them."""
        self.changes += len(net)
        changed = Changed(net, identity_columns(self._shape))
        for path in dead:
            dead[path] |= changed.rows(self._plain / path)
        upserts = net.rows.filter(pa.array(~net.deleted))
        if upserts.num_rows:
            self._bring([upserts])

    def _clear(self, paths: Iterable[str], dead: dict[str, BitMap], torn: Torn) -> None:
        """Rows of files with values that their shard has dropped are brought without them, and die."""
        if not torn:
            return
        schema = plain_schema(self._shape)
        for path in paths:
            again = rows_with_values(self._plain / path, torn) - dead[path]
            if again:
                self._bring(without_values(self._plain / path, again, torn, schema))
                dead[path] |= again

    def _add(self, add: Add, rows: int, before: BitMap, dead: BitMap) -> None:
        """The file with its dead rows; nothing when none lives."""
        self.died += len(dead) - len(before)
        if len(dead) == rows:
            return
        after = with_dead(add, rows, dead, self._vectors)
        self.actions.append(msgspec.structs.replace(after, data_change=True, modification_time=self._now_ms))

    def _chunk(self, path: str) -> tuple[Add, int]:
        """A copied chunk under a name of the plain table: the same file, of which no byte is written again."""
        source = self._tail / path
        target = self._plain / Path(path).name
        try:
            os.link(source, target)
            sync_directory(self._plain)
        except FileExistsError:
            pass  # an attempt before this one
        except OSError as error:
            raise SinkError(
                f"cannot link {source} to {target}: {error}; check space and rights there"
            ) from error
        return described(target, self._shape, self._now_ms)

    def _bring(self, parts: Iterable[pa.Table]) -> None:
        """A new file of rows, in order of (shard, key)."""
        schema = plain_schema(self._shape)
        rows = (cleared(conform(part, schema), self._torn) for part in parts)
        target = self._plain / f"{self._epoch}-{uuid.uuid4().hex[:12]}.parquet"
        write_parquet(target, rows, schema, (SHARD, *key_columns(self._shape)))
        self.actions.append(described(target, self._shape, self._now_ms)[0])
