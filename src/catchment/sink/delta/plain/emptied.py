"""Rows of a plain table that a TRUNCATE took, which no log has brought: the table's shape says which.

Catchment's own reader goes by the shape. Other readers know no shapes, so a settle kills such rows. The table's
properties say of which TRUNCATE it has done so, so that none is looked for twice.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from catchment.model.emptied import Emptied
from catchment.model.location import Location
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.layout import EPOCH, SHARD
from catchment.sink.delta.log.actions import MetaData
from catchment.sink.delta.log.delta_log import Bounds

_EMPTIED = "catchment.emptied"
_BATCH_ROWS = 1 << 17

Gone = tuple[Emptied, ...]


def not_taken(emptied: Gone, metadata: MetaData | None) -> Gone:
    """That of it of which the table's files still have rows."""
    told = "[]" if metadata is None else metadata.configuration.get(_EMPTIED, "[]")
    done = {name: one.before for one in msgspec.json.decode(told, type=Gone) for name in one.shards}
    left = (
        Emptied(tuple(name for name in one.shards if done.get(name, 0) < one.before), one.before)
        for one in emptied
    )
    return tuple(one for one in left if one.shards)


def noted(emptied: Gone, metadata: MetaData) -> MetaData:
    """The table's properties once all of it is taken."""
    if not emptied:
        return metadata
    told = {_EMPTIED: msgspec.json.encode(emptied).decode()}
    return msgspec.structs.replace(metadata, configuration=metadata.configuration | told)


def living(rows: pa.Table, gone: Gone) -> pa.Table:
    """The rows that no TRUNCATE took."""
    return rows.filter(pc.invert(_dead(rows, gone))) if gone else rows


def rows_taken(path: Location, count: int, bounds: Bounds, gone: Gone) -> BitMap:
    """Row numbers of a file of so many rows, from 0, that a TRUNCATE took. `bounds`: what the log says of the file, by
    which few files are read. Raises SinkError."""
    shards, epochs = bounds.of(SHARD), bounds.of(EPOCH)
    if shards is not None and epochs is not None:
        gone = tuple(one for one in gone if epochs[0] < one.before and _between(one, shards))
        if any(shards[0] == shards[1] and epochs[1] < one.before for one in gone):
            return BitMap(range(count))
    found = BitMap()
    if not gone:
        return found
    first = 0
    with lake_parquet(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[SHARD, EPOCH]):
            numbers = np.flatnonzero(_dead(batch, gone).to_numpy(zero_copy_only=False)) + first
            found |= BitMap(numbers.astype(np.uint32))
            first += batch.num_rows
    return found


def _between(one: Emptied, shards: Sequence[str]) -> bool:
    return any(shards[0] <= name <= shards[1] for name in one.shards)


def _dead(rows: pa.Table | pa.RecordBatch, gone: Gone) -> pa.ChunkedArray | pa.Array:
    found = pa.scalar(False)
    for one in gone:
        mine = pc.is_in(rows[SHARD], pa.array(one.shards, pa.string()))
        found = pc.or_(found, pc.and_(mine, pc.less(rows[EPOCH], one.before)))
    return found
