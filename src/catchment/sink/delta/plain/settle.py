"""Bring a plain table to a later epoch in one commit: the dead get a deletion vector, what lives comes in one file.

A settle takes whole epochs of the tail, the oldest first, nets them, and asks each data file which of its rows they
replace. It reads committed epochs only. So it may be repeated after a crash, or beside another runner, and leads to
the same table.
"""

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.model.errors import LeaseLost, SinkConflict, SinkError
from catchment.model.version import __version__
from catchment.sink.delta.commit import CONFIGURATION
from catchment.sink.delta.files import make_directory, sync_directory, write_parquet
from catchment.sink.delta.layout import (
    DELETED,
    SHARD,
    epoch_app,
    fence_app,
    identity_columns,
    key_columns,
)
from catchment.sink.delta.plain.actions import Action, Add, MetaData, Txn
from catchment.sink.delta.plain.described import described, with_dead
from catchment.sink.delta.plain.log import PlainFile, PlainLog, Snapshot
from catchment.sink.delta.plain.shape import plain_schema, protocol_of, schema_string
from catchment.sink.delta.plain.tail import Limits, Waiting, waiting
from catchment.sink.delta.plain.touched import Changed
from catchment.sink.delta.plain.vectors import VectorFile, load

_ATTEMPTS = 50
EPOCH_NOTE = "catchment.epoch"
_PROPERTIES = CONFIGURATION | {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "10"}


class SettleOrder(msgspec.Struct, frozen=True):
    """What to settle: a table whose tail and plain table lie there, up to the committed epoch `until`, of which `shape`
    is the table's shape."""

    plain: Path
    tail: Path
    shape: TableShape
    feed: str
    fence: int
    until: int
    limits: Limits = Limits()

    @property
    def app(self) -> str:
        """Under which name the plain table carries its epoch."""
        return epoch_app(self.feed, self.shape.table)


class Settled(msgspec.Struct, frozen=True):
    """A committed settle: the plain table's version, the epoch that it is, how many changes came and rows died."""

    version: int
    epoch: int
    changes: int
    died: int


def settle(order: SettleOrder) -> Settled | None:
    """Settle the epochs that the order's limits admit; None when the table has all that has come to it.

    Raises LeaseLost when a later runner wrote the table, SinkConflict when other writers won every attempt, and
    SinkError when the lake refuses.
    """
    log = PlainLog(order.plain)
    for _ in range(_ATTEMPTS):
        on = log.newest()
        since = _since(order, on)
        if on is not None and since >= order.until:
            return None
        found = waiting(
            order.tail,
            identity_columns(order.shape),
            since=since,
            until=order.until,
            limits=order.limits,
        )
        head = _head(order, on)
        if found is None and not head:
            return None  # nothing has come to this table
        settled = _commit(order, log, on, found, head)
        if settled is not None:
            return settled
    raise SinkConflict(
        f"{order.shape.table}: other writers won {_ATTEMPTS} commits in a row at {order.plain}; end them"
    )


def _since(order: SettleOrder, on: Snapshot | None) -> int:
    """The epoch that the plain table is, 0 before the first."""
    if on is None:
        return 0
    known = on.transactions.get(fence_app(order.feed), 0)
    if known > order.fence:
        raise LeaseLost(
            f"{order.shape.table}: a later runner wrote it: its fence is {known}, ours {order.fence}"
        )
    return on.transactions.get(order.app, 0)


def _commit(
    order: SettleOrder, log: PlainLog, on: Snapshot | None, found: Waiting | None, head: list[Action]
) -> Settled | None:
    """One try on top of one version; None when another commit came first."""
    now_ms = time.time_ns() // 1_000_000
    make_directory(order.plain / "_delta_log")
    epoch = order.until if found is None else found.epoch
    made = _Made(order, now_ms)
    if found is not None:
        made.take(on.files if on is not None else {}, found)
    marks = [Txn(fence_app(order.feed), order.fence, now_ms), Txn(order.app, epoch, now_ms)]
    info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": "CREATE TABLE" if on is None else "MERGE",
        "operationParameters": {},
        "engineInfo": f"catchment/{__version__}",
        EPOCH_NOTE: str(epoch),
    }
    after = log.put(on, info, [*head, *marks, *made.actions])
    if after is None:
        return None
    return Settled(after.version, epoch, len(found.net) if found is not None else 0, made.died)


def _head(order: SettleOrder, on: Snapshot | None) -> list[Action]:
    """Protocol and schema, where the table does not have them: it is new, or the shape has other columns."""
    schema, protocol = schema_string(order.shape), protocol_of(order.shape)
    if on is None:
        now_ms = time.time_ns() // 1_000_000
        owner = {"catchment.feed": order.feed}
        return [protocol, MetaData(str(uuid.uuid4()), schema, now_ms, _PROPERTIES | owner)]
    found: list[Action] = []
    if not on.protocol.has(protocol):
        found.append(on.protocol.with_features_of(protocol))
    if msgspec.json.decode(on.metadata.schema_string) != msgspec.json.decode(schema):
        found.append(msgspec.structs.replace(on.metadata, schema_string=schema))
    return found


class _Made:
    """Files and actions of one settle. `died`: rows that it kills."""

    def __init__(self, order: SettleOrder, now_ms: int) -> None:
        self.actions: list[Action] = []
        self.died = 0
        self._order = order
        self._now_ms = now_ms
        self._vectors = VectorFile(order.plain)

    def take(self, files: Mapping[str, PlainFile], found: Waiting) -> None:
        """Kill what the changes replace, in files of the table and in new chunks, and bring what lives."""
        order = self._order
        changed = Changed(found.net, identity_columns(order.shape))
        for file in files.values():
            dead = load(order.plain, file.dead)
            now = dead | changed.rows(order.plain / file.path)
            if len(now) > len(dead):
                self.actions.append(file.removed(self._now_ms, data_change=True))
                self._add(file.add, file.rows, dead, now)
        for path in found.chunks:
            add, rows = self._chunk(path)
            self._add(add, rows, BitMap(), changed.rows(order.plain / add.path))
        upserts = found.net.rows.filter(pa.array(~found.net.deleted))
        if upserts.num_rows:
            self.actions.append(self._upserts(upserts, found.epoch))
        self._vectors.write()

    def _add(self, add: Add, rows: int, before: BitMap, dead: BitMap) -> None:
        """The file with its dead rows; nothing when none lives."""
        self.died += len(dead) - len(before)
        if len(dead) == rows:
            return
        after = with_dead(add, rows, dead, self._vectors)
        self.actions.append(msgspec.structs.replace(after, data_change=True, modification_time=self._now_ms))

    def _chunk(self, path: str) -> tuple[Add, int]:
        """A copied chunk under a name of the plain table: the same file, of which no byte is written again."""
        source = self._order.tail / path
        target = self._order.plain / Path(path).name
        try:
            os.link(source, target)
            sync_directory(self._order.plain)
        except FileExistsError:
            pass  # an attempt before this one
        except OSError as error:
            raise SinkError(
                f"cannot link {source} to {target}: {error}; check space and rights there"
            ) from error
        return described(target, self._order.shape, self._now_ms)

    def _upserts(self, rows: pa.Table, epoch: int) -> Add:
        """A new file of what lives, in order of (shard, key)."""
        shape = self._order.shape
        schema = pa.schema([f for f in rows.schema if f.name != DELETED])
        wanted = plain_schema(shape)
        held = rows.select([f.name for f in schema if f.name in wanted.names])
        target = self._order.plain / f"{epoch}-{uuid.uuid4().hex[:12]}.parquet"
        write_parquet(target, [held], held.schema, (SHARD, *key_columns(shape)))
        return described(target, shape, self._now_ms)[0]
