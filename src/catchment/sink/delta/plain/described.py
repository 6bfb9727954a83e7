"""What the log says of a data file."""

import msgspec
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.sink.delta.files import Written
from catchment.sink.delta.layout import EPOCH, SHARD, VERSION_FIELDS, key_columns
from catchment.sink.delta.log.actions import Add
from catchment.sink.delta.plain.arranged import cluster_columns, partition_columns
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.plain.vectors import VectorFile
from catchment.sink.delta.statistics import delta_stats

# Decoded further, a decimal of many digits would be rounded.
_AS_THEY_STAND = dict[str, msgspec.Raw]


def described(file: Written, shape: TableShape, now_ms: int) -> Add:
    """The action that adds a file of which all rows live."""
    held = set(file.footer.schema.to_arrow_schema().names)
    own = [field.name for field in VERSION_FIELDS]
    arranged = [*partition_columns(shape), *cluster_columns(shape)]
    first = dict.fromkeys((SHARD, EPOCH, *key_columns(shape), *arranged, *own))
    others = [name for name in plain_schema(shape).names if name in held]
    stats = delta_stats(file.footer, [name for name in first if name in others], others)
    return Add(file.place.name, file.size, now_ms, True, stats)


def with_dead(add: Add, rows: int, dead: BitMap, vectors: VectorFile) -> Add:
    """The action, of a file of so many rows, with these dead. Its bounds are those of all rows: not tight."""
    stats: dict[str, object] = {**msgspec.json.decode(add.stats or b"{}", type=_AS_THEY_STAND)}
    stats |= {"numRecords": rows, "tightBounds": not dead}
    vector = vectors.add(dead) if dead else None
    return msgspec.structs.replace(add, stats=msgspec.json.encode(stats).decode(), deletion_vector=vector)
