"""The epoch that mends rows of the lake: it ends where the one before does, and brings what verify found. Pure.

It holds no log, so no key comes to a table by two ways. Both epochs have one cut, so the source is the same at both.
What the epoch brings is the difference between the source and the lake there, so the lake is the source's behind it.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from catchment.epoch.gather import Gathered
from catchment.epoch.work import Output
from catchment.model.epoch import DataFile, Manifest, TableDelta
from catchment.model.order import Order
from catchment.model.table import TableId
from catchment.model.table_state import TableState, state_of


def why_not(standing: Manifest, order: Order) -> str:
    """Why chunks are not mended; empty where they are. A table is mended where it follows the log: until then its
    chunks are not all delivered, or readers see an earlier epoch."""
    if order.table is None:
        return "it names no table"
    if bool(order.chunks) != bool(order.shard):
        return "chunks are of one shard, and rows of no shard are of none"
    if order.shard and order.shard not in standing.cut.shards:
        return f"the feed has no shard {order.shard}"
    if any(chunk.shard != order.shard or chunk.table != order.table for chunk in order.chunks):
        return "its chunks are of another table or shard"
    state = state_of(standing, order.table, order.shard)
    if state is not TableState.FOLLOWING:
        return f"it is {state.value}: only a table that is copied and follows the log is mended"
    return ""


def gathered(standing: Manifest, outputs: Sequence[Output]) -> Gathered:
    """What tasks wrote, as a sink completes it."""
    return Gathered(
        segments={},
        cut=standing.cut,
        shapes=standing.shapes,
        outputs=tuple(outputs),
        copied_rows={},
        chunk_bytes=0,
        log_bytes=0,
        refused=(),
        stale=standing.stale,
    )


def mended(
    standing: Manifest, epoch: int, outputs: Sequence[Output], files: Mapping[TableId, Sequence[DataFile]]
) -> Manifest:
    """The manifest of the epoch behind `standing` that mends."""
    deltas = tuple(
        TableDelta(
            shape=shape,
            files=tuple(files[shape.table]),
            upserts=sum(output.upserts for output in outputs if output.table == shape.table),
            deletes=sum(output.deletes for output in outputs if output.table == shape.table),
        )
        for shape in standing.shapes
        if shape.table in files
    )
    after = standing.without_rows(replace(standing.cut, epoch=epoch), standing.window_us)
    return replace(after, deltas=deltas, changes=sum(delta.upserts + delta.deletes for delta in deltas))
