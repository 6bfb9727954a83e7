"""The epoch that mends rows of the lake: it ends where the one before does, and brings what verify found. Pure.

It holds no log, so no key comes to a table by two ways. Both epochs have one cut, so the source is the same at both.
What the epoch brings is the difference between the source and the lake there, so the lake is the source's behind it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from catchment.epoch.gather import Gathered
from catchment.epoch.work import Output
from catchment.model.chunk import chunk_key
from catchment.model.epoch import DataFile, Manifest, TableDelta, TableShape
from catchment.model.order import Order
from catchment.model.table import TableId
from catchment.model.table_state import TableState, state_of


def why_not(standing: Manifest, order: Order) -> str:
    """Why an order to mend is refused; empty where it is not. A table is mended where it follows the log.

    Until then its chunks are not all delivered, or readers see an earlier epoch."""
    if order.table is None or bool(order.chunks) != bool(order.shard):
        return "it names no table, or chunks without their shard"
    if order.shard and order.shard not in standing.cut.shards:
        return f"the feed has no shard {order.shard}"
    state = state_of(standing, order.table, order.shard)
    if state is not TableState.FOLLOWING:
        return f"it is {state.value}: only a table that is copied and follows the log is mended"
    return _why_not_these(standing.shape(order.table), order) if order.chunks else ""


def _why_not_these(shape: TableShape, order: Order) -> str:
    """Why chunks are not compared. Of keys that only the server can order, nobody knows which rows of the lake lie in a
    chunk. Then they must be all of the shard, or others would be taken for rows that the source lacks."""
    chunks = order.chunks
    if any(chunk.of != (order.shard, shape.table) for chunk in chunks):
        return "its chunks are of another table or shard"
    if all(chunk.keys for chunk in chunks):
        return ""
    inner = [bound for before, after in pairwise(chunks) for bound in (before.hi, after.lo)]
    follow = None not in inner and all(before.hi == after.lo for before, after in pairwise(chunks))
    whole = follow and chunks[0].lo is None and chunks[-1].hi is None
    if whole or chunk_key(shape.definition).ordered:
        return ""
    return "only the server can order its keys, so all chunks of a shard are compared, or none"


def gathered(standing: Manifest, outputs: Sequence[Output]) -> Gathered:
    """What tasks wrote, as a sink completes it."""
    return Gathered(
        segments={},
        cut=standing.cut,
        shapes=standing.known,
        shadows=standing.shadows,
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
