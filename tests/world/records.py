"""Small but complete records for tests of the store and what reads it."""

from msgspec.structs import replace

from catchment.model.chunk import Chunk
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import Commit, DataFile, LakeColumn, Manifest, Part, Plan, TableDelta, TableShape
from catchment.model.epoch_number import epoch_number
from catchment.model.position import Gtid, GtidList, LastEvent, LogOffset, Position, Server
from catchment.model.records import digest, whole
from catchment.model.shard import Copy, ShardState
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
    at = Position(offset(turn), 1_700_000_000, Server(1, "db1", 3306), GtidList((gtid,)), event=event)
    copy = Copy(ORDERS, (turn,), (100,), rows=10 * turn, rows_expected=100)
    shards = {"-80": ShardState(at, offset(turn), (copy,))}
    shape = TableShape(ORDERS, (LakeColumn(Column("id", ColumnType(Kind.BIGINT)), "id"),), ("id",))
    file = DataFile(f"part-{turn}.parquet", 1234, 10, Part.CHANGES, "{}")
    return Manifest(
        feed="shop",
        previous=epoch_number(turn - 1),
        window_us=120,
        cut=Cut(epoch_number(turn), 1_700_000_000_000_000 + turn * 1_000_000, shards),
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
    copies = tuple(Copy(table, done=True) for table in tables)
    return replace(
        base,
        shapes=tuple(replace(base.shapes[0], table=table) for table in tables),
        cut=replace(base.cut, shards={"-80": replace(base.cut.shards["-80"], copies=copies)}),
    )


def with_shards(record: Manifest, shards: dict[str, ShardState]) -> Manifest:
    return replace(record, cut=replace(record.cut, shards=shards))


def numbered(record: Manifest, epoch: int) -> Manifest:
    return replace(record, cut=replace(record.cut, epoch=epoch))


def name_of(record: Manifest) -> str:
    """The digest of a manifest's record, where that is whole."""
    return digest(whole(record))


def commit(turn: int) -> Commit:
    return Commit(epoch_number(turn), name_of(manifest(turn)), 1_700_000_000_000_000, {"shop.orders": turn})
