"""The stream's reader driven as Spark drives it, without Spark: one reader plans, fresh ones read."""

import json
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadLimit

from catchment.model.position import Position
from catchment.serve.spark_source import CatchmentDataSource
from catchment.serve.spark_source.offset import Offset
from catchment.serve.spark_source.stream import StreamReader
from tests.world.canonical import Key, Row, canonical_row, key_of

Rows = list[dict[str, Any]]
GONE = ("delete", "update_preimage")


class Driver:
    """Takes batches from `offset` on and keeps their rows; `partitions` of the last batch can be read
    again.
    """

    def __init__(self, feed: Path, table: str, offset: Offset | None = None, **options: object) -> None:
        given = {"feed": str(feed), "table": table, **{name: str(value) for name, value in options.items()}}
        self.source = CatchmentDataSource(given)
        self.schema = self.source.schema()
        self.planner = self.new_reader()
        self.offset = self.new_reader().initialOffset() if offset is None else offset
        self.offsets = [self.offset]
        self.batches: list[Rows] = []

    def new_reader(self) -> StreamReader:
        """A reader as another process makes it."""
        reader: StreamReader = pickle.loads(pickle.dumps(self.source)).streamReader(self.schema)
        return reader

    def limit(self) -> ReadLimit:
        return self.planner.getDefaultReadLimit()

    def step(self) -> bool:
        """Deliver the next batch, False when there is nothing new."""
        end = json.loads(json.dumps(self.planner.latestOffset(self.offset, self.limit())))
        if end == self.offset:
            return False
        self.batches.append(self.read(self.offset, end, self.planner))
        self.offset = end
        self.offsets.append(end)
        return True

    def finish(self) -> None:
        """Deliver what there is now, as AvailableNow does."""
        self.planner.prepareForTriggerAvailableNow()
        while self.step():
            pass

    def read(self, start: Offset, end: Offset, planner: StreamReader | None = None) -> Rows:
        """The rows between two offsets, planned by `planner` or as after a restart, read by a fresh
        reader.
        """
        planner = planner or self.new_reader()
        rows: Rows = []
        for partition in planner.partitions(start, end):
            for batch in self.new_reader().read(pickle.loads(pickle.dumps(partition))):
                assert isinstance(batch, pa.RecordBatch)
                rows += batch.to_pylist()
        return rows

    @property
    def rows(self) -> Rows:
        """All rows delivered."""
        return [row for batch in self.batches for row in batch]


def position(offset: Offset, shard: str = "-80") -> Position:
    """Where an offset stands in a shard's log."""
    return msgspec.convert(offset["cut"]["shards"][shard]["position"], Position)


def in_order(rows: Rows) -> Rows:
    """Rows by epoch, shard and order, as a consumer that shuffles has to sort them."""
    return sorted(rows, key=lambda row: (row["_commit_version"], row["_shard"], row["_order"]))


def state(rows: Rows, key: tuple[str, ...]) -> dict[tuple[str, Key], Row]:
    """What the changes lead to, by shard and key."""
    found: dict[tuple[str, Key], Row] = {}
    for row in in_order(rows):
        identity = row["_shard"], key_of(row, key)
        if row["_change_type"] in GONE:
            found.pop(identity, None)
        else:
            found[identity] = canonical_row(row)
    return found


def as_set(rows: Rows) -> set[tuple[tuple[str, Any], ...]]:
    """Rows without their order."""
    found = {tuple(sorted(row.items())) for row in rows}
    assert len(found) == len(rows)
    return found
