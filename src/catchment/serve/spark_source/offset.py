"""Offsets of a stream: the cut as JSON, small and versioned, resumable from any one of them.

    {"version": 1, "epoch": 7638912345600000001, "time_us": 1790000000000000, "shards": {"-80": {
        "file": "binlog.000002", "offset": 4711, "gtid": "0-101-93", "born": 1790000000, "event": [31, 3735928559],
        "resets": [0, 1789000000, 1790000007], "server": [101, "db1", 3306], "sealed": "binlog.000002:4400",
        "prepared": [], "shown": true, "copy": {"copied": [500], "through": [[250], [500]], "born_after": [2000],
        "done": false, "expected": 2000}, "dropped": ["note"]}}}

A stream that has not begun yet stands at {"version": 1, "start": "earliest"}, or "latest". It may also stand at the
GTIDs of every shard, {"version": 1, "start": {"-80": "0-101-93"}}. Whoever asks gets the same answer.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from catchment.model.chunk import Bound, Chunk, Progress
from catchment.model.definition import Definition
from catchment.model.epoch import Manifest, TableShape
from catchment.model.errors import ConfigError
from catchment.model.position import LastEvent, LogOffset, Position, Prepared, Resets, Server, Xid
from catchment.model.table import TableId
from catchment.model.version import __version__
from catchment.serve.spark_source.options import EARLIEST, LATEST

VERSION = 1
Offset = dict[str, Any]


class Copying(msgspec.Struct, frozen=True):
    """How far a shard's rows are copied as of a cut.

    `through`: upper bounds of the chunks that the batch ending here copies, in order (None: no upper bound). Whenever
    the batch is read, it is read in the same chunks.
    """

    copied: Bound | None = None
    through: tuple[Bound | None, ...] = ()
    born_after: Bound | None = None
    done: bool = False
    expected: int = 0


class ShardCut(msgspec.Struct, frozen=True):
    """A shard's part of a cut: a verified position, what is sealed there, and the copy (None: no such table).

    `shown`: a tick showed the position; else it is the end of some group before. `definition`: of the table there,
    where the log does not describe itself. `dropped`: names of columns that the table had (columns.py).
    """

    position: Position
    sealed: LogOffset
    shown: bool
    copy: Copying | None
    definition: Definition | None = None
    dropped: tuple[str, ...] = ()

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definition, if there is one, as tasks take it."""
        return () if self.definition is None else (self.definition,)


class StreamCut(msgspec.Struct, frozen=True):
    """Where a stream stands: everything up to this cut has been delivered. `epoch` and `time_us` as of a
    tick.
    """

    epoch: int
    time_us: int
    shards: dict[str, ShardCut]

    @property
    def copying(self) -> bool:
        """Whether rows are left to copy."""
        return any(shard.copy is not None and not shard.copy.done for shard in self.shards.values())

    def manifest(self, shape: TableShape) -> Manifest:
        """The same as the record that the planner takes."""
        return Manifest(
            feed="",
            epoch=self.epoch,
            previous=0,
            time_us=self.time_us,
            window_us=0,
            cut={shard: cut.position for shard, cut in self.shards.items()},
            sealed={shard: cut.sealed for shard, cut in self.shards.items()},
            progress=tuple(
                progress(shard, shape.table, cut.copy) for shard, cut in self.shards.items() if cut.copy
            ),
            shapes=(shape,),
            deltas=(),
            definitions={shard: cut.definitions for shard, cut in self.shards.items() if cut.definitions},
        )


def progress(shard: str, table: TableId, copy: Copying) -> Progress:
    """The copy's state as the planner and the filter of the log take it."""
    return Progress(
        shard,
        table,
        copied=copy.copied,
        born_after=copy.born_after,
        done=copy.done,
        rows_expected=copy.expected,
    )


def first_cut(manifest: Manifest, *, copy: bool) -> StreamCut:
    """The cut at which a stream begins: nothing copied yet, or, without `copy`, nothing to copy."""
    by_shard = {p.shard: p for p in manifest.progress}
    shards = {}
    for shard, position in manifest.cut.items():
        known = by_shard.get(shard)
        copying = None
        if known is not None:
            done = known.done or not copy
            born_after = None if done else known.born_after
            copying = Copying(born_after=born_after, done=done, expected=known.rows_expected)
        definition = next(iter(manifest.definitions.get(shard, ())), None)
        shards[shard] = ShardCut(position, manifest.sealed[shard], True, copying, definition)
    return StreamCut(manifest.epoch, manifest.time_us, shards)


def advanced(copy: Copying, chunks: Sequence[Chunk]) -> Copying:
    """The copy once these chunks, which follow one another, are delivered; without any, none are of this
    batch.
    """
    if not chunks:
        return msgspec.structs.replace(copy, through=())
    last = chunks[-1]
    return msgspec.structs.replace(
        copy,
        copied=last.hi if last.hi is not None else copy.copied,
        through=tuple(chunk.hi for chunk in chunks),
        done=last.last,
    )


def chunks_between(shard: str, table: TableId, start: Copying, end: Copying) -> list[Chunk]:
    """The chunks of the batch that ends at `end`."""
    chunks = []
    lo = start.copied
    for number, hi in enumerate(end.through, 1):
        chunks.append(Chunk(shard, table, lo, hi, end.done and number == len(end.through)))
        lo = hi
    return chunks


def written(cut: StreamCut) -> Offset:
    """The cut as what JSON can hold."""
    return {
        "version": VERSION,
        "epoch": cut.epoch,
        "time_us": cut.time_us,
        "shards": {shard: _shard_written(part) for shard, part in cut.shards.items()},
    }


def _shard_written(part: ShardCut) -> Offset:
    at, server, resets = part.position.at, part.position.server, part.position.resets
    event = part.position.event
    return {
        "file": at.file,
        "offset": at.offset,
        "gtid": str(part.position.gtids),
        "born": part.position.born,
        **({"event": [event.size, event.crc]} if event is not None else {}),
        **({"resets": [resets.count, resets.started, resets.asked]} if resets is not None else {}),
        "server": [server.server_id, server.hostname, server.port, *filter(None, [server.uuid])],
        "sealed": str(part.sealed),
        "prepared": [_prepared_written(one) for one in part.position.prepared],
        "shown": part.shown,
        "copy": None if part.copy is None else msgspec.to_builtins(part.copy),
        **({"definition": msgspec.to_builtins(part.definition)} if part.definition is not None else {}),
        **({"dropped": list(part.dropped)} if part.dropped else {}),
    }


def _prepared_written(one: Prepared) -> list[Any]:
    xid, committed = one.xid, None if one.committed is None else str(one.committed)
    return [xid.format, xid.gtrid.hex(), xid.bqual.hex(), str(one.start), str(one.end), one.time, committed]


def _prepared_read(part: Sequence[Any]) -> Prepared:
    code, gtrid, bqual, start, end, seconds, committed = part
    return Prepared(
        Xid(int(code), bytes.fromhex(gtrid), bytes.fromhex(bqual)),
        _offset_read(start),
        _offset_read(end),
        int(seconds),
        None if committed is None else _offset_read(committed),
    )


def _offset_read(text: str) -> LogOffset:
    file, _, offset = text.rpartition(":")
    return LogOffset(file, int(offset))


def not_begun(starting: str, shards: Sequence[str]) -> Offset:
    """Where a stream stands before its first batch: earliest, latest or a cut. Raises ConfigError."""
    if starting.lower() in (EARLIEST, LATEST):
        return {"version": VERSION, "start": starting.lower()}
    try:
        offset = json.loads(starting)
    except ValueError:
        raise ConfigError(
            f"option startingOffset: {starting[:40]!r} is neither earliest nor latest nor a cut as JSON"
        ) from None
    cut = read(offset)
    if cut is not None and set(cut.shards) != set(shards):
        raise ConfigError(
            f"option startingOffset: the cut is one of the shards {', '.join(cut.shards)}, the feed has "
            f"{', '.join(shards)}"
        )
    return written(cut) if cut is not None else dict(offset)


def read(offset: Mapping[str, Any]) -> StreamCut | None:
    """The cut that an offset stands for, None when the stream has not begun; raises ConfigError."""
    try:
        if offset["version"] != VERSION:
            raise ConfigError(
                f"the offset has version {offset['version']}, this Catchment ({__version__}) reads {VERSION}: use the "
                "one that wrote the checkpoint, or a later one, see docs/upgrade.md, or start with a new checkpoint"
            )
        start = offset.get("start")
        if start in (EARLIEST, LATEST) or isinstance(start, dict):
            return None
        shards = {shard: _shard_read(part) for shard, part in offset["shards"].items()}
        return StreamCut(int(offset["epoch"]), int(offset["time_us"]), shards)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"not an offset of a Catchment stream: {error!r} ({str(offset)[:200]})") from error


def _shard_read(part: Mapping[str, Any]) -> ShardCut:
    server_id, hostname, port, *uuid = part["server"]
    server = Server(int(server_id), hostname, int(port), *uuid)
    return ShardCut(
        Position(
            at=LogOffset(part["file"], int(part["offset"])),
            born=int(part["born"]),
            server=server,
            gtids=server.gtids(part["gtid"]),
            resets=Resets(*map(int, part["resets"])) if "resets" in part else None,
            prepared=tuple(_prepared_read(one) for one in part.get("prepared", ())),
            event=LastEvent(*map(int, part["event"])) if "event" in part else None,
        ),
        _offset_read(part["sealed"]),
        bool(part["shown"]),
        None if part["copy"] is None else msgspec.convert(part["copy"], Copying),
        msgspec.convert(part.get("definition"), Definition | None),
        tuple(map(str, part.get("dropped", ()))),
    )
