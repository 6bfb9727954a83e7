"""A feed without a source: commits epochs with rows of one or more tables."""

from pathlib import Path

from msgspec.structs import replace

from catchment.model.epoch import Commit, Part, TableDelta, TableShape
from catchment.model.epoch_number import epoch_number
from catchment.model.stale import Stale
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import PART, delta_schema, tail_of
from catchment.sink.delta.log.commit import create_table
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.tail.apply import DeltaSink
from tests.layers.sink.model import FEED, Row, delta, manifest, write
from tests.world.records import name_of

LATENCY_US = 150_000  # from a cut to its commit


class Feeder:
    """Commits epochs with rows of one or more tables."""

    def __init__(self, root: Path, feed: str = FEED) -> None:
        self.root = root
        self.feed = feed
        self.sink = DeltaSink(root, feed)
        self.epoch = self._committed = 0
        self.time_us = 0

    def commit(
        self, shapes: tuple[TableShape, ...], *deltas: TableDelta, stale: tuple[Stale, ...] = ()
    ) -> None:
        for added in deltas:  # a feed begins with all its tables; here they come one by one
            log = DeltaLog(tail_of(self.root, added.shape))
            create_table(log, delta_schema(added.shape), [PART], self.feed)
        record = replace(manifest(self.epoch, shapes, *deltas, feed=self.feed), stale=stale)
        record = replace(record, previous=self._committed or record.previous)
        self._committed = self.epoch
        record = replace(record, cut=replace(record.cut, time_us=self.time_us or record.time_us))
        versions = self.sink.apply_epoch(record, 1)
        commit = Commit(self.epoch, name_of(record), (self.time_us or 1) + LATENCY_US, versions)
        EpochsTable(self.root, self.feed).append(record, commit, 1)

    def put_at(self, seconds: float, tick: int, table: TableShape, *rows: Row) -> int:
        """An epoch whose cut was taken so many seconds after 1970, with its number."""
        self.epoch = epoch_number(int(seconds), tick) - 1
        self.time_us = round(seconds * 1e6)
        self.put(table, *rows)
        return self.epoch

    def put(self, table: TableShape, *rows: Row, part: Part = Part.CHANGES, deleted: bool = False) -> None:
        self.epoch += 1
        tagged = [("s/0", self.epoch, deleted, row) for row in rows]
        self.commit((table,), delta(table, write(self.root, table, part, f"{self.epoch}-a-0", tagged)))
