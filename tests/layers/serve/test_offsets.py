"""Offsets of a stream: the cut comes back from its JSON, also from that of version 1."""

import json
from typing import Any

import msgspec
import pytest

from catchment.model.cut import Cut
from catchment.model.definition import DefinedColumn, Definition
from catchment.model.errors import ConfigError
from catchment.model.gtidset import GtidSet
from catchment.model.position import (
    Gtid,
    GtidList,
    LastEvent,
    LogOffset,
    Position,
    Prepared,
    Resets,
    Server,
    Xid,
)
from catchment.model.shard import Copy, ShardState
from catchment.model.table import TableId
from catchment.serve.spark_source.offset import Offset, read, written
from catchment.serve.spark_source.stream_cut import ShardBatch, StreamCut
from tests.layers.serve.direct import position

TABLE = TableId("shop", "orders")
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

# As the docstring of version 1 had it.
EXAMPLE = """{"version": 1, "epoch": 7638912345600000001, "time_us": 1790000000000000, "shards": {"-80": {
    "file": "binlog.000002", "offset": 4711, "gtid": "0-101-93", "born": 1790000000, "event": [31, 3735928559],
    "resets": [0, 1789000000, 1790000007], "server": [101, "db1", 3306], "sealed": "binlog.000002:4400",
    "prepared": [], "shown": true, "copy": {"copied": [500], "through": [[250], [500]], "born_after": [2000],
    "done": false, "expected": 2000}, "dropped": ["note"]}}}"""
EXAMPLE_CUT = StreamCut(
    Cut(
        7638912345600000001,
        1790000000000000,
        {
            "-80": ShardState(
                Position(
                    LogOffset("binlog.000002", 4711),
                    1790000000,
                    Server(101, "db1", 3306),
                    GtidList((Gtid(0, 101, 93),)),
                    Resets(0, 1789000000, 1790000007),
                    (),
                    LastEvent(31, 3735928559),
                ),
                LogOffset("binlog.000002", 4400),
                (Copy(TABLE, (500,), (2000,), rows_expected=2000),),
            )
        },
    ),
    {"-80": ShardBatch(True, ((250,), (500,)), ("note",))},
)

# As a stream of a table of 40 rows wrote it, in the midst of its copy.
RAN = """{"version": 1, "epoch": 7711110663203979276, "time_us": 1795382859615963, "shards": {"-80": {"file":
    "binlog.000001", "offset": 3003852, "gtid": "0-9-14", "born": 1795382858, "event": [31, 1630524355], "resets":
    [0, 1795382858, 1795382859], "server": [9, "vm", 26120], "sealed": "binlog.000001:782", "prepared": [], "shown":
    true, "copy": {"copied": [30], "through": [[30]], "born_after": [40], "done": false, "expected": 40}}}}"""
RAN_CUT = StreamCut(
    Cut(
        7711110663203979276,
        1795382859615963,
        {
            "-80": ShardState(
                Position(
                    LogOffset("binlog.000001", 3003852),
                    1795382858,
                    Server(9, "vm", 26120),
                    GtidList((Gtid(0, 9, 14),)),
                    Resets(0, 1795382858, 1795382859),
                    event=LastEvent(31, 1630524355),
                ),
                LogOffset("binlog.000001", 782),
                (Copy(TABLE, (30,), (40,), rows_expected=40),),
            )
        },
    ),
    {"-80": ShardBatch(True, ((30,),))},
)

# As MySQL's GTIDs, an XA transaction and a definition were written; the second shard does not have the table.
MYSQL = """{"version": 1, "epoch": 5, "time_us": 6, "shards": {
    "-80": {"file": "b.000002", "offset": 30, "gtid": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", "born": 9, "server":
        [2, "db2", 3307, "3e11fa47-71ca-11e1-9e33-c80aa9429562"], "sealed": "b.000002:4", "prepared": [[1, "ff00",
        "62", "b.000001:10", "b.000001:20", 7, "b.000002:4"]], "shown": false, "copy": {"copied": ["x", 2],
        "through": [["a", 1], ["x", 2], null], "born_after": null, "done": true, "expected": 12}, "definition":
        {"table": {"schema": "shop", "name": "orders"}, "columns": [["id", "bigint", "", true],
        ["v", "varchar(9)", "utf8mb4", false]], "key": ["id"], "charset": "utf8mb4"}},
    "80-": {"file": "b.000002", "offset": 30, "gtid": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", "born": 9, "server":
        [2, "db2", 3307, "3e11fa47-71ca-11e1-9e33-c80aa9429562"], "sealed": "b.000002:30", "prepared": [[1, "ff00",
        "62", "b.000001:10", "b.000001:20", 7, "b.000002:4"]], "shown": true, "copy": null, "dropped": ["note"]}}}"""
_XA = Prepared(
    Xid(1, b"\xff\x00", b"b"),
    LogOffset("b.000001", 10),
    LogOffset("b.000001", 20),
    7,
    LogOffset("b.000002", 4),
)
_HERE = Position(
    LogOffset("b.000002", 30), 9, Server(2, "db2", 3307, UUID), GtidSet.parse(f"{UUID}:1-5"), None, (_XA,)
)
_COLUMNS = (DefinedColumn("id", "bigint"), DefinedColumn("v", "varchar(9)", "utf8mb4", nullable=False))
MYSQL_CUT = StreamCut(
    Cut(
        5,
        6,
        {
            "-80": ShardState(
                _HERE,
                LogOffset("b.000002", 4),
                (Copy(TABLE, ("x", 2), None, done=True, rows_expected=12),),
                (Definition(TABLE, _COLUMNS, ("id",), "utf8mb4"),),
            ),
            "80-": ShardState(_HERE, _HERE.at),
        },
    ),
    {"-80": ShardBatch(False, (("a", 1), ("x", 2), None)), "80-": ShardBatch(True, (), ("note",))},
)

CUTS = {"example": (EXAMPLE, EXAMPLE_CUT), "run": (RAN, RAN_CUT), "MySQL": (MYSQL, MYSQL_CUT)}


def kept(offset: Offset) -> Any:
    """The offset as a checkpoint gives it back."""
    return json.loads(json.dumps(offset))


@pytest.mark.parametrize("name", CUTS)
def test_offsets_of_version_1_are_read(name: str) -> None:
    text, cut = CUTS[name]
    assert read(json.loads(text), TABLE) == cut


@pytest.mark.parametrize("name", CUTS)
def test_an_offset_comes_back(name: str) -> None:
    _, cut = CUTS[name]
    offset = written(cut)
    assert offset == kept(offset), "it is what JSON holds"
    assert read(offset, TABLE) == cut
    assert msgspec.convert(offset["cut"], Cut) == cut.cut
    assert position(offset) == cut.cut.positions["-80"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("start", ["earliest", "latest", {"-80": "0-1-1"}])
def test_a_stream_that_has_not_begun_has_no_cut(version: int, start: object) -> None:
    assert read({"version": version, "start": start}, TABLE) is None


def test_the_checkpoint_of_another_table_is_refused() -> None:
    """Its bounds are of other keys. Version 1 did not name the table."""
    with pytest.raises(ConfigError, match=r"is one of table shop\.orders, option table names shop\.items"):
        read(written(RAN_CUT), TableId("shop", "items"))


def _without(offset: Offset, *path: str) -> Offset:
    found = kept(offset)
    part = found
    for name in path[:-1]:
        part = part[name]
    del part[path[-1]]
    return dict(found)


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        ({}, "version"),
        (_without(written(RAN_CUT), "cut"), "cut"),
        (_without(written(RAN_CUT), "batch", "-80"), "a cut of the shards -80 and a batch of"),
        (_without(written(RAN_CUT), "cut", "shards", "-80", "position", "at"), "at"),
        (_without(written(RAN_CUT), "cut", "shards", "-80", "sealed"), "no state of a stream"),
        (_without(json.loads(RAN), "shards", "-80", "file"), "file"),
    ],
)
def test_what_is_no_offset_is_refused(offset: Offset, said: str) -> None:
    with pytest.raises(ConfigError, match=f"not an offset of a Catchment stream: .*{said}"):
        read(offset, TABLE)


def test_the_chunks_of_a_batch() -> None:
    state = MYSQL_CUT.cut.shards["-80"]
    begun = msgspec.structs.replace(state, copies=(Copy(TABLE, rows_expected=12),))
    since = msgspec.structs.replace(
        MYSQL_CUT, cut=msgspec.structs.replace(MYSQL_CUT.cut, shards={**MYSQL_CUT.cut.shards, "-80": begun})
    )
    assert [(chunk.lo, chunk.hi, chunk.last) for chunk in MYSQL_CUT.chunks(since, "-80")] == [
        (None, ("a", 1), False),
        (("a", 1), ("x", 2), False),
        (("x", 2), None, True),
    ]
    assert MYSQL_CUT.chunks(since, "80-") == []
