"""`spark.read.format("catchment")`: the table as it was at one cut of all shards, taken when the query is
planned.
"""

from collections.abc import Iterator

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from catchment.feed.planner import Limits, Planner
from catchment.model.chunk import Chunk
from catchment.model.epoch import Manifest, Tick
from catchment.model.errors import SourceError
from catchment.serve.spark_source.cuts import cut_now
from catchment.serve.spark_source.offset import first_cut
from catchment.serve.spark_source.options import SourceOptions
from catchment.serve.spark_source.read import ChunkGroup, read_work
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
        """Take the cut and deal the whole table out in groups of chunks. Raises SourceError, ConfigError."""
        options = self._options
        feed, endpoints = options.load()
        origin = originate(feed.name, endpoints, lambda table: table == options.table, 0, reserved=())
        # What is proven visible may lie behind what is visible: the cut is taken from there on.
        cut = cut_now(endpoints, feed, options.table, first_cut(origin, copy=True)).manifest(origin.shapes[0])
        copying = feed.copying
        limits = Limits(copying.chunk_time, copying.chunk_rows_max, _GROUPS_PER_SHARD, options.log_bytes)
        groups = all_groups(Planner(endpoints, limits), cut)
        return [
            InputPartition(
                ChunkGroup(
                    options=options,
                    shape=cut.shapes[0],
                    shard=group[0].shard,
                    server=cut.cut[group[0].shard].server,
                    floor=cut.sealed[group[0].shard],
                    at=cut.cut[group[0].shard].at,
                    chunks=group,
                    epoch=cut.epoch,
                    time_us=cut.time_us,
                    log_bytes=options.log_bytes,
                    prepared=cut.cut[group[0].shard].prepared,
                    definitions=cut.definitions.get(group[0].shard, ()),
                )
            )
            for group in groups
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a group of chunks."""
        yield from read_work(partition.value, self._schema)


def all_groups(planner: Planner, cut: Manifest) -> list[tuple[Chunk, ...]]:
    """Groups of chunks of the whole table, keys without limits: a row may have stood above the largest key
    of now. Raises SourceError for a table that stays locked or slow.
    """
    tick = Tick(cut.epoch, cut.time_us, 0, {shard: position.at for shard, position in cut.cut.items()})
    progress = {p.shard: msgspec.structs.replace(p, born_after=None, done=False) for p in cut.progress}
    groups: list[tuple[Chunk, ...]] = []
    fruitless = 0
    while progress:
        waiting = msgspec.structs.replace(cut, progress=tuple(progress.values()))
        found = planner.groups(waiting, tick)
        planner.raise_refused()
        fruitless = 0 if found else fruitless + 1
        if fruitless == FRUITLESS_MAX:
            shard, table = next(iter(progress)), cut.shapes[0].table
            reason = planner.unplanned.get((shard, table), "the server gives no key to go on from")
            raise SourceError(
                f"shard {shard}, {table}: no chunk could be planned in {fruitless} tries ({reason}); end what locks "
                "the table, then read again"
            )
        groups += found
        for chunk in (group[-1] for group in found):
            if chunk.last:
                del progress[chunk.shard]
            else:
                progress[chunk.shard] = msgspec.structs.replace(progress[chunk.shard], copied=chunk.hi)
    return groups
