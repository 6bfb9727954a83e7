"""What the log says of a data file."""

import msgspec
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.sink.delta.files import Written, delta_stats
from catchment.sink.delta.layout import EPOCH, SHARD, key_columns
from catchment.sink.delta.log.actions import Add
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.plain.vectors import VectorFile

# As many as Delta's own writers give bounds (delta.dataSkippingNumIndexedCols).
STATS_COLUMNS = 32


def described(file: Written, shape: TableShape, now_ms: int) -> Add:
    """The action that adds a file of which all rows live."""
    present = set(file.footer.schema.to_arrow_schema().names)
    first = (SHARD, EPOCH, *key_columns(shape))
    others = (name for name in plain_schema(shape).names if name in present)
    stats = delta_stats(file.footer, list(dict.fromkeys([*first, *others]))[:STATS_COLUMNS])
    return Add(file.place.name, file.size, now_ms, True, stats)


def with_dead(add: Add, rows: int, dead: BitMap, vectors: VectorFile) -> Add:
    """The action, of a file of so many rows, with these dead. Its bounds are those of all rows: not tight."""
    stats = msgspec.json.decode(add.stats or b"{}") | {"numRecords": rows, "tightBounds": not dead}
    vector = vectors.add(dead) if dead else None
    return msgspec.structs.replace(add, stats=msgspec.json.encode(stats).decode(), deletion_vector=vector)
