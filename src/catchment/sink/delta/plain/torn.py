"""Columns that a shard has dropped while others keep them: its old rows in a plain table lose their values.

Catchment's own reader gives NULL for them by the table's shape. Other readers know no shapes, so a settle writes such
rows once more. The table's properties say what has been done.
"""

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.layout import SHARD
from catchment.sink.delta.log.actions import MetaData

_PROPERTY = "catchment.torn"
_BATCH_ROWS = 1 << 17

# Physical columns, each with the shards that have dropped it.
Torn = dict[str, list[str]]


def torn_in(shape: TableShape) -> Torn:
    """The columns of a shape that some shards have dropped and others keep."""
    return {c.physical: sorted(c.missing) for c in shape.kept if c.torn}


def not_cleared(torn: Torn, metadata: MetaData) -> Torn:
    """Those whose values still stand in the table's files."""
    cleared = msgspec.json.decode(metadata.configuration.get(_PROPERTY, "{}"), type=Torn)
    left = {name: sorted(set(shards) - set(cleared.get(name, ()))) for name, shards in torn.items()}
    return {name: shards for name, shards in left.items() if shards}


def noted(torn: Torn, metadata: MetaData) -> MetaData:
    """The table's properties once all of these are cleared."""
    said = {_PROPERTY: msgspec.json.encode(torn).decode()}
    return msgspec.structs.replace(metadata, configuration=metadata.configuration | said)


def cleared(rows: pa.Table, torn: Torn) -> pa.Table:
    """The rows without the values that their shards have dropped."""
    for name, shards in torn.items():
        place = rows.schema.get_field_index(name)
        if place >= 0:
            gone = pc.is_in(rows[SHARD], pa.array(shards, pa.string()))
            null = pa.scalar(None, rows.schema.field(place).type)
            rows = rows.set_column(place, rows.schema.field(place), pc.if_else(gone, null, rows[name]))
    return rows


def rows_with_values(path: Location, torn: Torn) -> BitMap:
    """Row numbers of a file, from 0, that hold a value which their shard has dropped. Raises SinkError."""
    found = BitMap()
    first = 0
    with lake_parquet(path) as file:
        held = [name for name in torn if name in file.schema_arrow.names]
        if not held:
            return found
        for batch in file.iter_batches(_BATCH_ROWS, columns=[SHARD, *held]):
            for name in held:
                gone = pc.is_in(batch[SHARD], pa.array(torn[name], pa.string()))
                stale = pc.and_(gone, pc.is_valid(batch[name])).to_numpy(zero_copy_only=False)
                found |= BitMap((np.flatnonzero(stale) + first).astype(np.uint32))
            first += batch.num_rows
    return found
