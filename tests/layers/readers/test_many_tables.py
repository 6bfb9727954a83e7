"""A segment of a log costs what stands in it, however many tables a feed has. Steps of the interpreter are counted."""

from typing import cast

from catchment import world
from catchment.epoch.work import SegmentReceipt, SegmentTask, Target
from catchment.model.epoch import LakeColumn, Shapes, TableShape
from catchment.model.position import GtidList, LogOffset, Position
from catchment.model.position import Server as ServerId
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import Column, ColumnType, Kind
from catchment.readers.changes import read_segment
from tests.layers.epoch.test_growth import steps
from tests.world.sim.calm import Beside, Calm, row_of, server_of, tables_of
from tests.world.sim.scheduler import SimWorld
from tests.world.sim.server import Server
from tests.world.sim.session import Network
from tests.world.sim.sink import SimWriter, Storage

COLUMNS, FEW, MANY = 6, 8, 128
TIMES_MAX = 1.05


def _end(server: Server) -> LogOffset:
    number, offset = server.end()
    return LogOffset(f"binlog.{number:06}", offset)


def _steps(tables: int) -> int:
    """Steps of a segment in which one row of one table changes."""
    server = server_of(1, tables, COLUMNS)
    types = [Column(name, ColumnType(Kind.BIGINT)) for name in server.tables["t0000"].columns]
    columns = tuple(LakeColumn(one, one.name) for one in types)
    shapes = Shapes(TableShape(table, columns, ("id",)) for table in tables_of(tables))
    position = Position(
        _end(server), server.files[-1].born, ServerId(1, server.name, 1), GtidList.parse("0-1-2")
    )
    server.commit((("t0000", 1, row_of(1, COLUMNS)),), hold=0.0)
    calm = cast(SimWorld, Calm())
    task = SegmentTask(
        Endpoint(server.name, "sim", 1, "catchment", "x"),
        ShardState(position, position.at, keys=()),
        _end(server),
        shapes,
        Target(SimWriter(Storage(calm)), (server.name,), 1, "1"),
    )
    found: list[SegmentReceipt] = []
    with world.instead(Beside(Network(calm, {1: server}, 0.0))):
        read_segment(task)  # what is found once of these shapes is found
        took = steps(lambda: found.append(read_segment(task)))
    assert [output.table for output in found[0].outputs] == tables_of(1)
    return took


def test_a_segment_with_one_change() -> None:
    few, many = (_steps(tables) for tables in (FEW, MANY))
    assert many <= TIMES_MAX * few, (few, many)
