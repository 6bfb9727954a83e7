"""The schema of a plain table: `_shard`, `_epoch` and the columns that the source has."""

import pyarrow as pa
from deltalake import Schema

from catchment.model.epoch import TableShape
from catchment.sink.delta.layout import EPOCH, SHARD, arrow_schema
from catchment.sink.delta.plain.actions import Protocol


def plain_schema(shape: TableShape) -> pa.Schema:
    """Columns under their physical names, without those that all shards dropped: readers pass over what older files
    have of them."""
    live = {column.physical for column in shape.columns if column.live}
    return pa.schema([f for f in arrow_schema(shape) if f.name in (SHARD, EPOCH) or f.name in live])


def schema_string(shape: TableShape) -> str:
    """The schema as Delta's log has it."""
    text: str = Schema.from_arrow(plain_schema(shape)).to_json()
    return text


def protocol_of(shape: TableShape) -> Protocol:
    """What readers and writers of such a table must know. A time without a zone is a feature of its own."""
    without_zone = any(pa.types.is_timestamp(f.type) and f.type.tz is None for f in plain_schema(shape))
    features = ["deletionVectors", *(["timestampNtz"] if without_zone else [])]
    return Protocol(3, 7, features, [*features, "appendOnly", "invariants"])
