"""`spark.read.format("catchment")`: the table as it was at one cut of all shards, taken when the query is
planned.
"""

from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from catchment.feed.planner import Limits, Planner
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut
from catchment.model.epoch import TableShape
from catchment.model.errors import SourceError
from catchment.model.shard import Copy
from catchment.model.table import ShardTable
from catchment.serve.spark_source.children import must_have_been_no_child
from catchment.serve.spark_source.cuts import cut_now
from catchment.serve.spark_source.options import SourceOptions
from catchment.serve.spark_source.read import ChunkGroup, read_work
from catchment.serve.spark_source.stream_cut import first_cut
from catchment.source.first_cut import originate

# A partition holds about this many chunks, so that a failed task repeats little.
_GROUPS_PER_SHARD = 2
FRUITLESS_MAX = 10  # a locked table is waited for 5 s each time


class BatchReader(DataSourceReader):  # type: ignore[misc]
    """Plans on the driver, reads on executors; holds nothing but what it was told."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Take the cut and deal the whole table out in groups of chunks. Raises ConfigError, Unsupported for a
        child of a foreign key that changes rows, and SourceError."""
        options = self._options
        feed, endpoints = options.load()
        origin = originate(feed.name, endpoints, lambda table: table == options.table, 0, reserved=())
        must_have_been_no_child(endpoints, origin.cut, options.table)
        # What is proven visible may lie behind what is visible: the cut is taken from there on.
        start, shape = first_cut(origin.cut, copy=True), origin.shapes[0]
        cut = cut_now(endpoints, feed, options.table, start).cut
        copying = feed.copying
        limits = Limits(copying.chunk_time, copying.chunk_rows_max, _GROUPS_PER_SHARD, options.log_bytes)
        groups = all_groups(Planner(endpoints, limits), cut, shape)
        return [
            InputPartition(
                ChunkGroup(
                    options=options,
                    shape=shape,
                    shard=group[0].shard,
                    state=cut.shards[group[0].shard],
                    chunks=group,
                    epoch=cut.epoch,
                    time_us=cut.time_us,
                    log_bytes=options.log_bytes,
                )
            )
            for group in groups
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a group of chunks."""
        yield from read_work(partition.value, self._schema)


def all_groups(planner: Planner, cut: Cut, shape: TableShape) -> list[tuple[Chunk, ...]]:
    """Groups of chunks of the whole table, keys without limits: a row may have stood above the largest key
    of now. Raises SourceError for a table that stays locked or slow.
    """
    left = {
        shard: replace(state, copies=(Copy(shape.table, rows_expected=state.copies[0].rows_expected),))
        for shard, state in cut.shards.items()
        if state.copies
    }
    groups: list[tuple[Chunk, ...]] = []
    fruitless = 0
    while left:
        found = planner.groups(replace(cut, shards=left), [shape], cut.tick)
        planner.raise_refused()
        fruitless = 0 if found else fruitless + 1
        if fruitless == FRUITLESS_MAX:
            shard, table = of = ShardTable(next(iter(left)), shape.table)
            reason = planner.unplanned.get(of, "the server gives no key to go on from")
            raise SourceError(
                f"shard {shard}, {table}: no chunk could be planned in {fruitless} tries ({reason}); end what locks "
                "the table, then read again"
            )
        groups += found
        for group in found:
            state = left[group[0].shard]
            copies = tuple(copy.advanced(group) for copy in state.copies)
            left[group[0].shard] = replace(state, copies=copies)
        left = {shard: state for shard, state in left.items() if not state.copied}
    return groups
