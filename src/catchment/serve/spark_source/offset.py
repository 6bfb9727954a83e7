"""Offsets of a stream: its cut as JSON, small and versioned, resumable from any one of them.

    {"version": 2, "cut": {"epoch": 7638912345600000001, "time_us": 1790000000000000, "shards": {"-80": {
        "position": {"at": {"file": "binlog.000002", "offset": 4711}, "born": 1790000000,
            "server": {"server_id": 101, "hostname": "db1", "port": 3306, "uuid": ""},
            "gtids": {"type": "mariadb", "gtids": [{"domain": 0, "server_id": 101, "sequence": 93}]},
            "resets": {"count": 0, "started": 1789000000, "asked": 1790000007}, "prepared": [],
            "event": {"size": 31, "crc": 3735928559}},
        "sealed": {"file": "binlog.000002", "offset": 4400},
        "copies": [{"table": {"schema": "shop", "name": "orders"}, "copied": [500], "born_after": [2000],
            "rows_expected": 2000}]}}},
     "batch": {"-80": {"shown": true, "through": [[250], [500]], "dropped": ["note"]}}}

`cut` is what a manifest holds, too (model/cut.py). A stream that has not begun yet stands at {"version": 2, "start":
"earliest"}, or "latest". It may also stand at the GTIDs of every shard, {"version": 2, "start": {"-80": "0-101-93"}}.
Whoever asks gets the same answer. Offsets of version 1 are read, too (offset_before.py).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.model.version import __version__
from catchment.serve.spark_source import offset_before
from catchment.serve.spark_source.options import EARLIEST, LATEST
from catchment.serve.spark_source.stream_cut import StreamCut

VERSION = 2
Offset = dict[str, Any]


def written(cut: StreamCut) -> Offset:
    """The cut as what JSON can hold."""
    return {"version": VERSION, **json.loads(msgspec.json.encode(cut))}


def not_begun(starting: str, shards: Sequence[str], table: TableId) -> Offset:
    """Where a stream of a table stands before its first batch: earliest, latest or a cut. Raises ConfigError."""
    if starting.lower() in (EARLIEST, LATEST):
        return {"version": VERSION, "start": starting.lower()}
    try:
        offset = json.loads(starting)
    except ValueError:
        raise ConfigError(
            f"option startingOffset: {starting[:40]!r} is neither earliest nor latest nor a cut as JSON"
        ) from None
    stream = read(offset, table)
    if stream is not None and set(stream.cut.shards) != set(shards):
        raise ConfigError(
            f"option startingOffset: the cut is one of the shards {', '.join(stream.cut.shards)}, the feed has "
            f"{', '.join(shards)}"
        )
    return written(stream) if stream is not None else dict(offset)


def read(offset: Mapping[str, Any], table: TableId) -> StreamCut | None:
    """The cut that an offset of a table's stream stands for, None when the stream has not begun; raises
    ConfigError."""
    try:
        version = offset["version"]
        if version not in (offset_before.VERSION, VERSION):
            raise ConfigError(
                f"the offset has version {version}, this Catchment ({__version__}) reads versions up to {VERSION}: use "
                "the one that wrote the checkpoint, or a later one, see docs/upgrade.md, or start with a new checkpoint"
            )
        start = offset.get("start")
        if start in (EARLIEST, LATEST) or isinstance(start, dict):
            return None
        if version == offset_before.VERSION:
            return offset_before.read_before(offset, table)
        stream = msgspec.convert(offset, StreamCut)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"not an offset of a Catchment stream: {error!r} ({str(offset)[:200]})") from error
    for copy in stream.cut.copies:
        if copy.table != table:
            raise ConfigError(
                f"the checkpoint is one of table {copy.table}, option table names {table}; correct the option, or "
                "start with a new checkpoint"
            )
    return stream
