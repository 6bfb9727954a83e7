"""Bring a plain table to a later epoch in one commit: the dead get a deletion vector, what lives comes in one file.

A settle takes whole epochs of the tail, the oldest first, nets them, and asks each data file which of its rows they
replace. It reads committed epochs only. So it may be repeated after a crash, or beside another runner, and leads to
the same table.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.model.errors import LeaseLost, SinkConflict, SinkError
from catchment.model.version import __version__
from catchment.sink.delta.commit import CONFIGURATION, marks
from catchment.sink.delta.files import make_directory, sync_directory, write_parquet
from catchment.sink.delta.layout import (
    SHARD,
    epoch_app,
    fence_app,
    identity_columns,
    key_columns,
)
from catchment.sink.delta.plain.actions import Action, Add, MetaData, Txn
from catchment.sink.delta.plain.described import described, with_dead
from catchment.sink.delta.plain.log import PlainLog, Snapshot
from catchment.sink.delta.plain.net import conform
from catchment.sink.delta.plain.shape import plain_schema, protocol_of, schema_string
from catchment.sink.delta.plain.tail import Limits, Waiting, waiting
from catchment.sink.delta.plain.torn import (
    Torn,
    cleared,
    not_cleared,
    noted,
    rows_with_values,
    torn_in,
    without_values,
)
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


def settle(order: SettleOrder, shape_at: Callable[[int], TableShape]) -> Settled | None:
    """Settle the epochs that the order's limits admit; None when the table has all that has come to it. `shape_at`: the
    table's shape as of a committed epoch before the order's.

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
        step = order
        if found is not None and found.epoch < order.until:
            step = msgspec.structs.replace(order, until=found.epoch, shape=shape_at(found.epoch))
        head = _head(step, on)
        if found is None and not head:
            return None  # nothing has come to this table
        settled = _commit(step, log, on, found, head)
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
    made = _Made(order, now_ms)
    made.take(on, found)
    marks = [Txn(fence_app(order.feed), order.fence, now_ms), Txn(order.app, order.until, now_ms)]
    info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": "CREATE TABLE" if on is None else "MERGE",
        "operationParameters": {},
        "engineInfo": f"catchment/{__version__}",
        EPOCH_NOTE: str(order.until),
    }
    after = log.put(on, info, [*head, *marks, *made.actions])
    if after is None:
        return None
    return Settled(after.version, order.until, len(found.net) if found is not None else 0, made.died)


def _head(order: SettleOrder, on: Snapshot | None) -> list[Action]:
    """Protocol and schema, where the table does not have them: it is new, or the shape has other columns."""
    schema, protocol = schema_string(order.shape), protocol_of(order.shape)
    if on is None:
        now_ms = time.time_ns() // 1_000_000
        metadata = MetaData(str(uuid.uuid4()), schema, now_ms, _PROPERTIES | marks(order.feed))
        torn = torn_in(order.shape)
        return [protocol, noted(torn, metadata) if torn else metadata]
    found: list[Action] = []
    if not on.protocol.has(protocol):
        found.append(on.protocol.with_features_of(protocol))
    metadata = on.metadata
    if msgspec.json.decode(metadata.schema_string) != msgspec.json.decode(schema):
        metadata = msgspec.structs.replace(metadata, schema_string=schema)
    torn = torn_in(order.shape)
    if not_cleared(torn, metadata):
        metadata = noted(torn, metadata)
    return [*found, metadata] if metadata is not on.metadata else found


class _Made:
    """Files and actions of one settle. `died`: rows that it kills."""

    def __init__(self, order: SettleOrder, now_ms: int) -> None:
        self.actions: list[Action] = []
        self.died = 0
        self._order = order
        self._torn = torn_in(order.shape)
        self._now_ms = now_ms
        self._vectors = VectorFile(order.plain)

    def take(self, on: Snapshot | None, found: Waiting | None) -> None:
        """Kill what the changes replace, in files of the table and in new chunks, and bring what lives."""
        order = self._order
        stale = self._torn if on is None else not_cleared(self._torn, on.metadata)
        changed = Changed(found.net, identity_columns(order.shape)) if found is not None else None
        for file in on.files.values() if on is not None else ():
            dead = load(order.plain, file.dead)
            now = self._dead(file.path, dead, changed, stale)
            if len(now) > len(dead):
                self.actions.append(file.removed(self._now_ms, data_change=True))
                self._add(file.add, file.rows, dead, now)
        for path in found.chunks if found is not None else ():
            add, rows = self._chunk(path)
            self._add(add, rows, BitMap(), self._dead(add.path, BitMap(), changed, self._torn))
        upserts = None if found is None else found.net.rows.filter(pa.array(~found.net.deleted))
        if upserts is not None and upserts.num_rows:
            self._bring([upserts])
        self._vectors.write()

    def _dead(self, path: str, dead: BitMap, changed: Changed | None, stale: Torn) -> BitMap:
        """The dead rows of a file once the changes have come. Rows with values that their shard has dropped are brought
        without them, and die, too."""
        now = dead if changed is None else dead | changed.rows(self._order.plain / path)
        again = rows_with_values(self._order.plain / path, stale) - now if stale else BitMap()
        if again:
            schema = plain_schema(self._order.shape)
            self._bring(without_values(self._order.plain / path, again, stale, schema))
        return now | again

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

    def _bring(self, parts: Iterable[pa.Table]) -> None:
        """A new file of rows, in order of (shard, key)."""
        shape = self._order.shape
        schema = plain_schema(shape)
        rows = (cleared(conform(part, schema), self._torn) for part in parts)
        target = self._order.plain / f"{self._order.until}-{uuid.uuid4().hex[:12]}.parquet"
        write_parquet(target, rows, schema, (SHARD, *key_columns(shape)))
        self.actions.append(described(target, shape, self._now_ms)[0])
