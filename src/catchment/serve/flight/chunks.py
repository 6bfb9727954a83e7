"""The parts of a turn as what a stream of Flight holds: batches of one schema, and JSON beside them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import pyarrow as pa

from catchment.model.errors import Unsupported
from catchment.model.table import Table
from catchment.serve.changes.rows import CHANGE_FIELDS
from catchment.serve.stream.events import Batch, Heartbeat, Part
from catchment.wire.cells.types import arrow_type

# Of a message: half of what clients of gRPC take where nobody has set it, unless one row is longer.
_MESSAGE_BYTES = 2 << 20


class Chunk(NamedTuple):
    """As FlightStreamChunk: rows, which may be none, and metadata, which is empty beside rows."""

    rows: pa.RecordBatch
    metadata: bytes


def schema_of(tables: Iterable[Table]) -> pa.Schema:
    """All columns of a table that shards have, and those of changes behind them. Raises Unsupported where shards differ
    in a type."""
    found = [_schema(table) for table in tables]
    try:
        columns = _united(found) if found else pa.schema([])
    except pa.ArrowInvalid as fault:
        raise Unsupported(
            f"shards have columns of one name and different types ({fault}); read events, or one shard"
        ) from None
    return pa.schema([*columns, *CHANGE_FIELDS])


def fits(schema: pa.Schema, tables: Iterable[Table]) -> bool:
    """Whether rows of all these can be given in it."""
    try:
        return all(_united([schema, _schema(table)]) == schema for table in tables)
    except pa.ArrowInvalid:
        return False


def chunks(schema: pa.Schema, part: Part) -> Iterator[Chunk]:
    """The chunks of a part, in order; a shard's rows have null in columns that only others have."""
    if isinstance(part, Batch):
        rows = _widened(schema, part.rows)
        fit = max(1, rows.num_rows * _MESSAGE_BYTES // max(1, rows.nbytes))
        yield from (Chunk(some, b"") for some in rows.to_batches(max_chunksize=fit))
    elif not isinstance(part, Heartbeat):
        yield Chunk(nothing(schema), msgspec.json.encode(part))


def nothing(schema: pa.Schema) -> pa.RecordBatch:
    """No row."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def _united(schemas: list[pa.Schema]) -> pa.Schema:
    return pa.unify_schemas(schemas, promote_options="permissive")


def _schema(table: Table) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in table.columns])


def _widened(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
