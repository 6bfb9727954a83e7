"""Offsets of version 1, as checkpoints of earlier Catchments hold them: read, and never written.

    {"version": 1, "epoch": 7638912345600000001, "time_us": 1790000000000000, "shards": {"-80": {
        "file": "binlog.000002", "offset": 4711, "gtid": "0-101-93", "born": 1790000000, "event": [31, 3735928559],
        "resets": [0, 1789000000, 1790000007], "server": [101, "db1", 3306], "sealed": "binlog.000002:4400",
        "prepared": [], "shown": true, "copy": {"copied": [500], "through": [[250], [500]], "born_after": [2000],
        "done": false, "expected": 2000}, "dropped": ["note"]}}}

A stream that has not begun stands where it does in version 2.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from catchment.model.chunk import Bound
from catchment.model.cut import Cut
from catchment.model.definition import Definition
from catchment.model.position import LastEvent, LogOffset, Position, Prepared, Resets, Server, Xid
from catchment.model.shard import Copy, ShardState
from catchment.model.table import TableId
from catchment.serve.spark_source.stream_cut import ShardBatch, StreamCut

VERSION = 1


class _Copying(msgspec.Struct, frozen=True):
    copied: Bound | None = None
    through: tuple[Bound | None, ...] = ()
    born_after: Bound | None = None
    done: bool = False
    expected: int = 0


def read_before(offset: Mapping[str, Any], table: TableId) -> StreamCut:
    """The cut of an offset, which does not name the stream's table; raises what `offset.read` catches."""
    shards = offset["shards"]
    states = {shard: _state(part, table) for shard, part in shards.items()}
    return StreamCut(
        Cut(int(offset["epoch"]), int(offset["time_us"]), states),
        {shard: _batch(part) for shard, part in shards.items()},
    )


def _batch(part: Mapping[str, Any]) -> ShardBatch:
    copy = msgspec.convert(part["copy"], _Copying | None)
    return ShardBatch(
        bool(part["shown"]),
        () if copy is None else copy.through,
        tuple(map(str, part.get("dropped", ()))),
    )


def _state(part: Mapping[str, Any], table: TableId) -> ShardState:
    server_id, hostname, port, *uuid = part["server"]
    server = Server(int(server_id), hostname, int(port), *uuid)
    position = Position(
        at=LogOffset(part["file"], int(part["offset"])),
        born=int(part["born"]),
        server=server,
        gtids=server.gtids(part["gtid"]),
        resets=Resets(*map(int, part["resets"])) if "resets" in part else None,
        prepared=tuple(_prepared(one) for one in part.get("prepared", ())),
        event=LastEvent(*map(int, part["event"])) if "event" in part else None,
    )
    copy = msgspec.convert(part["copy"], _Copying | None)
    copies = (
        ()
        if copy is None
        else (Copy(table, copy.copied, copy.born_after, copy.done, rows_expected=copy.expected),)
    )
    definition = msgspec.convert(part.get("definition"), Definition | None)
    return ShardState(
        position, _log_offset(part["sealed"]), copies, () if definition is None else (definition,)
    )


def _prepared(part: Sequence[Any]) -> Prepared:
    code, gtrid, bqual, start, end, seconds, committed = part
    return Prepared(
        Xid(int(code), bytes.fromhex(gtrid), bytes.fromhex(bqual)),
        _log_offset(start),
        _log_offset(end),
        int(seconds),
        None if committed is None else _log_offset(committed),
    )


def _log_offset(text: str) -> LogOffset:
    file, _, offset = text.rpartition(":")
    return LogOffset(file, int(offset))
