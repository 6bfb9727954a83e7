"""Rows that are SELECTed in front of the cut: what a task is given for it, and what it gives back."""

from dataclasses import dataclass

from catchment.epoch.evidence import Evidence
from catchment.epoch.work import Stage, StagedTable
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.epoch import TableShape
from catchment.model.position import LogOffset, Server
from catchment.model.source import Endpoint
from catchment.model.strategy import Strategy
from catchment.model.table import TableId


@dataclass(frozen=True, slots=True)
class StageTask:
    """SELECT a group of chunks of one shard by a strategy, and keep the rows in a stage. `name`: that of the rows
    begins so. `feed`, `marks`: whose marks are written, and to which table. `sealed`: what is proven visible up to the
    last cut, which is `at`."""

    endpoint: Endpoint
    server: Server
    strategy: Strategy
    chunks: tuple[Chunk, ...]
    shapes: tuple[TableShape, ...]
    stage: Stage
    name: str
    feed: str
    marks: TableId
    sealed: LogOffset | None
    at: LogOffset
    at_once: bool = False
    mask_key: MaskKey | None = None


@dataclass(frozen=True, slots=True)
class StageReceipt:
    """What a group staged, why it refused chunks, and what shows at which cuts the rows count."""

    shard: str
    tables: tuple[StagedTable, ...]
    refused: tuple[tuple[Chunk, str], ...]
    evidence: Evidence
