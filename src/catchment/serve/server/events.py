"""Events as the published protobuf has them; rows are told by `telling`, many in one event."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from catchment.model.table import Kind, TableId
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.server.values import untyped
from catchment.serve.server.varints import varint
from catchment.serve.stream.events import (
    Begin,
    Commit,
    CopyCompleted,
    Ddl,
    Event,
    Field,
    Gap,
    Heartbeat,
    LastPk,
    Restart,
    VGtid,
)

# Fields of Begin and Commit behind keyspace and shard, and of Event.
_GTID, _TIME, _COPIED = b"\x1a", b"\x20", b"\x28\x01"
_BEGIN, _COMMIT = b"\x0a", b"\x2a"

KINDS: Final = {kind: f"KIND_{kind.name}" for kind in Kind}


def serialized(event: Event) -> bytes:
    """An event that is no row, as an Event. Those around transactions are too many for generated code."""
    if isinstance(event, Begin):
        return _around(_BEGIN, event, _COPIED if event.copied else b"")
    if isinstance(event, Commit):
        return _around(_COMMIT, event, b"")
    return event_of(event).SerializeToString()


def event_of(event: Event) -> pb.Event:
    """The same as generated code has it."""
    return _MADE[type(event)](event)


def table_of(table: TableId) -> pb.Table:
    """The name of a table."""
    return pb.Table(schema=table.schema, name=table.name)


def _around(tag: bytes, event: Begin | Commit, more: bytes) -> bytes:
    gtid = event.gtid.encode()
    told = _head(event.keyspace, event.shard)
    if gtid:
        told += _GTID + varint(len(gtid)) + gtid
    if event.time:
        told += _TIME + varint(event.time)
    told += more
    return tag + varint(len(told)) + told


@lru_cache(maxsize=4096)
def _head(keyspace: str, shard: str) -> bytes:
    return pb.Begin(keyspace=keyspace, shard=shard).SerializeToString()


def _begin(event: Begin) -> pb.Event:
    begun = pb.Begin(
        keyspace=event.keyspace, shard=event.shard, gtid=event.gtid, time=event.time, copied=event.copied
    )
    return pb.Event(begin=begun)


def _field(event: Field) -> pb.Event:
    columns = [
        pb.Column(
            name=column.name,
            kind=KINDS[column.type.kind],
            unsigned=column.type.unsigned,
            length=column.type.length,
            scale=column.type.scale,
            charset=column.type.charset,
            labels=column.type.labels,
        )
        for column in event.columns
    ]
    told = pb.Field(keyspace=event.keyspace, shard=event.shard, table=table_of(event.table))
    told.columns.extend(columns)
    told.key.extend(event.key)
    return pb.Event(field=told)


def _last_pk(event: LastPk) -> pb.Event:
    key = [untyped(part) for part in event.key or ()]
    last = pb.LastPk(keyspace=event.keyspace, shard=event.shard, table=table_of(event.table), key=key)
    return pb.Event(last_pk=last)


def _commit(event: Commit) -> pb.Event:
    ended = pb.Commit(keyspace=event.keyspace, shard=event.shard, gtid=event.gtid, time=event.time)
    return pb.Event(commit=ended)


def _ddl(event: Ddl) -> pb.Event:
    did = pb.Ddl(
        keyspace=event.keyspace,
        shard=event.shard,
        table=table_of(event.table),
        statement=event.statement,
        added=[pb.Added(column=name, value=untyped(value)) for name, value in event.added.items()],
        dropped=event.dropped,
        renamed=[pb.Renamed(old=old, new=new) for old, new in event.renamed.items()],
        emptied=event.emptied,
    )
    return pb.Event(ddl=did)


def _restart(event: Restart) -> pb.Event:
    again = pb.Restart(
        keyspace=event.keyspace,
        shard=event.shard,
        table=table_of(event.table),
        reason=event.reason,
        gone=event.gone,
    )
    return pb.Event(restart=again)


def _copy_completed(event: CopyCompleted) -> pb.Event:
    table = None if event.table is None else table_of(event.table)
    return pb.Event(copy_completed=pb.CopyCompleted(keyspace=event.keyspace, shard=event.shard, table=table))


def _vgtid(event: VGtid) -> pb.Event:
    return pb.Event(vgtid=pb.VGtid(text=event.text, time_us=event.time_us))


def _heartbeat(event: Heartbeat) -> pb.Event:
    return pb.Event(heartbeat=pb.Heartbeat(time_us=event.time_us))


def _gap(event: Gap) -> pb.Event:
    return pb.Event(gap=pb.Gap(since_vgtid=event.since, until_vgtid=event.until))


_MADE: Final[dict[type, Callable[[Any], pb.Event]]] = {
    Begin: _begin,
    Field: _field,
    LastPk: _last_pk,
    Commit: _commit,
    Ddl: _ddl,
    Restart: _restart,
    CopyCompleted: _copy_completed,
    VGtid: _vgtid,
    Heartbeat: _heartbeat,
    Gap: _gap,
}
