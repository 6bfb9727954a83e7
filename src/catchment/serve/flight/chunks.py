"""The parts of a turn as what a stream of Flight holds: batches of one schema, and JSON beside them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from catchment.model.errors import Unsupported
from catchment.model.table import Table
from catchment.serve.changes.rows import CHANGE_FIELDS
from catchment.serve.stream.events import Batch, Heartbeat, Part
from catchment.wire.cells.types import arrow_type

_ROWS_MAX = 16_384


class Chunk(NamedTuple):
    """As FlightStreamChunk: rows, which may be none, and metadata, which is empty beside rows."""

    rows: pa.RecordBatch
    metadata: bytes


def schema_of(known: Iterable[Table], told: Sequence[Part]) -> pa.Schema:
    """All columns that shards have now and that a turn has, and those of changes behind them. Raises Unsupported where
    shards differ in a type."""
    found = [
        pa.schema([pa.field(one.name, arrow_type(one.type)) for one in table.columns]) for table in known
    ]
    found += [_own(part.rows.schema) for part in told if isinstance(part, Batch)]
    try:
        columns = _united(found) if found else pa.schema([])
    except pa.ArrowInvalid as fault:
        raise Unsupported(
            f"shards have columns of one name and different types ({fault}); read events, or one shard"
        ) from None
    return pa.schema([*columns, *CHANGE_FIELDS])


def fits(schema: pa.Schema, told: Iterable[Part]) -> bool:
    """Whether all rows of a turn can be given in it."""
    found = {part.rows.schema for part in told if isinstance(part, Batch)}
    try:
        return all(_united([schema, one]) == schema for one in found)
    except pa.ArrowInvalid:
        return False


def chunks(schema: pa.Schema, told: Iterable[Part]) -> Iterator[Chunk]:
    """The chunks of a turn, in order; a shard's rows have null in columns that only others have."""
    for part in told:
        if isinstance(part, Batch):
            for rows in _widened(schema, part.rows).to_batches(max_chunksize=_ROWS_MAX):
                yield Chunk(rows, b"")
        elif not isinstance(part, Heartbeat):
            yield Chunk(nothing(schema), msgspec.json.encode(part))


def nothing(schema: pa.Schema) -> pa.RecordBatch:
    """No row."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def _united(schemas: list[pa.Schema]) -> pa.Schema:
    return pa.unify_schemas(schemas, promote_options="permissive")


def _own(schema: pa.Schema) -> pa.Schema:
    changes = {field.name for field in CHANGE_FIELDS}
    return pa.schema([field for field in schema if field.name not in changes])


def _widened(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
