"""A dict that obeys the rules of a lake table, and small tables to try them on."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from catchment.model.cut import Cut
from catchment.model.epoch import DataFile, LakeColumn, Manifest, Part, TableDelta, TableShape
from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.sink.delta.files import write_file
from catchment.sink.delta.layout import arrow_schema, key_columns, tail_of

FEED = "shop"
Row = tuple[Any, ...]
Key = tuple[Any, ...]  # (shard, key values)


def shape(name: str, columns: dict[str, ColumnType], key: tuple[str, ...]) -> TableShape:
    lake_columns = tuple(LakeColumn(Column(n, t), n) for n, t in columns.items())
    return TableShape(TableId("shop", name), lake_columns, key)


INT = ColumnType(Kind.BIGINT)
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
ORDERS = shape("orders", {"id": INT, "sig": TEXT}, ("id",))


def write(
    root: Path, table: TableShape, part: Part, name: str, rows: list[tuple[str, int, bool, Row]]
) -> DataFile:
    """One file of (shard, epoch, deleted, values of the physical columns)."""
    schema = arrow_schema(table)
    values = [(shard, epoch, deleted, *row) for shard, epoch, deleted, row in rows]
    columns = [pa.array(list(c), f.type) for c, f in zip(zip(*values, strict=True), schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return write_file(tail_of(root, table), part, name, [batch], schema, key_columns(table))


def delta(table: TableShape, *files: DataFile) -> TableDelta:
    return TableDelta(table, files)


def manifest(epoch: int, shapes: tuple[TableShape, ...], *deltas: TableDelta, feed: str = FEED) -> Manifest:
    return Manifest(feed, epoch - 1, 5, Cut(epoch, epoch * 1000, {}), shapes, deltas)
