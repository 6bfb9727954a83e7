"""Small but complete records for tests of the store and what reads it."""

from msgspec.structs import replace

from catchment.model.chunk import Chunk, Progress
from catchment.model.epoch import (
    Commit,
    DataFile,
    LakeColumn,
    Manifest,
    Part,
    Plan,
    TableDelta,
    TableShape,
    Tick,
    epoch_number,
)
from catchment.model.position import Gtid, GtidList, LastEvent, LogOffset, Position, Server
from catchment.model.table import Column, ColumnType, Kind, TableId

ORDERS = TableId("shop", "orders")


def offset(turn: int) -> LogOffset:
    return LogOffset("binlog.000001", 1000 * turn)


def plan(turn: int) -> Plan:
    tick = Tick(epoch_number(turn), 1_700_000_000_000_000 + turn, 120, {"-80": offset(turn)})
    chunk = Chunk("-80", ORDERS, (turn,), (turn + 1, "b"))
    return Plan(tick.number, epoch_number(turn - 1), tick, {"-80": offset(turn)}, (chunk,))


def manifest(turn: int) -> Manifest:
    gtid = Gtid(0, 1, turn)
    event = LastEvent(31, 4711 + turn)
    cut = Position(offset(turn), 1_700_000_000, Server(1, "db1", 3306), GtidList((gtid,)), event=event)
    shape = TableShape(ORDERS, (LakeColumn(Column("id", ColumnType(Kind.BIGINT)), "id"),), ("id",))
    file = DataFile(f"part-{turn}.parquet", 1234, 10, Part.CHANGES, "{}")
    return Manifest(
        feed="shop",
        epoch=epoch_number(turn),
        previous=epoch_number(turn - 1),
        time_us=1_700_000_000_000_000 + turn * 1_000_000,
        window_us=120,
        cut={"-80": cut},
        sealed={"-80": offset(turn)},
        progress=(Progress("-80", ORDERS, (turn,), (100,), rows=10 * turn, rows_expected=100),),
        shapes=(shape,),
        deltas=(TableDelta(shape, (file,), upserts=7, deletes=2, copied=10),),
        changes=9,
        log_bytes=4096,
        chunk_bytes=512,
    )


def large(turn: int) -> Manifest:
    """An epoch of so many tables that most records of it say what has changed."""
    base = manifest(turn)
    tables = [TableId("shop", f"t{number}") for number in range(40)]
    return replace(
        base,
        shapes=tuple(replace(base.shapes[0], table=table) for table in tables),
        progress=tuple(Progress("-80", table, done=True) for table in tables),
    )


def commit(turn: int) -> Commit:
    return Commit(epoch_number(turn), manifest(turn).digest(), 1_700_000_000_000_000, {"shop.orders": turn})
